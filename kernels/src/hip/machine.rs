//! What a kernel became: the Matrix Core instructions in a disassembly.
//!
//! `llvm-objdump -d` prints an instruction to a line, its encoding in a comment behind it:
//!
//! ```text
//!     v_mfma_f32_16x16x16_f16 a[0:3], v[4:5], v[2:3], a[0:3]     // 00000000166C: D3CD8000 04020504
//! ```

/// The mnemonics of all Matrix Core instructions in a disassembly, in their order.
pub fn matrix_instructions(disassembly: &str) -> Vec<&str> {
    let mnemonics = disassembly.lines().filter_map(|line| line.split_whitespace().next());
    mnemonics.filter(|mnemonic| mnemonic.starts_with("v_mfma") || mnemonic.starts_with("v_smfmac")).collect()
}

/// Whether a disassembly has the one instruction, once, and the MODE register set before it.
///
/// # Errors
/// What it has instead.
pub fn check(disassembly: &str, expected: &str) -> Result<(), String> {
    let found = matrix_instructions(disassembly);
    if found != [expected] {
        let found = if found.is_empty() { "none".to_string() } else { found.join(", ") };
        return Err(format!("its matrix instructions are: {found}; not {expected} alone"));
    }
    let at = |what: &str| disassembly.find(what);
    match (at("s_setreg_b32 hwreg(HW_REG_MODE, 0, 8)"), at(&format!("{expected} "))) {
        (Some(mode), Some(instruction)) if mode < instruction => Ok(()),
        _ => Err("the MODE register is not set before the instruction".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "mmaprobe:
\ts_setreg_b32 hwreg(HW_REG_MODE, 0, 8), s17 // 000000001618: B9100001
\ts_waitcnt vmcnt(0)
\tv_mfma_f32_4x4x1_16b_f32 a[0:3], v6, v7, a[0:3] // 00000000164C: D3C28000 04020F06";

    #[test]
    fn one_instruction_after_its_mode_is_right() {
        assert_eq!(check(GOOD, "v_mfma_f32_4x4x1_16b_f32"), Ok(()));
        let twice = format!("{GOOD}\n{GOOD}");
        for (text, expected, problem) in [
            (GOOD, "v_mfma_f32_4x4x1f32", "v_mfma_f32_4x4x1_16b_f32; not v_mfma_f32_4x4x1f32 alone"),
            (twice.as_str(), "v_mfma_f32_4x4x1_16b_f32", "16b_f32, v_mfma_f32_4x4x1_16b_f32; not"),
            ("\ts_endpgm", "v_mfma_f32_4x4x1_16b_f32", "none; not"),
            ("\tv_mfma_f32_4x4x1_16b_f32 a[0:3], v6, v7, a[0:3]", "v_mfma_f32_4x4x1_16b_f32", "MODE"),
        ] {
            let error = check(text, expected).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
