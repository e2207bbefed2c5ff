//! The kernel: one vector of outputs at a time, step after step.

use alloc::vec;
use alloc::vec::Vec;

use super::special::Outcome;
use super::{FusedPlan, Grid, Late, MAX_DOTS, Run, Step};
use crate::compiled::Problems;
use crate::compiled::lanes::{Int, Job, Lanes};
use crate::compiled::operand::{NOWHERE, Panel, Reader};
use crate::compiled::place::{Layout, Places};
use crate::compiled::rounding::Rounded;
use crate::format::FP16;

/// Runs a plan on problems; gives the places of the elements that are left to the scalar executor.
pub struct FusedJob<'j> {
    pub plan: &'j FusedPlan,
    pub problems: &'j Problems<'j>,
    pub d: &'j mut [u8],
}

/// One side of a vector of outputs: the factors in lanes, or one row's for all of them.
#[derive(Clone, Copy)]
pub(super) struct Side<'s> {
    pub reader: &'s Reader,
    pub bits: &'s [i32],
    significands: &'s [i32],
    exponents: &'s [i32],
    pub scales: &'s [i32],
    scale_significands: &'s [i32],
    special: &'s [i32],
    /// Lanes, or 1.
    pub width: usize,
}

impl<'s> Side<'s> {
    /// The `index`-th row or group of rows.
    #[inline(always)]
    fn new(
        panel: &'s Panel,
        reader: &'s Reader,
        index: usize,
        slots: usize,
        blocks: usize,
        width: usize,
    ) -> Self {
        let part = |array: &'s [i32], each: usize| &array[index * each * width..][..each * width];
        Side {
            reader,
            bits: part(&panel.bits, slots),
            significands: part(&panel.significands, slots),
            exponents: part(&panel.exponents, slots),
            scales: part(&panel.scales, blocks),
            scale_significands: part(&panel.scale_significands, blocks),
            special: part(&panel.special, 1),
            width,
        }
    }

    /// A vector from an array of this side.
    #[inline(always)]
    fn vector<L: Lanes, const IN_LANES: bool>(lanes: L, part: &[i32]) -> L::W {
        if IN_LANES { lanes.load(part) } else { lanes.splat(part[0]) }
    }

    /// The elements of a run.
    #[inline(always)]
    fn run<const IN_LANES: bool>(
        array: &'s [i32],
        run: Run,
        width: usize,
    ) -> core::slice::ChunksExact<'s, i32> {
        let width = if IN_LANES { width } else { 1 };
        array[run.first * width..run.end * width].chunks_exact(width)
    }
}

