//! The sums of a vector of dot-adds.

mod rounding;

use super::{
    Columns, Differing, MAGNITUDE_BITS, NEGATIVE, OPEN_SUM, SCALE_BITS, Scratch, Steps, UNFIT, Values, WIDEST,
};
use crate::compiled::lanes::{Int, Job, Lanes};
use crate::execute::BELOW_ALL;
use crate::scalar::grafts::Step;
use crate::scalar::{Changes, Grafts};
use crate::tree::{
    Added, Beyond, Carry, Exponents, Fused, Model, Node, NodeId, Normalised, Rule, ZeroSigns, ZeroTerms,
};
use rounding::{rounded, shift_right};

/// Below all exponents, and above all.
const NONE: i64 = -(1 << 40);
const BEYOND: i64 = 1 << 40;

/// A neighbour held against the dot-adds of one vector.
pub(super) struct Held<'a> {
    pub columns: &'a Columns,
    pub other: &'a Model,
    pub steps: Steps<'a>,
    /// The first of the dot-adds.
    pub from: usize,
    pub scratch: &'a mut Scratch,
}

/// The value of a node in each lane.
#[derive(Clone, Copy)]
struct Cells<L: Lanes> {
    magnitude: L::D,
    /// Exponent of the lowest bit.
    lowest: L::D,
    exponent: L::D,
    flags: L::D,
}

/// What summands add up to in each lane, before anything is rounded.
struct Total<L: Lanes> {
    /// With its sign.
    sum: L::D,
    lowest: L::D,
    exponent: L::D,
    unfit: L::D,
}

impl Job for Held<'_> {
    type Output = Differing;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Differing {
        let Held { columns, other, steps, from, scratch } = self;
        let number = L::N.min(columns.dot_adds - from);
        let everyone = u32::MAX >> (32 - number);
        let root = other.tree.nodes.len() - 1;
        scratch.any_differs[..=root].fill(false);
        let differs_inside = match steps {
            Steps::Changed(changes) => {
                changed(lanes, changes, other, columns, from, scratch);
                bits(lanes, any_of(lanes, &changes.nodes, scratch)) & everyone
            }
            Steps::Grafted(grafts) => {
                grafted(lanes, grafts, other, columns, from, scratch);
                everyone
            }
        };
        let missed = lanes.load(&columns.missed[from..]);
        if !scratch.any_differs[root] {
            return Differing { number, differs: bits(lanes, missed) & everyone, is_open: 0, differs_inside };
        }
        let differs = lanes.load(&scratch.differs[root * WIDEST..]);
        let now = load(lanes, &scratch.values, root * WIDEST);
        let wanted = load(lanes, &columns.wanted, from);
        let is_wanted = now
            .magnitude
            .eq(wanted.magnitude)
            .and(now.exponent.eq(wanted.exponent))
            .and(now.flags.eq(wanted.flags));
        let is_missed = lanes.splat(-1).xor(lanes.narrow(is_wanted));
        let is_unfit = lanes.narrow(has(lanes, now.flags, UNFIT)).and(differs);
        let missed = L::W::select(differs, is_missed, missed);
        let is_open = bits(lanes, is_unfit) & everyone;
        Differing { number, differs: bits(lanes, missed) & everyone & !is_open, is_open, differs_inside }
    }
}

/// Evaluates what is different about another model over the same tree.
#[inline(always)]
fn changed<L: Lanes>(
    lanes: L,
    changes: &Changes,
    other: &Model,
    columns: &Columns,
    from: usize,
    scratch: &mut Scratch,
) {
    scratch.sources.iter_mut().enumerate().for_each(|(node, source)| *source = node);
    for &id in &changes.nodes {
        let node = &other.tree.nodes[id];
        let is_own = changes.own[id];
        if !is_own && !node.children().iter().any(|&child| scratch.any_differs[child]) {
            continue;
        }
        let needed = needed(lanes, is_own, node.children(), scratch);
        let cells = evaluated(lanes, id, other, columns, from, scratch);
        let before = load(lanes, &columns.values, id * columns.length + from);
        let is_same = cells
            .magnitude
            .eq(before.magnitude)
            .and(cells.lowest.eq(before.lowest))
            .and(cells.exponent.eq(before.exponent))
            .and(cells.flags.eq(before.flags));
        // What does not fit is not known to be the same.
        let is_unfit = lanes.narrow(has(lanes, cells.flags, UNFIT));
        let differs = lanes.splat(-1).xor(lanes.narrow(is_same)).or(is_unfit).and(needed);
        if !lanes.any(differs) {
            continue;
        }
        let mask = lanes.widen(differs);
        let cells = Cells {
            magnitude: L::D::select(mask, cells.magnitude, before.magnitude),
            lowest: L::D::select(mask, cells.lowest, before.lowest),
            exponent: L::D::select(mask, cells.exponent, before.exponent),
            flags: L::D::select(mask, cells.flags, before.flags),
        };
        keep(lanes, id, cells, differs, scratch);
    }
}

