//! What all kernels have in common: their head, their parameters, and the loop over groups.

use std::fmt::Write;

use super::{ENTRY, Kind, Spec, THREADS};
use crate::fragment::{Fragment, Home, is_sub_byte};

/// The text of a kernel, line by line.
pub(super) struct Text(String);

impl Text {
    /// A line inside the function.
    pub fn line(&mut self, line: impl AsRef<str>) {
        // Labels stand at the margin.
        let indent = if line.as_ref().ends_with(':') { "" } else { "    " };
        writeln!(self.0, "{indent}{}", line.as_ref()).expect("strings take everything");
    }

    /// The text, ended.
    pub fn finish(mut self) -> String {
        self.0.push_str("}\n");
        self.0
    }
}

/// The arrays that a kernel takes, in the order of its parameters.
const ARRAYS: [&str; 6] = ["a", "b", "c", "sa", "sb", "d"];

/// Starts a kernel: every thread has its number in `%thread`, that of its lane in the warp in `%lane`,
/// and the addresses of the arrays in `%pa` to `%pd`; `shared` declares what is needed in shared
/// memory. `%group` runs over the groups of the executing warp or CTA; the loop is open.
pub(super) fn head(spec: &Spec, target: &str, shared: &[String]) -> Text {
    let (major, minor) = version(spec, target);
    let mut text = Text(format!(
        ".version {major}.{minor}\n.target {target}\n.address_size 64\n\n.visible .entry {ENTRY}(\n"
    ));
    for array in ARRAYS {
        text.line(format!(".param .u64 param_{array},"));
    }
    text.line(".param .u32 param_groups");
    text.0.push_str(&format!(")\n.reqntid {THREADS}, 1, 1\n{{\n"));
    for declaration in shared {
        text.line(declaration);
    }
    text.line(".reg .pred %more, %done;");
    text.line(".reg .b32 %thread, %lane, %group, %groups, %stride, %worker, %workers;");
    for array in ARRAYS {
        text.line(format!(".reg .b64 %p{array}, %at_{array};"));
        text.line(format!("ld.param.u64 %p{array}, [param_{array}];"));
        text.line(format!("cvta.to.global.u64 %p{array}, %p{array};"));
    }
    text.line("ld.param.u32 %groups, [param_groups];");
    text.line("mov.u32 %thread, %tid.x;");
    text.line("and.b32 %lane, %thread, 31;");
    text.line("mov.u32 %worker, %ctaid.x;");
    text.line("mov.u32 %workers, %nctaid.x;");
    match spec.kind.groups_per_cta() {
        1 => {
            text.line("mov.u32 %group, %worker;");
            text.line("mov.u32 %stride, %workers;");
        }
        per_cta => {
            text.line("shr.u32 %group, %thread, 5;");
            text.line(format!("mad.lo.u32 %group, %worker, {per_cta}, %group;"));
            text.line(format!("mul.lo.u32 %stride, %workers, {per_cta};"));
        }
    }
    text
}

/// Opens the loop over groups.
pub(super) fn open_loop(text: &mut Text) {
    text.line("setp.ge.u32 %done, %group, %groups;");
    text.line("@%done bra DONE;");
    text.line("LOOP:");
}

/// Closes the loop over groups; what follows runs once all of them are done.
pub(super) fn close_loop(text: &mut Text) {
    text.line("add.u32 %group, %group, %stride;");
    text.line("setp.lt.u32 %more, %group, %groups;");
    text.line("@%more bra LOOP;");
    text.line("DONE:");
}

/// Sets `%at_{array}` to where the fragment of this group begins for the lane in `index`.
pub(super) fn locate(text: &mut Text, array: &str, fragment: &Fragment, index: &str) {
    let bytes = fragment.bytes();
    text.line(format!("mad.wide.u32 %at_{array}, %group, {bytes}, %p{array};"));
    let word = if let Home::Shared { .. } = fragment.home { 16 } else { fragment.home.size().2 / 8 };
    text.line(format!("mad.wide.u32 %at_{array}, {index}, {word}, %at_{array};"));
}