impl Job for FusedJob<'_> {
    type Output = Vec<usize>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Vec<usize> {
        let FusedJob { plan, problems, d } = self;
        let Problems { m, n, .. } = *problems;
        let k = plan.order.len();
        let (scale, blocks) = plan.scale.map_or((FP16, 0), |scale| (scale.format, k / scale.block));
        let mut general = Vec::new();
        let (mut x, mut y) = (Panel::default(), Panel::default());
        let layout = Layout::new(m, n, L::N);
        if layout == Layout::Pairs {
            let total = problems.count * m * n;
            let mut rows = vec![None; L::N];
            let mut columns = vec![None; L::N];
            let mut scale_rows = vec![None; L::N];
            let mut scale_columns = vec![None; L::N];
            for first in (0..total).step_by(L::N) {
                for lane in 0..L::N {
                    let place = (first + lane < total).then_some(first + lane);
                    let row = place.map(|place| place / n);
                    let column = place.map(|place| place / (m * n) * n + place % n);
                    rows[lane] = row.map(|row| row * k);
                    columns[lane] = column.map(|column| column * k);
                    scale_rows[lane] = row.map(|row| row * blocks);
                    scale_columns[lane] = column.map(|column| column * blocks);
                }
                x.fill_lanes(&plan.a, problems.a, &rows, &plan.order, L::N);
                y.fill_lanes(&plan.b, problems.b, &columns, &plan.order, L::N);
                if plan.scale.is_some() {
                    x.fill_scales_in_lanes(&scale, problems.sa, &scale_rows, blocks, L::N);
                    y.fill_scales_in_lanes(&scale, problems.sb, &scale_columns, blocks, L::N);
                }
                let sides =
                    (Side::new(&x, &plan.a, 0, k, blocks, L::N), Side::new(&y, &plan.b, 0, k, blocks, L::N));
                let places = Places { first, stride: 1, count: L::N.min(total - first) };
                output::<L, true>(lanes, plan, sides, problems.c, d, places, &mut general);
            }
            return general;
        }
        // Lanes are rows of D, or columns.
        let by_rows = layout == Layout::Rows;
        let (wide, narrow) = if by_rows { (m, n) } else { (n, m) };
        let groups = wide.div_ceil(L::N);
        let (x_reader, y_reader) = if by_rows { (&plan.a, &plan.b) } else { (&plan.b, &plan.a) };
        let mut rows = vec![None; groups * L::N];
        let mut scale_rows = vec![None; groups * L::N];
        for row in 0..wide {
            rows[row] = Some(row * k);
            scale_rows[row] = Some(row * blocks);
        }
        for problem in 0..problems.count {
            let a = part(problems.a, problem, m * k * plan.a.bytes());
            let b = part(problems.b, problem, n * k * plan.b.bytes());
            let (x_array, y_array) = if by_rows { (a, b) } else { (b, a) };
            x.fill_lanes(x_reader, x_array, &rows, &plan.order, L::N);
            y.fill_rows(y_reader, y_array, narrow, &plan.order);
            if plan.scale.is_some() {
                let (sa, sb) =
                    (part(problems.sa, problem, m * blocks), part(problems.sb, problem, n * blocks));
                let (x_scales, y_scales) = if by_rows { (sa, sb) } else { (sb, sa) };
                x.fill_scales_in_lanes(&scale, x_scales, &scale_rows, blocks, L::N);
                y.fill_scales(&scale, y_scales, blocks);
            }
            for row in 0..narrow {
                let y = Side::new(&y, y_reader, row, k, blocks, 1);
                for group in 0..groups {
                    let x = Side::new(&x, x_reader, group, k, blocks, L::N);
                    let lane = group * L::N;
                    let (i, j) = if by_rows { (lane, row) } else { (row, lane) };
                    let places = Places {
                        first: (problem * m + i) * n + j,
                        stride: if by_rows { n } else { 1 },
                        count: L::N.min(wide - lane),
                    };
                    output::<L, false>(lanes, plan, (x, y), problems.c, d, places, &mut general);
                }
            }
        }
        general
    }
}

/// A vector of c, or of earlier sums.
struct Accumulator<L: Lanes> {
    significand: L::D,
    exponent: L::W,
    fraction_bits: i32,
}

/// A problem's bytes.
fn part(array: &[u8], problem: usize, each: usize) -> &[u8] {
    &array[problem * each..][..each]
}