/// Evaluates what another tree does not have in common with the model's.
#[inline(always)]
fn grafted<L: Lanes>(
    lanes: L,
    grafts: &Grafts,
    other: &Model,
    columns: &Columns,
    from: usize,
    scratch: &mut Scratch,
) {
    for &(id, step) in &grafts.steps {
        match step {
            Step::Taken(source) => scratch.sources[id] = source,
            Step::Evaluated => {
                let cells = evaluated(lanes, id, other, columns, from, scratch);
                keep(lanes, id, cells, lanes.splat(-1), scratch);
            }
        }
    }
}

/// What a node comes to.
#[inline(always)]
fn evaluated<L: Lanes>(
    lanes: L,
    id: NodeId,
    other: &Model,
    columns: &Columns,
    from: usize,
    scratch: &Scratch,
) -> Cells<L> {
    match &other.tree.nodes[id] {
        Node::Sum { children, rule } => {
            sum(lanes, &other.tree.rules[*rule], Summands { children, columns, from, scratch })
        }
        Node::Scaled { child, block } => {
            let children = core::slice::from_ref(child);
            scaled(lanes, *block, Summands { children, columns, from, scratch })
        }
        Node::Zero => {
            let zero = lanes.splat_wide(0);
            let exponent = lanes.splat_wide(BELOW_ALL.into());
            Cells { magnitude: zero, lowest: zero, exponent, flags: zero }
        }
        Node::Product(_) | Node::Accumulator => nothing(lanes),
    }
}

/// Keeps a node's values, and in which lanes they are others than the model's.
#[inline(always)]
fn keep<L: Lanes>(lanes: L, id: NodeId, cells: Cells<L>, differs: L::W, scratch: &mut Scratch) {
    let place = id * WIDEST;
    scratch.any_differs[id] = true;
    lanes.store(differs, &mut scratch.differs[place..]);
    let Values { magnitudes, lowest, exponents, flags } = &mut scratch.values;
    lanes.store_wide(cells.magnitude, &mut magnitudes[place..]);
    lanes.store(lanes.narrow(cells.lowest), &mut lowest[place..]);
    lanes.store(lanes.narrow(cells.exponent), &mut exponents[place..]);
    lanes.store(lanes.narrow(cells.flags), &mut flags[place..]);
}

/// A bit for each lane that says yes.
#[inline(always)]
fn bits<L: Lanes>(lanes: L, mask: L::W) -> u32 {
    let mut each = [0; WIDEST];
    lanes.store(mask, &mut each);
    each.iter().rev().fold(0, |bits, &lane| bits << 1 | u32::from(lane != 0))
}

#[inline(always)]
fn load<L: Lanes>(lanes: L, values: &Values, place: usize) -> Cells<L> {
    Cells {
        magnitude: lanes.load_wide(&values.magnitudes[place..]),
        lowest: lanes.widen(lanes.load(&values.lowest[place..])),
        exponent: lanes.widen(lanes.load(&values.exponents[place..])),
        flags: lanes.widen(lanes.load(&values.flags[place..])),
    }
}

/// Whether this flag is set.
#[inline(always)]
fn has<L: Lanes>(lanes: L, flags: L::D, flag: i32) -> L::D {
    let flag = lanes.splat_wide(flag.into());
    flags.and(flag).eq(flag)
}

#[inline(always)]
fn not<L: Lanes>(lanes: L, mask: L::D) -> L::D {
    mask.xor(lanes.splat_wide(-1))
}

