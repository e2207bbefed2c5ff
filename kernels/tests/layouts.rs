//! Layouts: bijections, packing and unpacking, and the tables of the PTX manual, put down here a
//! second time in the manual's own terms (a lane, its register, and what that holds).

use std::collections::HashSet;

use mmaprobe_kernels::cuda::layout::fragments;
use mmaprobe_kernels::cuda::{Kind, Spec};
use mmaprobe_kernels::fragment::{Fragment, Home, Matrix, Place};
use mmaprobe_model::Format;
use mmaprobe_model::format::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, FP16, FP32, FP64, TF32, UE4M3, UE8M0};
use mmaprobe_model::tree::Scale;

fn spec(kind: Kind, [m, n, k]: [usize; 3], [a, b, c, d]: [Format; 4]) -> Spec {
    Spec { kind, m, n, k, a, b, c, d, scale: None, blocks: 1 }
}

fn scaled(kind: Kind, shape: [usize; 3], ab: Format, format: Format, block: usize) -> Spec {
    Spec { scale: Some(Scale { format, block }), ..spec(kind, shape, [ab, ab, FP32, FP32]) }
}

/// Every kind of layout that there is.
fn all() -> Vec<Spec> {
    let mma = |m, n, k, ab: Format, cd: Format| spec(Kind::Mma, [m, n, k], [ab, ab, cd, cd]);
    let mut all = vec![
        mma(8, 8, 4, FP64, FP64),
        mma(16, 8, 4, FP64, FP64),
        mma(16, 8, 8, FP64, FP64),
        mma(16, 8, 16, FP64, FP64),
        mma(16, 8, 8, FP16, FP32),
        mma(16, 8, 16, FP16, FP16),
        mma(16, 8, 16, BF16, FP32),
        mma(16, 8, 4, TF32, FP32),
        mma(16, 8, 8, TF32, FP32),
        mma(16, 8, 16, E4M3, FP32),
        spec(Kind::Mma, [16, 8, 32], [E5M2, E2M1, FP16, FP16]),
        spec(Kind::Mma, [16, 8, 32], [E3M2, E2M3, FP32, FP32]),
        scaled(Kind::MmaBlockScale, [16, 8, 32], E4M3, UE8M0, 32),
        scaled(Kind::MmaBlockScale, [16, 8, 64], E2M1, UE8M0, 32),
        scaled(Kind::MmaBlockScale, [16, 8, 64], E2M1, UE4M3, 16),
        scaled(Kind::Tcgen05BlockScale, [128, 8, 32], E2M3, UE8M0, 32),
        scaled(Kind::Tcgen05BlockScale, [128, 200, 64], E2M1, UE8M0, 32),
        scaled(Kind::Tcgen05BlockScale, [128, 256, 64], E2M1, UE4M3, 16),
    ];
    for (c, d) in [(FP32, FP32), (FP16, FP32), (FP16, FP16)] {
        all.push(Spec { blocks: 4, ..spec(Kind::Mma, [8, 8, 4], [FP16, FP16, c, d]) });
    }
    for n in [8, 24, 256] {
        all.push(spec(Kind::Wgmma, [64, n, 16], [FP16, FP16, FP16, FP16]));
        all.push(spec(Kind::Wgmma, [64, n, 8], [TF32, TF32, FP32, FP32]));
        all.push(spec(Kind::Wgmma, [64, n, 32], [E4M3, E5M2, FP32, FP32]));
        for m in [64, 128] {
            all.push(spec(Kind::Tcgen05, [m, n, 16], [BF16, BF16, FP32, FP32]));
            all.push(spec(Kind::Tcgen05, [m, n, 32], [E3M2, E2M1, FP16, FP16]));
        }
    }
    all
}

fn each() -> Vec<(String, Fragment)> {
    all()
        .iter()
        .flat_map(|spec| {
            let found = fragments(spec).unwrap_or_else(|error| panic!("{error}"));
            Matrix::ALL.into_iter().filter_map(move |matrix| {
                let Spec { kind, m, n, k, .. } = spec;
                Some((format!("{matrix:?} of {kind:?} m{m}n{n}k{k}"), found.of(matrix)?.clone()))
            })
        })
        .collect()
}

