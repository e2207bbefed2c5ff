/* Runs the Matrix Core kernel on the host, thread after thread, with a stand-in for the instruction:
 * in a first launch it writes down what each thread asks of it, in a second one it gives the answers
 * that came with the input. kernel.h is the kernel, with ANSWER for the builtin's name.
 *
 * Input, 32-bit numbers: blocks of threads, groups, mode, bytes of the answers (0: none), bytes of the
 * arrays A, B, C, SA, SB, D; then the arrays, then the answers. Output: for each execution the block,
 * the thread, the mode and its registers, or in a second launch D. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Named so that no name of the kernel hides them. */
static unsigned host_thread, host_block, host_blocks, host_mode;
static const unsigned char *answers;
static int recording;

static void write_down(const void *bytes, unsigned length) { fwrite(bytes, 1, length, stdout); }

/* The registers of an operand that the kernel says it has; what its type has beyond them is not the
 * instruction's, and has to be zero. */
static void write_registers(const void *operand, unsigned registers, unsigned size) {
    const unsigned char *bytes = operand;
    for (unsigned i = 4 * registers; i < size; i++)
        if (bytes[i]) exit(9);
    write_down(operand, 4 * registers);
}

#define __builtin_amdgcn_workitem_id_x() host_thread
#define __builtin_amdgcn_workgroup_id_x() host_block
#define __builtin_amdgcn_grid_size_x() (host_blocks * THREADS)
#define __builtin_amdgcn_readfirstlane(x) (x)
#define SET_MODE(mode) (host_mode = (mode))
#define __bf16 short
#define global unused
#define amdgpu_flat_work_group_size(x, y) unused

/* Modifiers that rearrange operands have to be 0; what else a scaled instruction is given are the two
 * formats, which are not looked at here. */
#define PLAIN(a, b, c, cbsz, abid, blgp) ((cbsz) || (abid) || (blgp) ? exit(8) : (void)0)
#define SCALED(a, b, c, cbsz, blgp, opsel_a, scale_a, opsel_b, scale_b)                      \
    ((opsel_a) || (opsel_b) ? exit(8)                                                       \
                            : (recording ? write_down(&scale_a, 4), write_down(&scale_b, 4) \
                                         : (void)0))
#define PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, NAME, ...) NAME
#define ANSWER(a, b, c, ...)                                                                \
    ({                                                                                      \
        operand_d result;                                                                   \
        if (recording) {                                                                    \
            unsigned head[3] = {host_block, host_thread, host_mode};                                   \
            write_down(head, sizeof head);                                                  \
            write_registers(&(a), A_REGISTERS, sizeof(a));                                  \
            write_registers(&(b), B_REGISTERS, sizeof(b));                                  \
            write_registers(&(c), D_REGISTERS, sizeof(c));                                  \
            memcpy(&result, &(c), sizeof result);                                           \
        } else {                                                                            \
            memcpy(&result, answers, sizeof result);                                        \
            answers += sizeof result;                                                       \
        }                                                                                   \
        PICK(a, b, c, __VA_ARGS__, SCALED, _, _, PLAIN)(a, b, c, __VA_ARGS__);              \
        result;                                                                             \
    })

#include "kernel.h"

int main(void) {
    unsigned numbers[10];
    if (fread(numbers, sizeof numbers, 1, stdin) != 1) return 2;
    unsigned *arrays[6];
    for (int i = 0; i < 6; i++) {
        unsigned length = numbers[4 + i];
        /* Exactly as long as said, so that a checker sees what is beyond. */
        arrays[i] = malloc(length ? length : 1);
        if (length && fread(arrays[i], length, 1, stdin) != 1) return 3;
    }
    recording = numbers[3] == 0;
    unsigned char *all = malloc(numbers[3] + 1);
    if (numbers[3] && fread(all, numbers[3], 1, stdin) != 1) return 4;
    answers = all;
    host_blocks = numbers[0];
    for (host_block = 0; host_block < host_blocks; host_block++)
        for (host_thread = 0; host_thread < THREADS; host_thread++)
            mmaprobe(arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], arrays[5], numbers[1], numbers[2]);
    if (!recording) {
        if (answers != all + numbers[3]) return 5;
        write_down(arrays[5], numbers[9]);
    }
    return 0;
}