/// Registers of a fragment as a list for an instruction: `{%a0, %a1}`.
pub(super) fn list(array: &str, registers: impl Iterator<Item = usize>) -> String {
    let names: Vec<String> = registers.map(|register| format!("%{array}{register}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// Declares the registers of a fragment of bit patterns of 32 bits, or of the given PTX type.
pub(super) fn declare(text: &mut Text, array: &str, ty: &str, fragment: &Fragment) {
    text.line(format!(".reg .{ty} %{array}<{}>;", fragment.registers()));
}

/// Moves the registers of a fragment between global memory and the lane; `%at_{array}` is where they
/// begin.
pub(super) fn transfer(
    text: &mut Text,
    direction: Direction,
    array: &str,
    ty: &str,
    fragment: &Fragment,
    registers: std::ops::Range<usize>,
) {
    let (lanes, _, width) = fragment.home.size();
    for register in registers {
        let offset = register * lanes * width / 8;
        text.line(match direction {
            Direction::Load => format!("ld.global.{ty} %{array}{register}, [%at_{array}+{offset}];"),
            Direction::Store => format!("st.global.{ty} [%at_{array}+{offset}], %{array}{register};"),
        });
    }
}

/// Which way registers are moved.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    Load,
    Store,
}

/// The PTX type of the registers that hold elements of these types in an accumulator.
pub(super) fn register_type(ty: &str) -> &'static str {
    match ty {
        "f64" => "f64",
        "f32" => "f32",
        _ => "b32",
    }
}

/// Copies a fragment from global to shared memory, 16 bytes for each thread in turn; `{array}_image`
/// is where to. Uses `%copy0` to `%copy3`, `%to` and `%active`.
pub(super) fn copy_to_shared(text: &mut Text, array: &str, fragment: &Fragment) {
    locate(text, array, fragment, "%thread");
    text.line(format!("mov.u32 %to, {array}_image;"));
    text.line("mad.lo.u32 %to, %thread, 16, %to;");
    let pieces = fragment.bytes() / 16;
    let threads = THREADS as usize;
    for first in (0..pieces).step_by(threads) {
        let guard = match pieces - first < threads {
            true => {
                text.line(format!("setp.lt.u32 %active, %thread, {};", pieces - first));
                "@%active "
            }
            false => "",
        };
        let offset = first * 16;
        text.line(format!(
            "{guard}ld.global.v4.b32 {{%copy0, %copy1, %copy2, %copy3}}, [%at_{array}+{offset}];"
        ));
        text.line(format!("{guard}st.shared.v4.b32 [%to+{offset}], {{%copy0, %copy1, %copy2, %copy3}};"));
    }
}

/// Declares what [`copy_to_shared`] uses, and the descriptors of A and B.
pub(super) fn declare_shared(text: &mut Text, upper: u64) {
    text.line(".reg .pred %active;");
    text.line(".reg .b32 %to, %copy0, %copy1, %copy2, %copy3, %address;");
    text.line(".reg .b64 %descriptor_a, %descriptor_b;");
    for array in ["a", "b"] {
        text.line(format!("mov.u32 %address, {array}_image;"));
        text.line("and.b32 %address, %address, 0x3ffff;");
        text.line("shr.u32 %address, %address, 4;");
        text.line(format!("cvt.u64.u32 %descriptor_{array}, %address;"));
        text.line(format!("or.b64 %descriptor_{array}, %descriptor_{array}, {upper:#x};"));
    }
}

/// What [`copy_to_shared`] copies to.
pub(super) fn shared_images(a: &Fragment, b: &Fragment) -> Vec<String> {
    [("a", a), ("b", b)]
        .map(|(array, fragment)| format!(".shared .align 128 .b8 {array}_image[{}];", fragment.bytes()))
        .to_vec()
}

/// The least version of PTX that has an instruction and a target, so that an old driver suffices where
/// it can.
///
/// Source: "PTX ISA Notes" and "Target ISA Notes" of each instruction, and "Release Notes".
pub fn version(spec: &Spec, target: &str) -> (u32, u32) {
    let of_target = match target {
        "sm_70" | "sm_72" => (6, 1),
        "sm_75" => (6, 3),
        "sm_80" => (7, 0),
        "sm_86" => (7, 1),
        "sm_87" => (7, 4),
        "sm_89" | "sm_90" => (7, 8),
        "sm_90a" => (8, 0),
        "sm_100" | "sm_100a" => (8, 6),
        "sm_120" | "sm_120a" => (8, 7),
        // One that is newer than this list.
        _ => (8, 8),
    };
    let Spec { kind, m, k, a, b, d, .. } = spec;
    let fp8 = a.bytes == 1;
    let of_instruction = match kind {
        Kind::Mma if is_sub_byte(a) || is_sub_byte(b) => (8, 7),
        Kind::Mma if fp8 && (*k == 16 || d.bytes == 2) => (8, 7),
        Kind::Mma if fp8 => (8, 4),
        Kind::Mma if a.bytes == 8 && *m == 16 => (7, 8),
        Kind::Mma => match (a.name, *m, *k) {
            ("fp16", 8, _) => (6, 4),
            ("fp16", _, 8) => (6, 5),
            _ => (7, 0),
        },
        Kind::MmaBlockScale => (8, 7),
        Kind::Wgmma => (8, 0),
        Kind::Tcgen05 => (8, 6),
        Kind::Tcgen05BlockScale if *k == 64 => (8, 7),
        Kind::Tcgen05BlockScale => (8, 6),
    };
    of_target.max(of_instruction)
}
