//! The kernel: a few vectors of outputs at a time, operation after operation.

use alloc::vec::Vec;

use super::convert::Converter;
use super::{FloatPlan, MAX_DEPTH, Operation};
use crate::compiled::Problems;
use crate::compiled::lanes::{Float, Int, Job, Lanes};
use crate::compiled::place::{Layout, Places};

/// Runs a plan on problems; gives the places of the elements that are left to the general executor.
pub struct FloatJob<'j> {
    pub plan: &'j FloatPlan,
    pub problems: &'j Problems<'j>,
    pub d: &'j mut [u8],
}

/// fp32 or fp64, in lanes.
trait Precision<L: Lanes>: Copy {
    /// The bits of a number.
    type Element: Copy + Default;
    type Bits: Int;
    type Number: Float;
    const BYTES: usize;
    /// The bits of the smallest normal number.
    const NORMAL: i64;

    fn convert(converter: &Converter, array: &[u8], index: usize) -> Self::Element;
    fn read(array: &[u8], index: usize) -> Self::Element;
    fn write(element: Self::Element, array: &mut [u8], index: usize);
    fn load(lanes: L, from: &[Self::Element]) -> Self::Bits;
    fn load_bytes(lanes: L, from: &[u8]) -> Self::Bits;
    fn store_bytes(lanes: L, bits: Self::Bits, to: &mut [u8]);
    fn store(lanes: L, bits: Self::Bits, to: &mut [Self::Element]);
    fn splat(lanes: L, element: Self::Element) -> Self::Bits;
    fn constant(lanes: L, bits: i64) -> Self::Bits;
    fn number(lanes: L, bits: Self::Bits) -> Self::Number;
    fn bits(lanes: L, number: Self::Number) -> Self::Bits;
    fn any(lanes: L, mask: Self::Bits) -> bool;
    fn is_nan(element: Self::Element) -> bool;
}

#[derive(Clone, Copy)]
struct Single;

#[derive(Clone, Copy)]
struct Double;

macro_rules! precision {
    ($precision:ident: $element:ty, $bits:ident, $number:ident, $bytes:literal, $normal:literal, $float:ty,
     $load:ident, $store:ident, $load_bytes:ident, $store_bytes:ident, $splat:ident, $to:ident, $from:ident, |$lanes:ident, $mask:ident| $any:expr,
     |$converter:ident, $array:ident, $index:ident| $convert:expr) => {
        impl<L: Lanes> Precision<L> for $precision {
            type Element = $element;
            type Bits = L::$bits;
            type Number = L::$number;
            const BYTES: usize = $bytes;
            const NORMAL: i64 = $normal;

            #[inline(always)]
            fn convert($converter: &Converter, $array: &[u8], $index: usize) -> $element {
                $convert
            }
            #[inline(always)]
            fn read(array: &[u8], index: usize) -> $element {
                let bytes = array[index * $bytes..].first_chunk().expect("as many elements as are asked for");
                <$element>::from_le_bytes(*bytes)
            }
            #[inline(always)]
            fn write(element: $element, array: &mut [u8], index: usize) {
                array[index * $bytes..][..$bytes].copy_from_slice(&element.to_le_bytes());
            }
            #[inline(always)]
            fn load(lanes: L, from: &[$element]) -> L::$bits {
                lanes.$load(from)
            }
            #[inline(always)]
            fn load_bytes(lanes: L, from: &[u8]) -> L::$bits {
                lanes.$load_bytes(from)
            }
            #[inline(always)]
            fn store_bytes(lanes: L, bits: L::$bits, to: &mut [u8]) {
                lanes.$store_bytes(bits, to);
            }
            #[inline(always)]
            fn store(lanes: L, bits: L::$bits, to: &mut [$element]) {
                lanes.$store(bits, to);
            }
            #[inline(always)]
            fn splat(lanes: L, element: $element) -> L::$bits {
                lanes.$splat(element)
            }
            #[inline(always)]
            fn constant(lanes: L, bits: i64) -> L::$bits {
                lanes.$splat(bits as $element)
            }
            #[inline(always)]
            fn number(lanes: L, bits: L::$bits) -> L::$number {
                lanes.$to(bits)
            }
            #[inline(always)]
            fn bits(lanes: L, number: L::$number) -> L::$bits {
                lanes.$from(number)
            }
            #[inline(always)]
            fn any($lanes: L, $mask: L::$bits) -> bool {
                $any
            }
            #[inline(always)]
            fn is_nan(element: $element) -> bool {
                <$float>::from_bits(element as _).is_nan()
            }
        }
    };
}

precision!(Single: i32, W, F, 4, 0x0080_0000, f32, load, store, load_bytes, store_bytes, splat, floats, float_bits,
|lanes, mask| lanes.any(mask),
|converter, array, index| converter.single(match converter.bytes {
    1 => i32::from(array[index]),
    2 => i32::from(u16::from_le_bytes([array[2 * index], array[2 * index + 1]])),
    _ => <Single as Precision<L>>::read(array, index),
}));
precision!(Double: i64, D, G, 8, 0x0010_0000_0000_0000, f64, load_wide, store_wide,
    load_wide_bytes, store_wide_bytes, splat_wide, doubles,
    double_bits, |lanes, mask| lanes.any(lanes.narrow(mask)),
    |converter, array, index| converter.double(<Double as Precision<L>>::read(array, index)));

