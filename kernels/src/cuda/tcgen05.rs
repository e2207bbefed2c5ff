//! `tcgen05.mma`: one thread has a problem computed; A and B are in shared memory, the accumulator and
//! the scales in tensor memory.
//!
//! Source: PTX ISA 8.7, "TensorCore 5th Generation Family Instructions".

use super::ptx::{self, Direction, Text};
use super::{Kind, Spec, descriptor};
use crate::fragment::{Fragment, Fragments};
use crate::instruction::Unsupported;

/// Columns that one `tcgen05.ld` or `tcgen05.st` moves; n is a multiple of it.
const AT_ONCE: usize = 8;

/// The kernel and the instruction under test.
pub(super) fn kernel(
    spec: &Spec,
    fragments: &Fragments,
    target: &str,
) -> Result<(String, String), Unsupported> {
    let name = instruction(spec)?;
    let code = descriptor::instruction(spec)?;
    // The accumulator, A's scales and B's, each from a multiple of 8 columns on. Allocation is in
    // powers of two from 32 on.
    let scales = [("sa", &fragments.sa, spec.n), ("sb", &fragments.sb, spec.n + 8)];
    let scales: Vec<(&str, &Fragment, usize)> = scales
        .iter()
        .filter_map(|(array, fragment, column)| Some((*array, fragment.as_ref()?, *column)))
        .collect();
    let columns = scales.iter().map(|(_, fragment, column)| column + fragment.registers());
    let columns = columns.fold(spec.n, usize::max).next_power_of_two().max(32);

    let mut shared = ptx::shared_images(&fragments.a, &fragments.b);
    shared.push(".shared .align 8 .b64 finished;".to_string());
    shared.push(".shared .align 8 .b32 tensor_memory;".to_string());
    let mut text = ptx::head(spec, target, &shared);
    ptx::declare_shared(&mut text, descriptor::tcgen05_shared());
    ptx::declare(&mut text, "d", "b32", &fragments.d);
    for (array, fragment, _) in &scales {
        ptx::declare(&mut text, array, "b32", fragment);
    }
    text.line(".reg .pred %issuer, %ready, %accumulate, %first_warp;");
    text.line(".reg .b32 %finished, %slot, %phase, %base, %mine, %quarter, %code, %base_sa, %base_sb;");
    text.line("setp.eq.u32 %issuer, %thread, 0;");
    text.line("setp.lt.u32 %first_warp, %thread, 32;");
    text.line("setp.eq.b32 %accumulate, 0, 0;");
    text.line(format!("mov.b32 %code, {code:#010x};"));
    text.line("mov.u32 %finished, finished;");
    text.line("mov.u32 %slot, tensor_memory;");
    text.line("mov.b32 %phase, 0;");
    text.line("@%issuer mbarrier.init.shared::cta.b64 [%finished], 1;");
    text.line("@%issuer fence.mbarrier_init.release.cluster;");
    // One warp allocates, and lets the next CTA do so.
    text.line("@!%first_warp bra ALLOCATED;");
    text.line(format!("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%slot], {columns};"));
    text.line("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    text.line("ALLOCATED:");
    text.line("tcgen05.fence::before_thread_sync;");
    text.line("bar.sync 0;");
    text.line("tcgen05.fence::after_thread_sync;");
    text.line("ld.shared.b32 %base, [%slot];");
    // Bits 16 to 31 of an address are the lane: a warp reaches its own quarter of them.
    text.line("and.b32 %quarter, %thread, 0x60;");
    text.line("shl.b32 %quarter, %quarter, 16;");
    text.line("add.u32 %mine, %base, %quarter;");
    for (array, _, column) in &scales {
        text.line(format!("add.u32 %base_{array}, %base, {column};"));
    }

    ptx::open_loop(&mut text);
    ptx::copy_to_shared(&mut text, "a", &fragments.a);
    ptx::copy_to_shared(&mut text, "b", &fragments.b);
    ptx::locate(&mut text, "c", &fragments.c, "%thread");
    text.line("mov.b64 %at_d, %at_c;");
    columns_of(&mut text, &fragments.d, Direction::Load);
    for (array, fragment, column) in &scales {
        // Each quarter of the lanes gets a copy.
        ptx::locate(&mut text, array, fragment, "%lane");
        let registers = 0..fragment.registers();
        ptx::transfer(&mut text, Direction::Load, array, "b32", fragment, registers.clone());
        for register in registers {
            text.line(format!(
                "tcgen05.st.sync.aligned.32x32b.x1.b32 [%mine+{}], {{%{array}{register}}};",
                column + register
            ));
        }
    }
    text.line("tcgen05.wait::st.sync.aligned;");
    // What the threads wrote to shared memory becomes visible to the asynchronous proxy, and what they
    // wrote to tensor memory to the issuer.
    text.line("fence.proxy.async.shared::cta;");
    text.line("tcgen05.fence::before_thread_sync;");
    text.line("bar.sync 0;");
    text.line("@!%issuer bra ISSUED;");
    text.line("tcgen05.fence::after_thread_sync;");
    let scale_operands = if scales.is_empty() { "" } else { " [%base_sa], [%base_sb]," };
    text.line(format!("{name} [%base], %descriptor_a, %descriptor_b, %code,{scale_operands} %accumulate;"));
    text.line("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%finished];");
    text.line("ISSUED:");
    text.line("bar.warp.sync 0xffffffff;");
    text.line("WAIT:");
    text.line("mbarrier.try_wait.parity.shared::cta.b64 %ready, [%finished], %phase;");
    text.line("@!%ready bra WAIT;");
    // The lanes may have left the loop one by one; what follows takes them together.
    text.line("bar.warp.sync 0xffffffff;");
    text.line("xor.b32 %phase, %phase, 1;");
    text.line("tcgen05.fence::after_thread_sync;");
    ptx::locate(&mut text, "d", &fragments.d, "%thread");
    columns_of(&mut text, &fragments.d, Direction::Store);
    text.line("tcgen05.fence::before_thread_sync;");
    text.line("bar.sync 0;");
    text.line("tcgen05.fence::after_thread_sync;");
    ptx::close_loop(&mut text);

    text.line("@!%first_warp bra FREED;");
    text.line(format!("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, {columns};"));
    text.line("FREED:");
    text.line("ret;");
    Ok((text.finish(), name))
}

/// Moves the accumulator between global memory, where `%at_d` points, and this warp's lanes of tensor
/// memory.
fn columns_of(text: &mut Text, fragment: &Fragment, direction: Direction) {
    for first in (0..fragment.registers()).step_by(AT_ONCE) {
        let registers = first..first + AT_ONCE;
        let list = ptx::list("d", registers.clone());
        match direction {
            Direction::Load => {
                ptx::transfer(text, direction, "d", "b32", fragment, registers);
                text.line(format!("tcgen05.st.sync.aligned.32x32b.x{AT_ONCE}.b32 [%mine+{first}], {list};"));
            }
            Direction::Store => {
                text.line(format!("tcgen05.ld.sync.aligned.32x32b.x{AT_ONCE}.b32 {list}, [%mine+{first}];"));
                text.line("tcgen05.wait::ld.sync.aligned;");
                ptx::transfer(text, direction, "d", "b32", fragment, registers);
            }
        }
    }
}

fn instruction(spec: &Spec) -> Result<String, Unsupported> {
    let kind = match (spec.kind, &spec.scale) {
        (Kind::Tcgen05, None) => match (spec.a.name, spec.b.name) {
            ("tf32", "tf32") => "tf32",
            ("fp16", "fp16") | ("bf16", "bf16") => "f16",
            _ if spec.a.bytes == 1 && spec.b.bytes == 1 && spec.k == 32 => "f8f6f4",
            _ => return Err(spec.unsupported("no kind has these types")),
        },
        (Kind::Tcgen05BlockScale, Some(scale)) => match (spec.k, spec.k / scale.block) {
            (32, 1) => "mxf8f6f4.block_scale.scale_vec::1X",
            (64, 2) => "mxf4.block_scale.scale_vec::2X",
            (64, 4) => "mxf4nvf4.block_scale.scale_vec::4X",
            _ => return Err(spec.unsupported(format!("no kind scales blocks of {}", scale.block))),
        },
        _ => return Err(spec.unsupported("block scales are for kinds with block scales")),
    };
    Ok(format!("tcgen05.mma.cta_group::1.kind::{kind}"))
}
