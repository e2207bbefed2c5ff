//! `wgmma.mma_async`: a warpgroup computes a problem; A and B are in shared memory, the accumulator is
//! in its registers.
//!
//! Source: PTX ISA 8.7, "Asynchronous warpgroup level matrix instructions".

use super::ptx::{self, Direction};
use super::{Spec, descriptor};
use crate::fragment::Fragments;
use crate::instruction::Unsupported;

/// The kernel and the instruction under test.
pub(super) fn kernel(
    spec: &Spec,
    fragments: &Fragments,
    target: &str,
) -> Result<(String, String), Unsupported> {
    if spec.c != spec.d || spec.scale.is_some() {
        return Err(spec.unsupported("wgmma accumulates in place and has no scales"));
    }
    let Spec { m, n, k, .. } = spec;
    let (a, b, d) = (spec.ptx_type(&spec.a)?, spec.ptx_type(&spec.b)?, spec.ptx_type(&spec.d)?);
    let name = format!("wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{d}.{a}.{b}");
    let ty = ptx::register_type(d);
    let registers = fragments.d.registers();
    let mut text = ptx::head(spec, target, &ptx::shared_images(&fragments.a, &fragments.b));
    ptx::declare_shared(&mut text, descriptor::wgmma_shared());
    // C is loaded into the registers that D is stored from.
    ptx::declare(&mut text, "d", ty, &fragments.d);
    text.line(".reg .pred %accumulate;");
    text.line("setp.eq.b32 %accumulate, 0, 0;");
    ptx::open_loop(&mut text);
    ptx::copy_to_shared(&mut text, "a", &fragments.a);
    ptx::copy_to_shared(&mut text, "b", &fragments.b);
    ptx::locate(&mut text, "c", &fragments.c, "%thread");
    text.line("mov.b64 %at_d, %at_c;");
    ptx::transfer(&mut text, Direction::Load, "d", ty, &fragments.d, 0..registers);
    // What the threads wrote becomes visible to the asynchronous proxy, then to all of them.
    text.line("fence.proxy.async.shared::cta;");
    text.line("bar.sync 0;");
    text.line("wgmma.fence.sync.aligned;");
    // Scales 1, 1: nothing is negated. Of the 16-bit types, neither factor is transposed.
    let transpose = if spec.a.bytes == 2 { ", 0, 0" } else { "" };
    text.line(format!(
        "{name} {}, %descriptor_a, %descriptor_b, %accumulate, 1, 1{transpose};",
        ptx::list("d", 0..registers)
    ));
    text.line("wgmma.commit_group.sync.aligned;");
    text.line("wgmma.wait_group.sync.aligned 0;");
    ptx::locate(&mut text, "d", &fragments.d, "%thread");
    ptx::transfer(&mut text, Direction::Store, "d", ty, &fragments.d, 0..registers);
    // No thread overwrites shared memory before all warps' instructions have read it.
    text.line("bar.sync 0;");
    ptx::close_loop(&mut text);
    text.line("ret;");
    Ok((text.finish(), name))
}