/// Exponent of the leading one, if there is one.
#[inline(always)]
fn leading<L: Lanes>(lanes: L, cells: &Cells<L>) -> L::D {
    cells.lowest.add(lanes.splat_wide(63)).sub(lanes.leading_zeros(cells.magnitude))
}

/// With the sign that flags say.
#[inline(always)]
fn signed<L: Lanes>(lanes: L, magnitude: L::D, flags: L::D) -> L::D {
    let sign = has(lanes, flags, NEGATIVE);
    magnitude.xor(sign).sub(sign)
}

/// In which lanes a node has to be evaluated: all, if its rule is another, or where a summand is.
#[inline(always)]
fn needed<L: Lanes>(lanes: L, is_own: bool, children: &[NodeId], scratch: &Scratch) -> L::W {
    if is_own {
        return lanes.splat(-1);
    }
    any_of(lanes, children, scratch)
}

/// In which lanes any of these nodes has another value than the model's.
#[inline(always)]
fn any_of<L: Lanes>(lanes: L, nodes: &[NodeId], scratch: &Scratch) -> L::W {
    let mut any = lanes.splat(0);
    for &node in nodes {
        if scratch.any_differs[node] {
            any = any.or(lanes.load(&scratch.differs[node * WIDEST..]));
        }
    }
    any
}

/// The summands of a sum, for the dot-adds of a vector.
#[derive(Clone, Copy)]
struct Summands<'a> {
    children: &'a [NodeId],
    columns: &'a Columns,
    from: usize,
    scratch: &'a Scratch,
}

impl Summands<'_> {
    fn number(&self) -> usize {
        self.children.len()
    }

    /// The values of one: this model's, or the other's where they are the same.
    #[inline(always)]
    fn load<L: Lanes>(self, lanes: L, position: usize) -> Cells<L> {
        let child = self.children[position];
        if self.scratch.any_differs[child] {
            load(lanes, &self.scratch.values, child * WIDEST)
        } else {
            let source = self.scratch.sources[child];
            load(lanes, &self.columns.values, source * self.columns.length + self.from)
        }
    }
}

/// A node times the scales of a block.
#[inline(always)]
fn scaled<L: Lanes>(lanes: L, block: usize, node: Summands) -> Cells<L> {
    let cells = node.load(lanes, 0);
    let Columns { scales, length, .. } = node.columns;
    let scale = load(lanes, scales, block * length + node.from);
    let one = lanes.splat_wide(1);
    let mut magnitude = cells.magnitude;
    // Mostly powers of two; otherwise products of two significands of four bits.
    let is_power = scale.magnitude.eq(one);
    if lanes.any(lanes.narrow(not(lanes, is_power))) {
        magnitude = lanes.splat_wide(0);
        for bit in 0..SCALE_BITS {
            let bit = lanes.splat_wide(bit.into());
            let is_set = scale.magnitude.srl(bit).and(one).eq(one);
            magnitude = magnitude.add(is_set.and(cells.magnitude.sll(bit)));
        }
    }
    let is_too_wide =
        not(lanes, cells.magnitude.srl(lanes.splat_wide(SCALED_BITS.into())).eq(lanes.splat_wide(0)));
    let unfit = is_too_wide.and(lanes.splat_wide(UNFIT.into()));
    let sign = scale.flags.and(lanes.splat_wide((NEGATIVE | UNFIT).into()));
    Cells {
        magnitude,
        lowest: cells.lowest.add(scale.lowest),
        exponent: cells.exponent.add(scale.exponent),
        // Of two values that do not fit, none does.
        flags: cells.flags.xor(sign).or(cells.flags.and(lanes.splat_wide(UNFIT.into()))).or(unfit),
    }
}

/// Bits of a magnitude that can be scaled.
const SCALED_BITS: u32 = MAGNITUDE_BITS - SCALE_BITS;