/// Computes a vector of outputs. `PAIRS` says that both sides are in lanes, not the first alone.
#[inline(always)]
fn output<L: Lanes, const PAIRS: bool>(
    lanes: L,
    plan: &FusedPlan,
    sides: (Side, Side),
    c: &[u8],
    d: &mut [u8],
    places: Places,
    general: &mut Vec<usize>,
) {
    let mut buffer = [0i32; 16];
    places.gather(plan.c.format.bytes, c, &mut buffer);
    let mut sum = lanes.load(&buffer);
    let special =
        Side::vector::<L, true>(lanes, sides.0.special).or(Side::vector::<L, PAIRS>(lanes, sides.1.special));
    // Lanes whose NaN the scalar executor has to find.
    let mut unknown = 0u32;
    for (index, step) in plan.steps.iter().enumerate() {
        let c = sum;
        let unpacker = if index == 0 { &plan.c } else { &plan.sum };
        let unpacked = unpacker.unpack(lanes, c);
        let mut flagged = special.or(unpacked.special);
        let accumulator = Accumulator {
            significand: lanes.widen(unpacked.significand),
            exponent: unpacked.exponent,
            fraction_bits: unpacker.format.fraction_bits as i32,
        };
        let (rounded, highest) = match &plan.late {
            _ if plan.grouped.is_some() => {
                (grouped_sum::<L, PAIRS>(lanes, plan, sides, step, &accumulator), lanes.splat(NOWHERE))
            }
            Some(late) => late_sum::<L, PAIRS>(lanes, plan, late, sides, step, &accumulator),
            None => flat_sum::<L, PAIRS>(lanes, plan, sides, step, &accumulator),
        };
        sum = rounded.bits;
        if let Some(exponent) = plan.overflows_at {
            flagged = flagged.or(highest.gt(lanes.splat(exponent - 2)));
        }
        if plan.negative_zeros_stay || plan.cancellation_is_negative {
            flagged = flagged.or(rounded.zero);
        }
        if lanes.any(flagged) {
            let (mut flags, mut cs) = ([0i32; 16], [0i32; 16]);
            lanes.store(flagged, &mut flags);
            lanes.store(c, &mut cs);
            lanes.store(rounded.zero, &mut buffer);
            let zeros = buffer;
            lanes.store(sum, &mut buffer);
            for lane in 0..places.count {
                if flags[lane] != 0 {
                    let outcome = plan.outcome(index, step, sides, lane, cs[lane], zeros[lane] != 0);
                    buffer[lane] = match outcome {
                        Outcome::Number => continue,
                        Outcome::Zero { negative } => i32::from(negative) << (plan.d_format.bits() - 1),
                        Outcome::Infinite { negative } => plan.infinity(negative),
                        Outcome::Nan => {
                            unknown |= u32::from(!plan.nan_is_known) << lane;
                            plan.nan as i32
                        }
                    };
                }
            }
            sum = lanes.load(&buffer);
        }
    }
    lanes.store(sum, &mut buffer);
    places.scatter(plan.d_format.bytes, &buffer, d);
    for lane in 0..places.count {
        if unknown >> lane & 1 == 1 {
            general.push(places.first + lane * places.stride);
        }
    }
}

/// The largest exponent among the products of a dot product.
#[inline(always)]
fn largest<L: Lanes, const PAIRS: bool>(
    lanes: L,
    plan: &FusedPlan,
    (x, y): (Side, Side),
    dot: &[Run],
) -> L::W {
    let mut largest = lanes.splat(2 * NOWHERE);
    for &run in dot {
        let mut of_run = lanes.splat(2 * NOWHERE);
        let ys = Side::run::<PAIRS>(y.exponents, run, L::N);
        for (x, y) in Side::run::<true>(x.exponents, run, L::N).zip(ys) {
            of_run = of_run.max(lanes.load(x).add(Side::vector::<L, PAIRS>(lanes, y)));
        }
        if plan.scale.is_some() {
            of_run = of_run.add(scale::<L, PAIRS>(lanes, (x, y), run));
        }
        largest = largest.max(of_run);
    }
    largest
}

/// The exponent of both scales of a run.
#[inline(always)]
fn scale<L: Lanes, const PAIRS: bool>(lanes: L, (x, y): (Side, Side), run: Run) -> L::W {
    let x = lanes.load(&x.scales[run.block * L::N..]);
    x.add(Side::vector::<L, PAIRS>(lanes, &y.scales[run.block * if PAIRS { L::N } else { 1 }..]))
}

/// The products of a dot product, aligned to `largest` and added, in units of 2^(largest − F).
#[inline(always)]
fn aligned_sum<L: Lanes, const PAIRS: bool>(
    lanes: L,
    plan: &FusedPlan,
    sides: (Side, Side),
    dot: &[Run],
    largest: L::W,
) -> L::D {
    if plan.dot.truncates {
        aligned::<L, PAIRS, true>(lanes, plan, sides, dot, largest)
    } else {
        aligned::<L, PAIRS, false>(lanes, plan, sides, dot, largest)
    }
}

