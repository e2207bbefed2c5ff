//! `mma.sync`: a warp computes a group of problems, with everything in its registers.
//!
//! Source: PTX ISA 8.7, "Warp-level matrix instructions: mma".

use super::ptx::{self, Direction};
use super::{Kind, Spec};
use crate::fragment::{Fragment, Fragments};
use crate::instruction::Unsupported;

/// The kernel and the instruction under test.
pub(super) fn kernel(
    spec: &Spec,
    fragments: &Fragments,
    target: &str,
) -> Result<(String, String), Unsupported> {
    let name = instruction(spec, target)?;
    let factor = if spec.a.bytes == 8 { "f64" } else { "b32" };
    let c_type = ptx::register_type(spec.ptx_type(&spec.c)?);
    let d_type = ptx::register_type(spec.ptx_type(&spec.d)?);
    let mut operands: Vec<(&str, &str, &Fragment)> =
        vec![("a", factor, &fragments.a), ("b", factor, &fragments.b), ("c", c_type, &fragments.c)];
    for (array, scales) in [("sa", &fragments.sa), ("sb", &fragments.sb)] {
        operands.extend(scales.as_ref().map(|scales| (array, "b32", scales)));
    }
    let mut text = ptx::head(spec, target, &[]);
    for (array, ty, fragment) in operands.iter().copied().chain([("d", d_type, &fragments.d)]) {
        ptx::declare(&mut text, array, ty, fragment);
    }
    ptx::open_loop(&mut text);
    for &(array, ty, fragment) in &operands {
        ptx::locate(&mut text, array, fragment, "%lane");
        ptx::transfer(&mut text, Direction::Load, array, ty, fragment, 0..fragment.registers());
    }
    let all = |array: &str, fragment: &Fragment| ptx::list(array, 0..fragment.registers());
    let mut call = format!(
        "{name} {}, {}, {}, {}",
        all("d", &fragments.d),
        all("a", &fragments.a),
        all("b", &fragments.b),
        all("c", &fragments.c)
    );
    if spec.scale.is_some() {
        // Byte 0 of the first lanes of each quad, as the layout has it.
        call += ", %sa0, {0, 0}, %sb0, {0, 0}";
    }
    text.line(call + ";");
    ptx::locate(&mut text, "d", &fragments.d, "%lane");
    let registers = fragments.d.registers();
    ptx::transfer(&mut text, Direction::Store, "d", d_type, &fragments.d, 0..registers);
    ptx::close_loop(&mut text);
    text.line("ret;");
    Ok((text.finish(), name))
}

fn instruction(spec: &Spec, target: &str) -> Result<String, Unsupported> {
    let Spec { m, n, k, .. } = spec;
    let [a, b, c, d] = [&spec.a, &spec.b, &spec.c, &spec.d].map(|format| spec.ptx_type(format));
    let (a, b, c, d) = (a?, b?, c?, d?);
    let (kind, scale) = match (&spec.scale, spec.kind) {
        (Some(scale), Kind::MmaBlockScale) => {
            let kind = match (k, k / scale.block) {
                (32, 1) => "mxf8f6f4.block_scale.scale_vec::1X",
                (64, 2) => "mxf4.block_scale.scale_vec::2X",
                (64, 4) => "mxf4nvf4.block_scale.scale_vec::4X",
                _ => return Err(spec.unsupported(format!("no kind scales blocks of {}", scale.block))),
            };
            (format!(".kind::{kind}"), format!(".{}", scale.format))
        }
        (None, Kind::Mma) => {
            // The targets that have this kind have it for all pairings of types.
            let has_kind = *k == 32 && spec.a.bytes == 1 && target.starts_with("sm_12");
            (if has_kind { ".kind::f8f6f4".to_string() } else { String::new() }, String::new())
        }
        _ => return Err(spec.unsupported("block scales are for kinds with block scales")),
    };
    Ok(format!("mma.sync.aligned.m{m}n{n}k{k}.row.col{kind}.{d}.{a}.{b}.{c}{scale}"))
}