/// A sum by a rule.
#[inline(always)]
fn sum<L: Lanes>(lanes: L, rule: &Rule, summands: Summands) -> Cells<L> {
    let first = summands.load(lanes, 0);
    let mut unfit = first.flags;
    let mut all_zeros = lanes.splat_wide(-1);
    let mut other_signs = lanes.splat_wide(0);
    for position in 0..summands.number() {
        let cells = summands.load(lanes, position);
        unfit = unfit.or(cells.flags);
        all_zeros = all_zeros.and(cells.magnitude.eq(lanes.splat_wide(0)));
        other_signs = other_signs.or(cells.flags.xor(first.flags));
    }
    let total = match &rule.added {
        Added::Exact => {
            let kept = match &rule.normalised {
                Normalised::To(round) => Some(round.format.fraction_bits),
                Normalised::No { .. } => None,
            };
            exact(lanes, summands, kept)
        }
        Added::Fused(fused) => self::fused(lanes, fused, summands),
    };
    let unfit = has(lanes, unfit, UNFIT).or(total.unfit);
    let all_alike = all_zeros.and(not(lanes, has(lanes, other_signs, NEGATIVE)));
    let ZeroSigns { negative_zeros_stay, cancellation_is_negative, underflow_keeps_sign } = rule.zero;
    let of_zeros = match negative_zeros_stay {
        true => has(lanes, first.flags, NEGATIVE),
        false => lanes.splat_wide(0),
    };
    let of_others = lanes.splat_wide(-i64::from(cancellation_is_negative));
    let is_zero = total.sum.eq(lanes.splat_wide(0));
    let of_zero = L::D::select(all_alike, of_zeros, of_others);
    let negative = L::D::select(is_zero, of_zero, total.sum.negative());
    let magnitude = total.sum.abs();
    let (cells, is_beyond) = match &rule.normalised {
        Normalised::No { exponent } => {
            let sign = negative.and(lanes.splat_wide(NEGATIVE.into()));
            let cells = Cells {
                magnitude,
                lowest: total.lowest,
                exponent: match exponent {
                    Some(exponent) => lanes.splat_wide((*exponent).into()),
                    None => total.exponent,
                },
                flags: sign.or(lanes.splat_wide(OPEN_SUM.into())),
            };
            (cells, lanes.splat_wide(0))
        }
        // Formats without signs are no results of sums.
        Normalised::To(round) if !round.format.signed => return nothing(lanes),
        Normalised::To(round) => {
            rounded(lanes, round, negative, magnitude, total.lowest, underflow_keeps_sign)
        }
    };
    let unfit = unfit.or(is_beyond).and(lanes.splat_wide(UNFIT.into()));
    Cells { flags: cells.flags.or(unfit), ..cells }
}

/// What fits no lane.
#[inline(always)]
fn nothing<L: Lanes>(lanes: L) -> Cells<L> {
    let zero = lanes.splat_wide(0);
    Cells { magnitude: zero, lowest: zero, exponent: zero, flags: lanes.splat_wide(UNFIT.into()) }
}

/// Bits that carries of so many summands need beside the widest, and the sign; and one to spare.
fn carries(summands: usize) -> i64 {
    4 + i64::from(summands.ilog2())
}