#[inline(always)]
fn aligned<L: Lanes, const PAIRS: bool, const TRUNCATES: bool>(
    lanes: L,
    plan: &FusedPlan,
    sides: (Side, Side),
    dot: &[Run],
    largest: L::W,
) -> L::D {
    let (x, y) = sides;
    let mut total = lanes.splat_wide(0);
    let largest = largest.add(lanes.splat(plan.extra_shift));
    for &run in dot {
        let mut from = largest;
        if plan.scale.is_some() {
            from = from.sub(scale::<L, PAIRS>(lanes, sides, run));
        }
        let mut first = run.first;
        while first < run.end {
            let part = Run { first, end: run.end.min(first + plan.in_32_bits), block: run.block };
            first = part.end;
            let mut sum = lanes.splat(0);
            let xs = Side::run::<true>(x.significands, part, L::N);
            let ys = Side::run::<PAIRS>(y.significands, part, L::N);
            let x_exponents = Side::run::<true>(x.exponents, part, L::N);
            let y_exponents = Side::run::<PAIRS>(y.exponents, part, L::N);
            for ((x, y), (ex, ey)) in xs.zip(ys).zip(x_exponents.zip(y_exponents)) {
                let product = lanes.mul16(lanes.load(x), Side::vector::<L, PAIRS>(lanes, y));
                let distance = from.sub(lanes.load(ex)).sub(Side::vector::<L, PAIRS>(lanes, ey));
                sum = sum.add(if TRUNCATES { product.truncated(distance) } else { product.sra(distance) });
            }
            total = total.add(lanes.widen(sum));
        }
    }
    total
}

/// A number with so many fraction bits, aligned from a distance.
#[inline(always)]
fn align<L: Lanes>(lanes: L, number: L::D, fraction_bits: i32, grid: &Grid, distance: L::W) -> (L::D, L::D) {
    let up = grid.fraction_bits - fraction_bits;
    let number = number.sll(lanes.splat_wide(up.max(0).into()));
    (number, lanes.widen(distance.add(lanes.splat((-up).max(0)))))
}

/// Shifts what has been aligned.
#[inline(always)]
fn cut<L: Lanes>((number, distance): (L::D, L::D), grid: &Grid) -> L::D {
    if grid.truncates { number.truncated(distance) } else { number.sra(distance) }
}

/// c is one of the summands.
#[inline(always)]
fn flat_sum<L: Lanes, const PAIRS: bool>(
    lanes: L,
    plan: &FusedPlan,
    sides: (Side, Side),
    step: &Step,
    c: &Accumulator<L>,
) -> (Rounded<L::W>, L::W) {
    let dot = &step.dots[0][..];
    let products = largest::<L, PAIRS>(lanes, plan, sides, dot);
    let largest = products.max(c.exponent).max(lanes.splat(plan.dot.floor));
    let sum = aligned_sum::<L, PAIRS>(lanes, plan, sides, dot, largest);
    let grid = &plan.c_grid;
    let c = cut::<L>(align(lanes, c.significand, c.fraction_bits, grid, largest.sub(c.exponent)), grid);
    let unit = lanes.widen(largest.sub(lanes.splat(plan.dot.fraction_bits)));
    (plan.d.round(lanes, sum.add(c), unit), products)
}

/// The summands are exact sums times scales.
#[inline(always)]
fn grouped_sum<L: Lanes, const PAIRS: bool>(
    lanes: L,
    plan: &FusedPlan,
    sides: (Side, Side),
    step: &Step,
    c: &Accumulator<L>,
) -> Rounded<L::W> {
    let (x, y) = sides;
    let fraction_bits = plan.grouped.unwrap_or(0);
    let mut largest = c.exponent.max(lanes.splat(plan.dot.floor));
    for group in &step.dots {
        let mut exponent = scale::<L, PAIRS>(lanes, sides, group[0]);
        if !plan.zero_sums_counted {
            let sum = exact_sum::<L, PAIRS>(lanes, sides, group[0]);
            exponent = L::W::select(sum.eq(lanes.splat(0)), lanes.splat(NOWHERE), exponent);
        }
        largest = largest.max(exponent);
    }
    let grid = &plan.dot;
    let distance = largest.sub(c.exponent);
    let mut total =
        cut::<L>(align(lanes, c.significand, c.fraction_bits, &plan.c_grid, distance), &plan.c_grid);
    for group in &step.dots {
        let run = group[0];
        let exponent = scale::<L, PAIRS>(lanes, sides, run);
        let sum = exact_sum::<L, PAIRS>(lanes, (x, y), run);
        let distance = largest.sub(exponent);
        total = total.add(cut::<L>(align(lanes, lanes.widen(sum), fraction_bits, grid, distance), grid));
    }
    let unit = lanes.widen(largest.sub(lanes.splat(grid.fraction_bits)));
    plan.d.round(lanes, total, unit)
}