impl Job for FloatJob<'_> {
    type Output = Vec<usize>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Vec<usize> {
        if self.plan.is_double {
            run::<L, Double>(lanes, self.plan, self.problems, self.d)
        } else {
            run::<L, Single>(lanes, self.plan, self.problems, self.d)
        }
    }
}

/// Rows of D (or columns) that are computed side by side, to have more than one operation under way.
const SIDE_BY_SIDE: usize = 4;

#[inline(always)]
fn run<L: Lanes, P: Precision<L>>(
    lanes: L,
    plan: &FloatPlan,
    problems: &Problems,
    d: &mut [u8],
) -> Vec<usize> {
    let Problems { m, n, .. } = *problems;
    let k = plan.order.len();
    let mut general = Vec::new();
    let (mut x, mut y, mut converted) = (Vec::new(), Vec::new(), Vec::new());
    let layout = Layout::new(m, n, L::N);
    if layout == Layout::Pairs {
        let total = problems.count * m * n;
        for first in (0..total).step_by(L::N) {
            let count = L::N.min(total - first);
            x.clear();
            x.resize(k * L::N, P::Element::default());
            y.clear();
            y.resize(k * L::N, P::Element::default());
            for lane in 0..count {
                let place = first + lane;
                let (row, column) = (place / n, place / (m * n) * n + place % n);
                for (slot, &index) in plan.order.iter().enumerate() {
                    x[slot * L::N + lane] = P::convert(&plan.a, problems.a, row * k + index);
                    y[slot * L::N + lane] = P::convert(&plan.b, problems.b, column * k + index);
                }
            }
            let places = [Places { first, stride: 1, count }];
            outputs::<L, P, true, 1>(lanes, plan, &x, &y, problems.c, d, places, &mut general);
        }
        return general;
    }
    let by_rows = layout == Layout::Rows;
    let (wide, narrow) = if by_rows { (m, n) } else { (n, m) };
    let groups = wide.div_ceil(L::N);
    let (x_converter, y_converter) = if by_rows { (&plan.a, &plan.b) } else { (&plan.b, &plan.a) };
    x.resize(groups * L::N * k, P::Element::default());
    y.resize(narrow * k, P::Element::default());
    for problem in 0..problems.count {
        let a = &problems.a[problem * m * k * plan.a.bytes..][..m * k * plan.a.bytes];
        let b = &problems.b[problem * n * k * plan.b.bytes..][..n * k * plan.b.bytes];
        let (x_array, y_array) = if by_rows { (a, b) } else { (b, a) };
        convert::<L, P>(x_converter, x_array, &mut converted);
        for (row, factors) in converted.chunks_exact(k).enumerate() {
            let lanes_of_group = &mut x[row / L::N * L::N * k..][..L::N * k];
            for (slot, &index) in lanes_of_group.chunks_exact_mut(L::N).zip(&plan.order) {
                slot[row % L::N] = factors[index];
            }
        }
        convert::<L, P>(y_converter, y_array, &mut converted);
        for (factors, converted) in y.chunks_exact_mut(k).zip(converted.chunks_exact(k)) {
            for (factor, &index) in factors.iter_mut().zip(&plan.order) {
                *factor = converted[index];
            }
        }
        for (group, x) in x.chunks_exact(L::N * k).enumerate() {
            let lane = group * L::N;
            let mut row = 0;
            while row < narrow {
                let place = |row: usize| {
                    let (i, j) = if by_rows { (lane, row) } else { (row, lane) };
                    let stride = if by_rows { n } else { 1 };
                    Places { first: (problem * m + i) * n + j, stride, count: L::N.min(wide - lane) }
                };
                let y = &y[row * k..];
                if row + SIDE_BY_SIDE <= narrow {
                    let places = [place(row), place(row + 1), place(row + 2), place(row + 3)];
                    outputs::<L, P, false, SIDE_BY_SIDE>(
                        lanes,
                        plan,
                        x,
                        y,
                        problems.c,
                        d,
                        places,
                        &mut general,
                    );
                    row += SIDE_BY_SIDE;
                } else {
                    outputs::<L, P, false, 1>(lanes, plan, x, y, problems.c, d, [place(row)], &mut general);
                    row += 1;
                }
            }
        }
    }
    general
}

/// Converts a matrix.
#[inline(always)]
fn convert<L: Lanes, P: Precision<L>>(converter: &Converter, array: &[u8], out: &mut Vec<P::Element>) {
    let converter = *converter;
    out.resize(array.len() / converter.bytes, P::Element::default());
    if converter.is_plain {
        for (index, element) in out.iter_mut().enumerate() {
            *element = P::read(array, index);
        }
    } else {
        for (index, element) in out.iter_mut().enumerate() {
            *element = P::convert(&converter, array, index);
        }
    }
}