#[test]
fn no_two_elements_share_a_bit_and_all_are_inside() {
    let each = each();
    assert!(each.len() > 100);
    for (name, fragment) in each {
        let (lanes, registers, width) = fragment.home.size();
        let mut taken = HashSet::new();
        for &place in fragment.places() {
            assert!(
                place.lane < lanes && place.register < registers && place.bit < width,
                "{name} {place:?}"
            );
            if !matches!(fragment.home, Home::Shared { .. }) {
                assert!(place.bit + fragment.bits <= width, "{name} {place:?}");
            }
            let first = fragment.offset(place);
            for bit in first..first + fragment.bits {
                assert!(bit < 8 * fragment.bytes() && taken.insert(bit), "{name} {place:?}: bit {bit}");
            }
        }
        assert_eq!(fragment.places().len(), fragment.blocks * fragment.outer * fragment.inner, "{name}");
    }
}

#[test]
fn unpacking_what_was_packed_gives_the_problems_back() {
    for (name, fragment) in each() {
        // Not whole groups, where a group is several problems.
        for problems in [1, 2, 5, 8] {
            let mut state = 0x9E37_79B9_7F4A_7C15u64;
            let elements: Vec<u8> = (0..problems * fragment.problem_bytes())
                .map(|_| {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let byte = (state >> 56) as u8;
                    if fragment.bits < 8 { byte & ((1 << fragment.bits) - 1) } else { byte }
                })
                .collect();
            let mut groups = vec![0xAA; problems.div_ceil(fragment.blocks) * fragment.bytes()];
            fragment.pack(&elements, &mut groups);
            let mut again = vec![0x55; elements.len()];
            fragment.unpack(&groups, &mut again);
            assert_eq!(elements, again, "{name}, {problems} problems");
        }
    }
}

#[test]
fn bits_without_an_element_are_zero() {
    for (name, fragment) in each() {
        let mut groups = vec![0xAA; fragment.bytes()];
        fragment.pack(&vec![0xFF; fragment.blocks * fragment.problem_bytes()], &mut groups);
        let ones: u32 = groups.iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(ones as usize, fragment.places().len() * fragment.bits, "{name}");
    }
}

/// Checks a fragment of `mma.sync` against the manual's formula for what element `i` of a lane is:
/// its row and column, with B's row along K.
fn check(
    fragment: &Fragment,
    is_b: bool,
    elements: usize,
    manual: impl Fn(usize, usize, usize) -> (usize, usize),
) {
    let (lanes, _, width) = fragment.home.size();
    let each = width / fragment.element_bytes.max(1) / 8;
    for lane in 0..lanes {
        for i in 0..elements {
            let (group, thread) = (lane >> 2, lane % 4);
            let (row, column) = manual(group, thread, i);
            let (outer, inner) = if is_b { (column, row) } else { (row, column) };
            let place = fragment.place(0, outer, inner);
            let expected = Place { lane, register: i / each, bit: i % each * 8 * fragment.element_bytes };
            assert_eq!(place, expected, "lane {lane}, element {i}: ({row}, {column})");
        }
    }
}

