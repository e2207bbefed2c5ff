/* Runs one Matrix Core instruction on many independent groups of problems.
 *
 * This text knows no matrices: each lane loads its vector registers from where they lie one after
 * another in global memory, executes the instruction, and stores its part of D likewise. What comes
 * before this text instantiates it for an instruction:
 *
 *   operand_a, operand_b, operand_d   types of the registers of A, B, and C and D
 *   A_REGISTERS, B_REGISTERS, D_REGISTERS   vector registers that each lane has of them
 *   SCALES   defined if the instruction takes block scales, a vector register for each factor
 *   EXECUTE(a, b, c, scale_a, scale_b)   the instruction, as the compiler's builtin, which keeps the
 *            wait states that reading its result takes
 *
 * A wave works on a group at a time. Bits 7:0 of the MODE register are `mode` from the start: bits 3:0
 * round, bits 7:4 say what becomes of subnormals ("CDNA3 Instruction Set Architecture", table of the
 * MODE register). The loads come after that (they may not move across the assembly text), and the
 * instruction needs what they load.
 *
 * It is C as well as HIP, so that a host's compiler can run it with a stand-in for EXECUTE. */

#ifndef SET_MODE
#define SET_MODE(mode) \
    __asm__ volatile("s_setreg_b32 hwreg(HW_REG_MODE, 0, 8), %0" : : "s"(mode) : "memory")
#endif

#define LANES 64u

#ifdef __cplusplus
extern "C"
#endif
__attribute__((global, amdgpu_flat_work_group_size(THREADS, THREADS)))
void mmaprobe(const unsigned *a, const unsigned *b, const unsigned *c, const unsigned *scales_a,
              const unsigned *scales_b, unsigned *d, unsigned groups, unsigned mode)
{
    union {
        unsigned registers[sizeof(operand_a) / 4];
        operand_a operand;
    } left = {{0}};
    union {
        unsigned registers[sizeof(operand_b) / 4];
        operand_b operand;
    } right = {{0}};
    union {
        unsigned registers[sizeof(operand_d) / 4];
        operand_d operand;
    } before, after;

    SET_MODE(mode);
    const unsigned thread = __builtin_amdgcn_workitem_id_x();
    const unsigned lane = thread % LANES;
    const unsigned waves = __builtin_amdgcn_grid_size_x() / LANES;
    /* The same for all lanes of a wave, which the compiler cannot know. */
    const unsigned wave = __builtin_amdgcn_readfirstlane(thread / LANES);
    for (unsigned group = __builtin_amdgcn_workgroup_id_x() * (THREADS / LANES) + wave; group < groups;
         group += waves) {
        const unsigned long row = (unsigned long)group * LANES + lane;
#pragma unroll
        for (unsigned i = 0; i < A_REGISTERS; i++)
            left.registers[i] = a[row * A_REGISTERS + i];
#pragma unroll
        for (unsigned i = 0; i < B_REGISTERS; i++)
            right.registers[i] = b[row * B_REGISTERS + i];
#pragma unroll
        for (unsigned i = 0; i < D_REGISTERS; i++)
            before.registers[i] = c[row * D_REGISTERS + i];
#ifdef SCALES
        const unsigned scale_a = scales_a[row], scale_b = scales_b[row];
#endif
        after.operand = EXECUTE(left.operand, right.operand, before.operand, scale_a, scale_b);
#pragma unroll
        for (unsigned i = 0; i < D_REGISTERS; i++)
            d[row * D_REGISTERS + i] = after.registers[i];
    }
}