/// Computes R vectors of outputs. `PAIRS` says that both factors are in lanes.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "what a kernel works on; a struct of it would be used once")]
fn outputs<L: Lanes, P: Precision<L>, const PAIRS: bool, const R: usize>(
    lanes: L,
    plan: &FloatPlan,
    x: &[P::Element],
    y: &[P::Element],
    c: &[u8],
    d: &mut [u8],
    places: [Places; R],
    general: &mut Vec<usize>,
) {
    let k = plan.order.len();
    let zero = P::number(lanes, P::constant(lanes, 0));
    let mut initial = [zero; R];
    let mut buffer = [P::Element::default(); 16];
    for row in 0..R {
        let Places { first, stride, count } = places[row];
        let bits = if stride == 1 && count == L::N && plan.c.is_plain {
            P::load_bytes(lanes, &c[first * P::BYTES..])
        } else {
            for (lane, element) in buffer.iter_mut().enumerate().take(count) {
                *element = P::convert(&plan.c, c, first + lane * stride);
            }
            P::load(lanes, &buffer)
        };
        initial[row] = P::number(lanes, bits);
    }
    let mut sums = initial;
    if plan.is_chain {
        for slot in 0..k {
            let x = P::number(lanes, P::load(lanes, &x[slot * L::N..]));
            for (row, sum) in sums.iter_mut().enumerate() {
                let y = P::number(lanes, factor::<L, P, PAIRS>(lanes, y, row * k + slot));
                *sum = x.mul_add(y, *sum);
            }
        }
    } else {
        let mut stack = [[zero; R]; MAX_DEPTH];
        let (mut depth, mut slot) = (0, 0);
        for &operation in &plan.operations {
            match operation {
                Operation::Accumulator => {
                    stack[depth] = initial;
                    depth += 1;
                }
                Operation::Zero => {
                    stack[depth] = [zero; R];
                    depth += 1;
                }
                Operation::Multiply | Operation::MultiplyAdd => {
                    let adds = operation == Operation::MultiplyAdd;
                    let x = P::number(lanes, P::load(lanes, &x[slot * L::N..]));
                    depth += usize::from(!adds);
                    for (row, top) in stack[depth - 1].iter_mut().enumerate() {
                        let y = P::number(lanes, factor::<L, P, PAIRS>(lanes, y, row * k + slot));
                        let number = if adds { x.mul_add(y, *top) } else { x.mul(y) };
                        *top = flush::<L, P>(lanes, plan, number);
                    }
                    slot += 1;
                }
                Operation::Add => {
                    depth -= 1;
                    let top = stack[depth];
                    for (sum, summand) in stack[depth - 1].iter_mut().zip(top) {
                        *sum = flush::<L, P>(lanes, plan, sum.add(summand));
                    }
                }
            }
        }
        sums = stack[0];
    }
    let magnitude = P::constant(lanes, i64::MAX >> (64 - 8 * P::BYTES));
    let infinity = P::constant(lanes, infinity::<L, P>());
    for row in 0..R {
        let Places { first, stride, count } = places[row];
        let bits = P::bits(lanes, sums[row]);
        let is_nan = bits.and(magnitude).gt(infinity);
        if P::any(lanes, is_nan) && !plan.nan_is_known {
            P::store(lanes, bits, &mut buffer);
            general
                .extend((0..count).filter(|&lane| P::is_nan(buffer[lane])).map(|lane| first + lane * stride));
        }
        let bits = P::Bits::select(is_nan, P::constant(lanes, plan.nan as i64), bits);
        if stride == 1 && count == L::N {
            P::store_bytes(lanes, bits, &mut d[first * P::BYTES..]);
        } else {
            P::store(lanes, bits, &mut buffer);
            for (lane, &element) in buffer.iter().enumerate().take(count) {
                P::write(element, d, first + lane * stride);
            }
        }
    }
}

/// The bits of infinity.
const fn infinity<L: Lanes, P: Precision<L>>() -> i64 {
    // All bits above the smallest normal number's, but the sign.
    (i64::MAX >> (64 - 8 * P::BYTES)) & -P::NORMAL
}

#[inline(always)]
fn factor<L: Lanes, P: Precision<L>, const PAIRS: bool>(lanes: L, y: &[P::Element], index: usize) -> P::Bits {
    if PAIRS { P::load(lanes, &y[index * L::N..]) } else { P::splat(lanes, y[index]) }
}

/// Makes subnormal numbers zeros of their sign, where the plan says so.
#[inline(always)]
fn flush<L: Lanes, P: Precision<L>>(lanes: L, plan: &FloatPlan, number: P::Number) -> P::Number {
    if !plan.flushed {
        return number;
    }
    let bits = P::bits(lanes, number);
    let sign = P::constant(lanes, !(i64::MAX >> (64 - 8 * P::BYTES)));
    let magnitude = bits.and(P::constant(lanes, i64::MAX >> (64 - 8 * P::BYTES)));
    let subnormal = P::constant(lanes, P::NORMAL).gt(magnitude);
    P::number(lanes, P::Bits::select(subnormal, bits.and(sign), bits))
}