/// "Matrix Fragments for mma.m16n8k16 with floating point type" and its neighbours.
#[test]
fn fragments_of_mma_are_those_of_the_manual() {
    let of =
        |m, n, k, ab: Format, cd: Format| fragments(&spec(Kind::Mma, [m, n, k], [ab, ab, cd, cd])).unwrap();
    let lower = |group: usize, is: bool| if is { group } else { group + 8 };

    let f16 = of(16, 8, 16, FP16, FP32);
    check(&f16.a, false, 8, |group, thread, i| {
        (lower(group, i < 2 || (4..6).contains(&i)), thread * 2 + (i & 1) + if i < 4 { 0 } else { 8 })
    });
    check(&f16.b, true, 4, |group, thread, i| (thread * 2 + (i & 1) + if i < 2 { 0 } else { 8 }, group));
    check(&f16.c, false, 4, |group, thread, i| (lower(group, i < 2), thread * 2 + (i & 1)));
    check(&of(16, 8, 16, FP16, FP16).d, false, 4, |g, t, i| (lower(g, i < 2), t * 2 + (i & 1)));

    let k8 = of(16, 8, 8, BF16, FP32);
    check(&k8.a, false, 4, |group, thread, i| (lower(group, i < 2), thread * 2 + (i & 1)));
    check(&k8.b, true, 2, |group, thread, i| (thread * 2 + i, group));

    let tf32 = of(16, 8, 8, TF32, FP32);
    check(&tf32.a, false, 4, |group, thread, i| {
        (lower(group, i % 2 == 0), if i < 2 { thread } else { thread + 4 })
    });
    check(&tf32.b, true, 2, |group, thread, i| (if i == 0 { thread } else { thread + 4 }, group));
    check(&of(16, 8, 4, TF32, FP32).a, false, 2, |group, thread, i| (lower(group, i == 0), thread));

    let f64 = of(16, 8, 16, FP64, FP64);
    check(&f64.a, false, 8, |group, thread, i| {
        (lower(group, i % 2 == 0), if i % 2 == 0 { i * 2 + thread } else { i * 2 - 2 + thread })
    });
    check(&f64.b, true, 4, |group, thread, i| (thread + i * 4, group));
    check(&f64.c, false, 4, |group, thread, i| (lower(group, i < 2), thread * 2 + (i & 1)));
    let small = of(8, 8, 4, FP64, FP64);
    check(&small.a, false, 1, |group, thread, _| (group, thread));
    check(&small.b, true, 1, |group, thread, _| (thread, group));
    check(&small.d, false, 2, |group, thread, i| (group, thread * 2 + i));

    let fp8 = of(16, 8, 32, E4M3, FP32);
    check(&fp8.a, false, 16, |group, thread, i| {
        (lower(group, i < 4 || (8..12).contains(&i)), thread * 4 + (i & 3) + if i < 8 { 0 } else { 16 })
    });
    check(&fp8.b, true, 8, |group, thread, i| (thread * 4 + (i & 3) + if i < 4 { 0 } else { 16 }, group));
    let k16 = of(16, 8, 16, E5M2, FP32);
    check(&k16.a, false, 8, |group, thread, i| (lower(group, i < 4), thread * 4 + (i & 3)));
    check(&k16.b, true, 4, |group, thread, i| (thread * 4 + (i & 3), group));
}

/// "Matrix Fragments for mma.m16n8k64": 4-bit elements, eight in a register.
#[test]
fn fragments_of_fp4_are_those_of_the_manual() {
    let fp4 = fragments(&scaled(Kind::MmaBlockScale, [16, 8, 64], E2M1, UE4M3, 16)).unwrap();
    for lane in 0..32 {
        let (group, thread) = (lane >> 2, lane % 4);
        for i in 0..32 {
            let row = if i < 8 || (16..24).contains(&i) { group } else { group + 8 };
            let column = thread * 8 + (i & 7) + if i < 16 { 0 } else { 32 };
            let expected = Place { lane, register: i / 8, bit: i % 8 * 4 };
            assert_eq!(fp4.a.place(0, row, column), expected, "a{i} of lane {lane}");
        }
        for i in 0..16 {
            let row = thread * 8 + (i & 7) + if i < 8 { 0 } else { 32 };
            assert_eq!(fp4.b.place(0, group, row), Place { lane, register: i / 8, bit: i % 8 * 4 });
        }
    }
    // Of formats below 8 bits in bytes of their own, e2m1 has the middle, the others the low bits.
    let mixed = fragments(&spec(Kind::Mma, [16, 8, 32], [E2M1, E3M2, FP32, FP32])).unwrap();
    assert_eq!((mixed.a.place(0, 0, 1).bit, mixed.b.place(0, 0, 1).bit), (8 + 2, 8));
}