/// The exact sum of a run's products, times the significands of its scales.
#[inline(always)]
fn exact_sum<L: Lanes, const PAIRS: bool>(lanes: L, (x, y): (Side, Side), run: Run) -> L::W {
    let mut sum = lanes.splat(0);
    let ys = Side::run::<PAIRS>(y.significands, run, L::N);
    for (x, y) in Side::run::<true>(x.significands, run, L::N).zip(ys) {
        sum = sum.add(lanes.mul16(lanes.load(x), Side::vector::<L, PAIRS>(lanes, y)));
    }
    let width = if PAIRS { L::N } else { 1 };
    let x = lanes.load(&x.scale_significands[run.block * L::N..]);
    let y = Side::vector::<L, PAIRS>(lanes, &y.scale_significands[run.block * width..]);
    lanes.mul(sum, lanes.mul(x, y))
}

/// A dot product, the exponent under which it is filed, and the largest of its products' exponents.
#[inline(always)]
fn dot_product<L: Lanes, const PAIRS: bool>(
    lanes: L,
    plan: &FusedPlan,
    sides: (Side, Side),
    dot: &[Run],
) -> (L::D, L::W, L::W) {
    let products = largest::<L, PAIRS>(lanes, plan, sides, dot);
    let largest = products.max(lanes.splat(plan.dot.floor));
    let sum = aligned_sum::<L, PAIRS>(lanes, plan, sides, dot, largest);
    (sum, counted(lanes, plan, sum, largest), products)
}

/// The exponent of a dot product, or none where it is a zero that does not count.
#[inline(always)]
fn counted<L: Lanes>(lanes: L, plan: &FusedPlan, sum: L::D, exponent: L::W) -> L::W {
    if plan.zero_sums_counted {
        return exponent;
    }
    let is_zero = lanes.narrow(sum.eq(lanes.splat_wide(0)));
    L::W::select(is_zero, lanes.splat(NOWHERE), exponent)
}

/// c is added to a dot product, or to several that have been joined.
#[inline(always)]
fn late_sum<L: Lanes, const PAIRS: bool>(
    lanes: L,
    plan: &FusedPlan,
    late: &Late,
    sides: (Side, Side),
    step: &Step,
    c: &Accumulator<L>,
) -> (Rounded<L::W>, L::W) {
    let (mut sum, mut exponent, mut products) = dot_product::<L, PAIRS>(lanes, plan, sides, &step.dots[0]);
    let mut fraction_bits = plan.dot.fraction_bits;
    if let Some(join) = &late.join {
        // Two dot products in every published algorithm; more are joined all at once.
        let mut parts = [(sum, exponent); MAX_DOTS];
        for (part, dot) in parts.iter_mut().zip(&step.dots).skip(1) {
            let (sum, exponent_of_dot, products_of_dot) = dot_product::<L, PAIRS>(lanes, plan, sides, dot);
            *part = (sum, exponent_of_dot);
            exponent = exponent.max(exponent_of_dot);
            products = products.max(products_of_dot);
        }
        let largest = exponent.max(lanes.splat(join.floor));
        sum = lanes.splat_wide(0);
        for &(part, exponent) in &parts[..step.dots.len()] {
            sum = sum.add(cut::<L>(align(lanes, part, fraction_bits, join, largest.sub(exponent)), join));
        }
        fraction_bits = join.fraction_bits;
        exponent = counted(lanes, plan, sum, largest);
    }
    let largest = exponent.max(c.exponent).max(lanes.splat(late.dot.floor));
    let finest = late.dot.fraction_bits.max(plan.c_grid.fraction_bits);
    let dot = cut::<L>(align(lanes, sum, fraction_bits, &late.dot, largest.sub(exponent)), &late.dot);
    let distance = largest.sub(c.exponent);
    let aligned = align(lanes, c.significand, c.fraction_bits, &plan.c_grid, distance);
    let mut c = cut::<L>(aligned, &plan.c_grid);
    if let Some(far) = late.far {
        let is_far = lanes.widen(distance.gt(lanes.splat(far)));
        c = L::D::select(is_far, aligned.0.truncated(aligned.1), c);
    }
    let total = dot
        .sll(lanes.splat_wide((finest - late.dot.fraction_bits).into()))
        .add(c.sll(lanes.splat_wide((finest - plan.c_grid.fraction_bits).into())));
    let unit = lanes.widen(largest.sub(lanes.splat(finest)));
    (plan.d.round(lanes, total, unit), products)
}
