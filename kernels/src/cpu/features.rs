//! Presence: what CPUID reports, what the operating system has enabled, and who the processor is.
//!
//! Bits are those of the Intel SDM, volume 2A, CPUID, and volume 1, chapter 13 (XCR0).

use std::arch::asm;
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::fmt;

/// Everything that decides presence, as read from the machine.
#[derive(Clone, Debug)]
pub struct Features {
    leaf_1_ecx: u32,
    leaf_7_0_ebx: u32,
    leaf_7_0_edx: u32,
    leaf_7_1_eax: u32,
    /// Zero unless the operating system uses XSAVE.
    xcr0: u64,
    /// Whether the operating system lets this process use tile data, and if not, why.
    tile_permission: Result<(), String>,
}

/// A feature word of CPUID.
#[derive(Clone, Copy, Debug)]
pub enum Word {
    /// CPUID.1:ECX.
    Leaf1Ecx,
    /// CPUID.7.0:EBX.
    Leaf7Ebx,
    /// CPUID.7.0:EDX.
    Leaf7Edx,
    /// CPUID.7.1:EAX.
    Leaf71Eax,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Word::Leaf1Ecx => "CPUID.1:ECX",
            Word::Leaf7Ebx => "CPUID.7.0:EBX",
            Word::Leaf7Edx => "CPUID.7.0:EDX",
            Word::Leaf71Eax => "CPUID.7.1:EAX",
        })
    }
}

/// One thing that an instruction needs.
#[derive(Clone, Copy, Debug)]
pub enum Need {
    /// A feature bit, and the feature's name.
    Bit(Word, u32, &'static str),
    /// State components that the operating system must have enabled in XCR0, and what they are.
    State(u64, &'static str),
    /// The operating system's permission to use tile data.
    TilePermission,
}

const OSXSAVE: Need = Need::Bit(Word::Leaf1Ecx, 27, "OSXSAVE");
const YMM_STATE: Need = Need::State(0b110, "XCR0[2:1] (ymm state)");
const ZMM_STATE: Need = Need::State(0b1110_0110, "XCR0[7:5,2:1] (zmm state)");
const TILE_STATE: Need = Need::State(0b11 << 17, "XCR0[18:17] (tile state)");
const AMX_TILE: Need = Need::Bit(Word::Leaf7Edx, 24, "AMX-TILE");

/// The 256-bit fused multiply-adds.
pub const FMA: [Need; 4] =
    [Need::Bit(Word::Leaf1Ecx, 12, "FMA"), Need::Bit(Word::Leaf1Ecx, 28, "AVX"), OSXSAVE, YMM_STATE];
/// The 512-bit fused multiply-adds.
pub const AVX512F: [Need; 3] = [Need::Bit(Word::Leaf7Ebx, 16, "AVX512F"), OSXSAVE, ZMM_STATE];
/// The bf16 dot product in lanes.
pub const AVX512_BF16: [Need; 4] =
    [Need::Bit(Word::Leaf71Eax, 5, "AVX512-BF16"), AVX512F[0], OSXSAVE, ZMM_STATE];
/// The fused multiply-add on fp16.
pub const AVX512_FP16: [Need; 4] =
    [Need::Bit(Word::Leaf7Edx, 23, "AVX512-FP16"), AVX512F[0], OSXSAVE, ZMM_STATE];
/// The bf16 tile product.
pub const AMX_BF16: [Need; 5] =
    [Need::Bit(Word::Leaf7Edx, 22, "AMX-BF16"), AMX_TILE, OSXSAVE, TILE_STATE, Need::TilePermission];
/// The fp16 tile product.
pub const AMX_FP16: [Need; 5] =
    [Need::Bit(Word::Leaf71Eax, 21, "AMX-FP16"), AMX_TILE, OSXSAVE, TILE_STATE, Need::TilePermission];

impl Features {
    /// Reads them, and on Linux asks for permission to use tile data if there are tiles.
    pub fn read() -> Features {
        let highest = __cpuid(0).eax;
        let leaf_1_ecx = __cpuid(1).ecx;
        // Leaves above the highest return another leaf's data on Intel, so they count as all zeros.
        let (mut leaf_7_0_ebx, mut leaf_7_0_edx, mut leaf_7_1_eax) = (0, 0, 0);
        if highest >= 7 {
            let leaf_7_0 = __cpuid_count(7, 0);
            (leaf_7_0_ebx, leaf_7_0_edx) = (leaf_7_0.ebx, leaf_7_0.edx);
            if leaf_7_0.eax >= 1 {
                leaf_7_1_eax = __cpuid_count(7, 1).eax;
            }
        }
        let mut features = Features {
            leaf_1_ecx,
            leaf_7_0_ebx,
            leaf_7_0_edx,
            leaf_7_1_eax,
            xcr0: 0,
            tile_permission: Err("not asked for".to_owned()),
        };
        if features.unmet(&[OSXSAVE]).is_none() {
            // SAFETY: OSXSAVE says that xgetbv is enabled.
            features.xcr0 = unsafe { xcr0() };
        }
        if features.unmet(&[AMX_TILE, TILE_STATE]).is_none() {
            features.tile_permission = request_tile_permission();
        }
        features
    }

    /// The first need that is not met, in words.
    pub fn unmet(&self, needs: &[Need]) -> Option<String> {
        needs.iter().find_map(|need| match *need {
            Need::Bit(word, bit, name) => {
                (self.word(word) >> bit & 1 == 0).then(|| format!("{word}[{bit}] {name} not reported"))
            }
            Need::State(mask, name) => {
                (self.xcr0 & mask != mask).then(|| format!("{name} not enabled by the operating system"))
            }
            Need::TilePermission => self.tile_permission.clone().err(),
        })
    }

    fn word(&self, word: Word) -> u32 {
        match word {
            Word::Leaf1Ecx => self.leaf_1_ecx,
            Word::Leaf7Ebx => self.leaf_7_0_ebx,
            Word::Leaf7Edx => self.leaf_7_0_edx,
            Word::Leaf71Eax => self.leaf_7_1_eax,
        }
    }

    /// The same without AVX-512 and AMX.
    #[cfg(test)]
    pub fn without_avx512(&self) -> Features {
        Features { leaf_7_0_ebx: 0, leaf_7_0_edx: 0, leaf_7_1_eax: 0, ..self.clone() }
    }
}

/// XCR0: the state components that the operating system saves.
///
/// # Safety
/// CPUID must report OSXSAVE.
unsafe fn xcr0() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: xgetbv of XCR0 has no effect but on eax and edx.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags));
    }
    u64::from(high) << 32 | u64::from(low)
}