/// "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".
#[test]
fn fragments_of_volta_are_those_of_the_manual() {
    for (c, d) in [(FP32, FP32), (FP16, FP32)] {
        let spec = Spec { blocks: 4, ..spec(Kind::Mma, [8, 8, 4], [FP16, FP16, c, d]) };
        let found = fragments(&spec).unwrap();
        for lane in 0..32 {
            // Computation 1: lanes 0-3 and 16-19; 2: 4-7 and 20-23; and so on.
            let problem = lane % 16 / 4;
            let quad = if lane < 16 { lane % 4 } else { lane % 4 + 4 };
            for i in 0..4 {
                let place = Place { lane, register: i / 2, bit: i % 2 * 16 };
                assert_eq!(found.a.place(problem, quad, i), place);
                assert_eq!(found.b.place(problem, quad, i), place);
            }
            for i in 0..8 {
                let x = (lane & 1) + (i & 2);
                let row = if lane < 16 { x } else { x + 4 };
                let column = (i & 4) + (lane & 2) + (i & 1);
                let place = Place { lane, register: i, bit: 0 };
                assert_eq!(found.d.place(problem, row, column), place, "c{i} of lane {lane}");
                if c == FP16 {
                    let place = Place { lane, register: i / 2, bit: i % 2 * 16 };
                    assert_eq!(found.c.place(problem, quad, i), place);
                }
            }
        }
    }
}

/// "Block Scaling for mma.sync", with byte and thread selectors of 0.
#[test]
fn scales_of_mma_are_in_the_first_lanes_of_a_quad() {
    for (k, format, block, each) in [(32, UE8M0, 32, 1), (64, UE8M0, 32, 2), (64, UE4M3, 16, 4)] {
        let ab = if k == 32 { E4M3 } else { E2M1 };
        let found = fragments(&scaled(Kind::MmaBlockScale, [16, 8, k], ab, format, block)).unwrap();
        let (sa, sb) = (found.sa.unwrap(), found.sb.unwrap());
        assert_eq!((sa.inner, sb.inner), (each, each));
        for byte in 0..each {
            for group in 0..8 {
                let at = |lane| Place { lane, register: 0, bit: 8 * byte };
                assert_eq!(sa.place(0, group, byte), at(4 * group));
                assert_eq!(sa.place(0, group + 8, byte), at(4 * group + 1));
                assert_eq!(sb.place(0, group, byte), at(4 * group));
            }
        }
    }
}

/// "Register Fragments and Shared Memory Matrix Layouts", matrix D of wgmma.m64nNk16.
#[test]
fn accumulators_of_wgmma_are_those_of_the_manual() {
    let found = fragments(&spec(Kind::Wgmma, [64, 24, 16], [FP16, FP16, FP32, FP32])).unwrap();
    let half = fragments(&spec(Kind::Wgmma, [64, 24, 16], [FP16, FP16, FP16, FP16])).unwrap();
    for lane in 0..128 {
        let (warp, group, thread) = (lane / 32, lane % 32 / 4, lane % 4);
        for i in 0..12 {
            let row = 16 * warp + group + if i % 4 < 2 { 0 } else { 8 };
            let column = 8 * (i / 4) + thread * 2 + (i & 1);
            assert_eq!(found.d.place(0, row, column), Place { lane, register: i, bit: 0 }, "d{i} of {lane}");
            let place = Place { lane, register: i / 2, bit: i % 2 * 16 };
            assert_eq!(half.c.place(0, row, column), place);
        }
    }
}