/// The exact sum, or where it is `rounded` to so many fraction bits and does not fit, one that is rounded alike.
#[inline(always)]
fn exact<L: Lanes>(lanes: L, summands: Summands, rounded: Option<u32>) -> Total<L> {
    let number = summands.number();
    let zero = lanes.splat_wide(0);
    let mut exponent = lanes.splat_wide(NONE);
    let (mut lowest, mut highest) = (lanes.splat_wide(BEYOND), exponent);
    for position in 0..number {
        let cells = summands.load(lanes, position);
        let is_zero = cells.magnitude.eq(zero);
        exponent = exponent.max(cells.exponent);
        lowest = lowest.min(L::D::select(is_zero, lanes.splat_wide(BEYOND), cells.lowest));
        highest = highest.max(L::D::select(is_zero, lanes.splat_wide(NONE), leading(lanes, &cells)));
    }
    // Where all are zeros, any will do.
    let lowest = L::D::select(lowest.eq(lanes.splat_wide(BEYOND)), exponent, lowest);
    let room = i64::from(MAGNITUDE_BITS) - carries(number);
    let wide = highest.sub(lowest).gt(lanes.splat_wide(room));
    let Some(fraction_bits) = rounded.filter(|_| lanes.any(lanes.narrow(wide))) else {
        let mut sum = zero;
        for position in 0..number {
            let cells = summands.load(lanes, position);
            sum = sum.add(signed(lanes, cells.magnitude.sll(cells.lowest.sub(lowest)), cells.flags));
        }
        return Total { sum, lowest, exponent, unfit: wide };
    };
    // To odd, far below what is kept: then rounding again gives what rounding the exact sum gives, if no more than one
    // summand loses anything and all others are even (Boldo and Melquiond 2008).
    let unit = L::D::select(wide, highest.sub(lanes.splat_wide(room)), lowest);
    let (mut sum, mut odd, mut lossy, mut lossier) = (zero, zero, zero, zero);
    let one = lanes.splat_wide(1);
    for position in 0..number {
        let cells = summands.load(lanes, position);
        let shift = unit.sub(cells.lowest);
        let kept = cells.magnitude.srl(shift);
        let is_below = shift.gt(zero);
        let is_lost = is_below.and(not(lanes, kept.sll(shift).eq(cells.magnitude)));
        let whole = L::D::select(is_below, kept, cells.magnitude.sll(zero.sub(shift)));
        odd = odd.or(whole.and(one).eq(one).and(not(lanes, is_lost)));
        lossier = lossier.or(lossy.and(is_lost));
        lossy = lossy.or(is_lost);
        sum = sum.add(signed(lanes, whole.or(is_lost.and(one)), cells.flags));
    }
    let least = lanes.splat_wide(1 << (fraction_bits + 4));
    let is_short = least.gt(sum.abs());
    Total { sum, lowest: unit, exponent, unfit: lossier.or(lossy.and(odd.or(is_short))) }
}

/// The exponent that a summand is aligned by.
#[inline(always)]
fn exponent_of<L: Lanes>(lanes: L, exponents: Exponents, cells: &Cells<L>) -> L::D {
    match exponents {
        Exponents::Raw => cells.exponent,
        Exponents::Normalised => {
            let is_zero = cells.magnitude.eq(lanes.splat_wide(0));
            L::D::select(is_zero, cells.exponent, leading(lanes, cells))
        }
    }
}

/// The fused sum.
#[inline(always)]
fn fused<L: Lanes>(lanes: L, fused: &Fused, summands: Summands) -> Total<L> {
    let number = summands.number();
    let (zero, one) = (lanes.splat_wide(0), lanes.splat_wide(1));
    let none = lanes.splat_wide(NONE);
    let (mut largest, mut highest) = (none, none);
    for position in 0..number {
        let cells = summands.load(lanes, position);
        let is_zero = cells.magnitude.eq(zero);
        highest = highest.max(L::D::select(is_zero, none, leading(lanes, &cells)));
        let has_no_say = match fused.zeros {
            ZeroTerms::Ignored => is_zero,
            ZeroTerms::SumsCounted => is_zero.and(not(lanes, has(lanes, cells.flags, OPEN_SUM))),
            ZeroTerms::Counted | ZeroTerms::CountedAsFp32 => zero,
        };
        largest = largest.max(L::D::select(has_no_say, none, exponent_of(lanes, fused.exponents, &cells)));
    }
    if let Some(floor) = fused.floor {
        largest = largest.max(lanes.splat_wide(floor.into()));
    }
    let largest = L::D::select(largest.eq(none), lanes.splat_wide(BELOW_ALL.into()), largest);
    let alignments = &fused.alignment[..fused.alignment.len().min(number)];
    let bits = alignments.iter().map(|alignment| i64::from(alignment.fraction_bits));
    let (finest, coarsest) =
        bits.fold((0, 64), |(finest, coarsest), bits| (bits.max(finest), bits.min(coarsest)));
    let mut unit = largest.sub(lanes.splat_wide(finest));
    let room = lanes.splat_wide(i64::from(MAGNITUDE_BITS) - carries(number));
    // How a zero operand counts is not said in a lane.
    let mut unfit = lanes.splat_wide(-i64::from(fused.zeros == ZeroTerms::CountedAsFp32));
    // Where a summand is cut off further up, it may be rounded to one there.
    highest = highest.max(largest.sub(lanes.splat_wide(coarsest)));
    let is_wide = highest.sub(unit).gt(room);
    if lanes.any(lanes.narrow(is_wide)) {
        if fused.carry.is_some() || fused.sticky {
            unfit = unfit.or(is_wide);
        } else {
            // What is not there needs no room.
            unit = L::D::select(is_wide, lowest_aligned(lanes, fused, largest, unit, summands), unit);
            unfit = unfit.or(highest.sub(unit).gt(room));
        }
    }
    let (mut sum, mut lost) = (zero, zero);
    for position in 0..number {
        let cells = summands.load(lanes, position);
        let alignment = fused.alignment_of(position);
        let bits = i64::from(alignment.fraction_bits);
        let shift = largest.sub(lanes.splat_wide(bits)).sub(cells.lowest);
        let negative = has(lanes, cells.flags, NEGATIVE);
        let mut kept = shift_right(lanes, alignment.rounding, negative, cells.magnitude, shift);
        if let Some(far) = alignment.far {
            let beyond = largest.sub(lanes.splat_wide(far.distance.into())).gt(exponent_of(
                lanes,
                fused.exponents,
                &cells,
            ));
            let other = shift_right(lanes, far.rounding, negative, cells.magnitude, shift);
            kept = L::D::select(beyond, other, kept);
        }
        let finer = largest.sub(lanes.splat_wide(bits)).sub(unit);
        let is_below = shift.gt(zero);
        if fused.sticky {
            let is_whole = cells.magnitude.srl(shift).sll(shift).eq(cells.magnitude);
            lost = lost.or(is_below.and(not(lanes, is_whole)));
        }
        let whole = cells.magnitude.sll(finer.sub(shift));
        let multiple = L::D::select(is_below, kept.sll(finer), whole);
        sum = sum.add(signed(lanes, multiple, cells.flags));
    }
    if let Some(carry) = fused.carry {
        match limited(lanes, sum, carry, finest) {
            Some(limited) => sum = limited,
            None => unfit = lanes.splat_wide(-1),
        }
    }
    if fused.sticky {
        // Half a unit more in magnitude, for all alike.
        let lost = lost.and(not(lanes, sum.eq(zero))).and(one);
        let sign = sum.negative();
        sum = sum.add(sum).add(lost.xor(sign).sub(sign));
        unit = unit.sub(one);
    }
    Total { sum, lowest: unit, exponent: largest, unfit }
}