/// Asks Linux to let this process, all its threads included, use tile data: without it the first
/// tile instruction raises SIGILL (Documentation/arch/x86/xstate.rst).
#[cfg(target_os = "linux")]
fn request_tile_permission() -> Result<(), String> {
    const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_ulong = 18;
    // SAFETY: this arch_prctl takes two numbers and touches no memory.
    let answer = unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) };
    if answer == 0 {
        Ok(())
    } else {
        let error = std::io::Error::last_os_error();
        Err(format!("Linux denies tile data: arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA): {error}"))
    }
}

/// Elsewhere nobody has tried.
#[cfg(not(target_os = "linux"))]
fn request_tile_permission() -> Result<(), String> {
    Err(format!("using tile data is not implemented on {}", std::env::consts::OS))
}

/// The brand string, or the vendor's name where there is none.
pub fn brand() -> String {
    const FIRST: u32 = 0x8000_0002;
    const LAST: u32 = 0x8000_0004;
    if __cpuid(0x8000_0000).eax < LAST {
        return vendor();
    }
    let words = (FIRST..=LAST).map(__cpuid).flat_map(|leaf| [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]);
    text(words)
}

/// Vendor, family, model, stepping, and the microcode revision if the operating system tells.
pub fn properties() -> Vec<(&'static str, String)> {
    let signature = Signature::of(__cpuid(1).eax);
    let mut properties = vec![
        ("vendor", vendor()),
        ("family", signature.family.to_string()),
        ("model", signature.model.to_string()),
        ("stepping", signature.stepping.to_string()),
    ];
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    properties.extend(microcode(&cpuinfo).map(|revision| ("microcode", revision)));
    properties
}