/// K-major without swizzling: core matrices of 8 rows of 16 bytes, the next along K after the leading
/// dimension's offset, the next 8 rows after the stride dimension's.
#[test]
fn factors_in_shared_memory_are_core_matrices() {
    let (leading, stride) = (128, 256);
    for (k, format) in [(8, TF32), (16, FP16), (16, BF16), (32, E4M3)] {
        let found = fragments(&spec(Kind::Wgmma, [64, 16, k], [format, format, FP32, FP32])).unwrap();
        let each = 16 / format.bytes;
        for (fragment, outer) in [(&found.a, 64), (&found.b, 16)] {
            assert_eq!(fragment.home, Home::Shared { bytes: outer * 32 });
            for i in 0..outer {
                for l in 0..k {
                    let byte = i / 8 * stride + l / each * leading + i % 8 * 16 + l % each * format.bytes;
                    assert_eq!(fragment.place(0, i, l), Place { lane: 0, register: byte, bit: 0 });
                }
            }
        }
    }
    // 16 elements below 8 bits: packed, then empty up to 16 bytes. Of fp4 alone: all 32.
    let mixed = fragments(&spec(Kind::Tcgen05, [64, 8, 32], [E2M1, E3M2, FP32, FP32])).unwrap();
    let at = |register, bit| Place { lane: 0, register, bit };
    assert_eq!(mixed.a.place(0, 0, 15), at(7, 4));
    assert_eq!(mixed.a.place(0, 0, 16), at(128, 0));
    assert_eq!(mixed.b.place(0, 1, 15), at(16 + 11, 2));
    let packed = fragments(&scaled(Kind::Tcgen05BlockScale, [128, 8, 64], E2M1, UE4M3, 16)).unwrap();
    assert_eq!(packed.a.place(0, 0, 31), at(15, 4));
    assert_eq!(packed.a.place(0, 8, 32), at(256 + 128, 0));
}

/// "Data Path Layout Organization", layouts D and F, and "Scale Factor A ID".
#[test]
fn tensor_memory_has_rows_in_lanes() {
    for (m, lane_of) in [(64usize, (|i| 32 * (i / 16) + i % 16) as fn(usize) -> usize), (128, |i| i)] {
        let found = fragments(&spec(Kind::Tcgen05, [m, 16, 16], [FP16, FP16, FP16, FP16])).unwrap();
        for i in 0..m {
            for j in 0..16 {
                let expected = Place { lane: lane_of(i), register: j, bit: 0 };
                assert_eq!(found.d.place(0, i, j), expected);
            }
        }
    }
    let found = fragments(&scaled(Kind::Tcgen05BlockScale, [128, 72, 64], E2M1, UE4M3, 16)).unwrap();
    let (sa, sb) = (found.sa.unwrap(), found.sb.unwrap());
    assert_eq!(sa.home, Home::TensorMemory { lanes: 32, columns: 4 });
    assert_eq!(sb.home, Home::TensorMemory { lanes: 32, columns: 3 });
    // The packed order of block scales: (row % 32) * 16 + (row / 32) * 4 + block.
    for row in 0..128 {
        for block in 0..4 {
            let Place { lane, register, bit } = sa.place(0, row, block);
            assert_eq!(lane * 16 + register * 4 + bit / 8, row % 32 * 16 + row / 32 * 4 + block);
        }
    }
    assert_eq!(sb.place(0, 71, 3), Place { lane: 7, register: 2, bit: 24 });
}

#[test]
fn what_has_no_layout_is_refused() {
    for (spec, why) in [
        (spec(Kind::Mma, [16, 16, 16], [FP16, FP16, FP32, FP32]), "m = 8 or 16 and n = 8"),
        (spec(Kind::Mma, [16, 8, 12], [FP16, FP16, FP32, FP32]), "multiple of 8"),
        (spec(Kind::Wgmma, [64, 12, 16], [FP16, FP16, FP32, FP32]), "multiple of 8"),
        (spec(Kind::Wgmma, [64, 8, 32], [FP16, FP16, FP32, FP32]), "K is 16"),
        (spec(Kind::Tcgen05, [256, 16, 16], [FP16, FP16, FP32, FP32]), "two CTAs"),
        (Spec { blocks: 2, ..spec(Kind::Mma, [16, 8, 8], [FP16, FP16, FP32, FP32]) }, "several problems"),
        (scaled(Kind::Tcgen05BlockScale, [64, 8, 32], E4M3, UE8M0, 32), "m = 128"),
        (scaled(Kind::MmaBlockScale, [16, 8, 64], E2M1, UE4M3, 8), "not 8"),
    ] {
        let error = fragments(&spec).unwrap_err();
        assert!(error.why.contains(why), "{error}");
    }
}