/// Exponents of the lowest bits that any summand has once it is aligned, where any is not zero.
#[inline(always)]
fn lowest_aligned<L: Lanes>(lanes: L, fused: &Fused, largest: L::D, unit: L::D, summands: Summands) -> L::D {
    let beyond = lanes.splat_wide(BEYOND);
    let mut lowest = beyond;
    for position in 0..summands.number() {
        let cells = summands.load(lanes, position);
        let bits = i64::from(fused.alignment_of(position).fraction_bits);
        let aligned = cells.lowest.max(largest.sub(lanes.splat_wide(bits)));
        let is_zero = cells.magnitude.eq(lanes.splat_wide(0));
        lowest = lowest.min(L::D::select(is_zero, beyond, aligned));
    }
    L::D::select(lowest.eq(beyond), unit, lowest)
}

/// A limit to the integer part of sums with so many fraction bits; `None` if that is not said here.
#[inline(always)]
fn limited<L: Lanes>(lanes: L, sum: L::D, carry: Carry, fraction_bits: i64) -> Option<L::D> {
    let limit_bits = i64::from(carry.bits) + fraction_bits;
    if limit_bits > 124 {
        return None;
    }
    // No lane holds more than that.
    if limit_bits > i64::from(MAGNITUDE_BITS) - 1 {
        return Some(sum);
    }
    let limit = 1i64 << limit_bits;
    Some(match carry.beyond {
        Beyond::Wraps => {
            let limit_of_each = lanes.splat_wide(limit);
            sum.add(limit_of_each).and(lanes.splat_wide(2 * limit - 1)).sub(limit_of_each)
        }
        Beyond::MagnitudeWraps => {
            let sign = sum.negative();
            // The least number is within the limit.
            let wrapped = sum.abs().and(lanes.splat_wide(limit - 1)).xor(sign).sub(sign);
            L::D::select(sum.eq(lanes.splat_wide(-limit)), sum, wrapped)
        }
        Beyond::Saturates => sum.max(lanes.splat_wide(-limit)).min(lanes.splat_wide(limit - 1)),
    })
}