fn vendor() -> String {
    let leaf = __cpuid(0);
    text([leaf.ebx, leaf.edx, leaf.ecx])
}

/// Text as CPUID packs it: four characters a register, padded with NUL and blanks.
fn text(words: impl IntoIterator<Item = u32>) -> String {
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ']).to_owned()
}

/// The processor's display family and model, and its stepping.
#[derive(Debug, PartialEq, Eq)]
struct Signature {
    family: u32,
    model: u32,
    stepping: u32,
}

impl Signature {
    /// Takes CPUID.1:EAX apart.
    fn of(eax: u32) -> Signature {
        let base_family = eax >> 8 & 0xF;
        let family = if base_family == 0xF { base_family + (eax >> 20 & 0xFF) } else { base_family };
        let extended = if matches!(base_family, 0x6 | 0xF) { eax >> 16 & 0xF } else { 0 };
        Signature { family, model: extended << 4 | eax >> 4 & 0xF, stepping: eax & 0xF }
    }
}

/// The microcode revision in the text of /proc/cpuinfo.
fn microcode(cpuinfo: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "microcode").then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that has everything.
    fn everything() -> Features {
        Features {
            leaf_1_ecx: !0,
            leaf_7_0_ebx: !0,
            leaf_7_0_edx: !0,
            leaf_7_1_eax: !0,
            xcr0: !0,
            tile_permission: Ok(()),
        }
    }

    #[test]
    fn reasons_name_the_bit_and_the_feature() {
        let unmet = |features: Features, needs: &[Need]| features.unmet(needs).unwrap();
        for needs in [&FMA[..], &AVX512F, &AVX512_BF16, &AVX512_FP16, &AMX_BF16, &AMX_FP16] {
            assert_eq!(everything().unmet(needs), None);
        }
        assert_eq!(
            unmet(Features { leaf_7_0_edx: !(1 << 22), ..everything() }, &AMX_BF16),
            "CPUID.7.0:EDX[22] AMX-BF16 not reported"
        );
        assert_eq!(
            unmet(Features { leaf_7_1_eax: !(1 << 21), ..everything() }, &AMX_FP16),
            "CPUID.7.1:EAX[21] AMX-FP16 not reported"
        );
        assert_eq!(
            unmet(Features { xcr0: 0b111, ..everything() }, &AVX512F),
            "XCR0[7:5,2:1] (zmm state) not enabled by the operating system"
        );
        assert_eq!(
            unmet(Features { xcr0: 0xE7, ..everything() }, &AMX_BF16),
            "XCR0[18:17] (tile state) not enabled by the operating system"
        );
        assert_eq!(
            unmet(Features { tile_permission: Err("denied".to_owned()), ..everything() }, &AMX_BF16),
            "denied"
        );
        assert_eq!(
            unmet(Features { leaf_1_ecx: 0, ..everything() }, &FMA),
            "CPUID.1:ECX[12] FMA not reported"
        );
    }

    #[test]
    fn agrees_with_the_standard_library() {
        let features = Features::read();
        let found = |needs: &[Need]| features.unmet(needs).is_none();
        assert_eq!(found(&FMA), is_x86_feature_detected!("fma"));
        assert_eq!(found(&AVX512F), is_x86_feature_detected!("avx512f"));
        assert_eq!(found(&AVX512_BF16), is_x86_feature_detected!("avx512bf16"));
        assert_eq!(found(&AVX512_FP16), is_x86_feature_detected!("avx512fp16"));
    }

    #[test]
    fn signatures_and_cpuinfo_are_taken_apart() {
        // Sapphire Rapids and Zen 4.
        assert_eq!(Signature::of(0x000806F8), Signature { family: 6, model: 143, stepping: 8 });
        assert_eq!(Signature::of(0x00A10F11), Signature { family: 25, model: 17, stepping: 1 });
        let cpuinfo = "processor\t: 0\nmicrocode\t: 0x2b000461\n";
        assert_eq!(microcode(cpuinfo).as_deref(), Some("0x2b000461"));
        assert_eq!(microcode("processor\t: 0\n"), None);
        assert_eq!(text([u32::from_le_bytes(*b" Xeo"), u32::from_le_bytes(*b"n\0\0\0")]), "Xeon");
    }
}
