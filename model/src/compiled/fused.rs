//! Fused sums: one, or a chain of them, with c among the summands or added late to one or more dot
//! products (FDA, FDRDA, GFDRDA and the chains of these), or of exact sums times scales (GDFS).

mod kernel;
mod special;

use alloc::vec;
use alloc::vec::Vec;

use super::operand::{NOWHERE, Reader, Unpacker};
use super::rounding::Rounder;
use crate::format::{Decoded, Format, Specials, UE4M3, UE8M0};
use crate::rounding::Rounding;
use crate::tree::{
    Added, Exponents, Fused, Model, NanRule, Node, NodeId, Normalised, Operand, Product, Rule, Scale,
    ZeroTerms,
};

pub(super) use kernel::FusedJob;

/// How many dot products the kernel can join.
const MAX_DOTS: usize = 4;

/// A tree of fused sums that the kernel can run.
#[derive(Clone, Debug)]
pub(super) struct FusedPlan {
    a: Reader,
    b: Reader,
    /// c, as an operand.
    c: Unpacker,
    c_reader: Reader,
    /// c, where it is the result of an earlier sum.
    sum: Unpacker,
    sum_reader: Reader,
    d: Rounder,
    d_format: Format,
    /// The products' indices in the order in which they are added.
    pub order: Vec<usize>,
    steps: Vec<Step>,
    /// How products are aligned.
    dot: Grid,
    /// How dot products are joined and c is added; `None` where c is one of the fused summands.
    late: Option<Late>,
    /// The alignment of c.
    c_grid: Grid,
    /// What a product is shifted to the right besides its distance from the largest exponent.
    extra_shift: i32,
    /// How many aligned products can be added in 32 bits.
    in_32_bits: usize,
    /// Whether all products and c can, in every step.
    narrow: bool,
    zero_sums_counted: bool,
    /// Products of 2^this or more are infinite.
    overflows_at: Option<i32>,
    negative_zeros_stay: bool,
    cancellation_is_negative: bool,
    /// The block scales: powers of two, but where the summands are exact sums.
    scale: Option<Scale>,
    /// Fraction bits of scaled exact sums, where these are the summands.
    grouped: Option<i32>,
    nan: u64,
    nan_is_known: bool,
}

/// One fused sum of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    dots: Vec<Vec<Run>>,
    /// All its products.
    all: Run,
}

/// Products that stand one after the other and share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: usize,
    end: usize,
    block: usize,
}

/// An alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Grid {
    fraction_bits: i32,
    /// Whether cut off magnitudes, or else two's complement numbers.
    truncates: bool,
    floor: i32,
}

/// c added to dot products.
#[derive(Clone, Debug)]
struct Late {
    /// How several dot products are joined.
    join: Option<Grid>,
    /// How the dot product is aligned.
    dot: Grid,
    /// The distance from which on c is truncated.
    far: Option<i32>,
}

impl FusedPlan {
    /// A plan for this model, if it has the right shape.
    pub fn new(model: &Model) -> Option<FusedPlan> {
        let chain = Chain::of(model)?;
        let zeros = chain.zeros?;
        let (a, b) = (Reader::new(&model.a, zeros)?, Reader::new(&model.b, zeros)?);
        let overflows_at = match model.product {
            Product::Exact => None,
            Product::OverflowsAt { exponent } if chain.infinite_operands_first && model.scale.is_none() => {
                Some(exponent)
            }
            _ => return None,
        };
        if model.scale.is_some_and(|scale| !scale_is_supported(&scale, chain.grouped)) {
            return None;
        }
        let nan = match model.nan {
            NanRule::Canonical(bits) => bits,
            _ => model.d.pack(Decoded::Nan { negative: false, fraction: 1 << (model.d.fraction_bits - 1) }),
        };
        if !matches!(model.d.decode(nan), Decoded::Nan { .. }) || nan >> 32 != 0 {
            return None;
        }
        let dot = chain.dot?;
        if chain.grouped {
            return FusedPlan::grouped(model, chain, zeros, nan);
        }
        // Products get as many fraction bits as the alignment keeps; both factors' shares fit 16 bits.
        let product_bits = (a.fraction_bits() + b.fraction_bits()) as i32;
        let shift = (dot.fraction_bits - product_bits).max(0) as u32;
        let shift_a = shift.min(14_u32.checked_sub(a.fraction_bits())?);
        let shift_b = shift - shift_a;
        if b.fraction_bits() + shift_b > 14 {
            return None;
        }
        let widest = |reader: &Reader, shift| ((2i64 << reader.fraction_bits()) - 1) << shift;
        let largest = widest(&a, shift_a) * widest(&b, shift_b);
        let extra_shift = (product_bits - dot.fraction_bits).max(0);
        let in_32_bits = (i64::from(i32::MAX) / ((largest >> extra_shift) + 1)) as usize;
        // The last sum's width: integer bits, fraction bits, carries, sign.
        let (finest, join) = match &chain.late {
            None => (dot.fraction_bits, None),
            Some(late) => (late.dot.fraction_bits.max(chain.c_grid.fraction_bits), late.join),
        };
        let widest =
            [finest, dot.fraction_bits, join.map_or(0, |join| join.fraction_bits)].into_iter().max()?;
        let carries = model.k.ilog2() as i32 + 4;
        if widest + carries + 2 > 62 || in_32_bits == 0 || extra_shift > 31 {
            return None;
        }
        let c = 2i64.checked_shl(chain.c_grid.fraction_bits as u32).unwrap_or(i64::MAX);
        let most = chain.steps.iter().map(|step| step.all.end - step.all.first).max()? as i64;
        let narrow = chain.late.is_none() && most * ((largest >> extra_shift) + 1) < i64::from(i32::MAX) - c;
        let readers = (a.shifted(shift_a), b.shifted(shift_b).halved());
        let plan = FusedPlan::of_chain(model, chain, zeros, nan, readers)?;
        Some(FusedPlan { extra_shift, in_32_bits, narrow, overflows_at, ..plan })
    }

    /// A plan for exact sums that are scaled, then added.
    fn grouped(model: &Model, chain: Chain, zeros: ZeroTerms, nan: u64) -> Option<FusedPlan> {
        let (a, b, scale) = (&model.a.format, &model.b.format, model.scale?.format);
        // Fixed-point numbers of 16 bits, without infinities and NaNs; sums of 32 bits; zeros are all +0.
        let widest = |format: &Format| {
            i64::from(format.max_significand() as u32)
                << (format.max_exponent() - format.min_exponent()).min(16)
        };
        let longest =
            chain.steps.iter().flat_map(|step| &step.dots).flatten().map(|run| run.end - run.first).max()?;
        let scales = i64::from(scale.max_significand() as u32).pow(2);
        let largest = (widest(a) * widest(b)).saturating_mul(longest as i64 * scales);
        let signs = &chain.last.zero;
        let small = [a, b]
            .into_iter()
            .all(|format| format.specials == Specials::FiniteOnly && widest(format) < 1 << 15);
        if !small
            || largest > i64::from(i32::MAX)
            || signs.negative_zeros_stay
            || signs.cancellation_is_negative
            || model.product != Product::Exact
        {
            return None;
        }
        let fraction_bits = -a.min_quantum() - b.min_quantum() + 2 * scale.fraction_bits as i32;
        let finest = chain.dot?.fraction_bits;
        let groups = chain.steps.iter().map(|step| step.dots.len()).max()?;
        // Integer and fraction bits of the largest summand, carries, the sign.
        let bits = largest.ilog2() as i32 + 1 + (finest - fraction_bits).max(0);
        if bits.max(finest + 2) + groups.ilog2() as i32 + 3 > 62 {
            return None;
        }
        let reader = |operand: &Operand| Some(Reader::new(operand, ZeroTerms::Counted)?.fixed());
        let readers = (reader(&model.a)?, reader(&model.b)?.halved());
        let plan = FusedPlan::of_chain(model, chain, zeros, nan, readers)?;
        Some(FusedPlan { grouped: Some(fraction_bits), ..plan })
    }

    fn of_chain(
        model: &Model,
        chain: Chain,
        zeros: ZeroTerms,
        nan: u64,
        (a, b): (Reader, Reader),
    ) -> Option<FusedPlan> {
        let sum = Operand::plain(model.d);
        Some(FusedPlan {
            a,
            b,
            c: Unpacker::new(&model.c, zeros)?,
            c_reader: Reader::new(&model.c, zeros)?,
            sum: Unpacker::new(&sum, zeros)?,
            sum_reader: Reader::new(&sum, zeros)?,
            d: Rounder::new(chain.last)?,
            d_format: model.d,
            order: chain.order,
            steps: chain.steps,
            dot: chain.dot?,
            late: chain.late,
            c_grid: chain.c_grid,
            extra_shift: 0,
            in_32_bits: usize::MAX,
            narrow: false,
            zero_sums_counted: zeros != ZeroTerms::Ignored,
            overflows_at: None,
            negative_zeros_stay: chain.last.zero.negative_zeros_stay,
            cancellation_is_negative: chain.last.zero.cancellation_is_negative,
            scale: model.scale,
            grouped: None,
            nan,
            nan_is_known: !matches!(model.nan, NanRule::Propagated(_) | NanRule::Merged { .. }),
        })
    }
}

/// Single products are scaled by powers of two alone; exact sums by what has few bits.
fn scale_is_supported(scale: &Scale, grouped: bool) -> bool {
    scale.format == UE8M0 || grouped && scale.format == UE4M3
}

/// What the tree's shape says, gathered from the root down.
struct Chain<'m> {
    model: &'m Model,
    last: &'m Rule,
    order: Vec<usize>,
    steps: Vec<Step>,
    dot: Option<Grid>,
    late: Option<Late>,
    c_grid: Grid,
    zeros: Option<ZeroTerms>,
    infinite_operands_first: bool,
    /// Whether summands are scaled exact sums.
    grouped: bool,
}

impl<'m> Chain<'m> {
    fn of(model: &'m Model) -> Option<Chain<'m>> {
        let Node::Sum { rule, .. } = model.tree.nodes.last()? else { return None };
        let last = &model.tree.rules[*rule];
        // From the root down; turned around in the end.
        let mut sums: Vec<&[NodeId]> = Vec::new();
        let mut at = model.tree.nodes.len() - 1;
        let accumulator = loop {
            let Node::Sum { children, rule } = &model.tree.nodes[at] else { return None };
            if &model.tree.rules[*rule] != last {
                return None;
            }
            sums.push(children);
            let mut others = children.iter().enumerate().filter(|(_, child)| model.is_accumulated(**child));
            let (position, &child) = others.next()?;
            if others.next().is_some() {
                return None;
            }
            if matches!(model.tree.nodes[child], Node::Accumulator) {
                break position;
            }
            at = child;
        };
        let c_grid = Grid { fraction_bits: 0, truncates: true, floor: NOWHERE };
        let mut chain = Chain {
            model,
            last,
            order: Vec::new(),
            steps: Vec::new(),
            dot: None,
            late: None,
            c_grid,
            zeros: None,
            infinite_operands_first: last.infinite_operands_first,
            grouped: false,
        };
        for children in sums.into_iter().rev() {
            let place = children.iter().position(|&child| model.is_accumulated(child))?;
            if place != accumulator {
                return None;
            }
            chain.add_step(children, place)?;
        }
        chain.check_zero_signs()?;
        Some(chain)
    }

    /// One sum of the chain, whose child at `place` is c or an earlier sum.
    fn add_step(&mut self, children: &'m [NodeId], place: usize) -> Option<()> {
        let fused = self.fused(self.last)?;
        let others: Vec<NodeId> =
            children.iter().enumerate().filter(|(at, _)| *at != place).map(|(_, &child)| child).collect();
        let first = self.order.len();
        let dots = match others[..] {
            [] => return None,
            [only] if matches!(self.model.tree.nodes[only], Node::Sum { .. }) => {
                let alignment = fused.alignment_of(1 - place);
                let c = fused.alignment_of(place);
                if alignment.far.is_some() || c.far.is_some_and(|far| far.rounding != Rounding::TowardZero) {
                    return None;
                }
                let (dots, join) = self.dots(only)?;
                let late = Late {
                    join,
                    dot: grid(alignment.fraction_bits, alignment.rounding, fused)?,
                    far: c.far.map(|far| far.distance),
                };
                self.c_grid = grid(c.fraction_bits, c.rounding, fused)?;
                if self.steps.is_empty() {
                    self.late = Some(late);
                } else if self.late.as_ref()?.join != late.join {
                    return None;
                }
                dots
            }
            _ => {
                let grid = uniform(fused)?;
                if self.late.is_some() || self.dot.is_some_and(|dot| dot != grid) {
                    return None;
                }
                self.c_grid = grid;
                self.dot = Some(grid);
                let groups = self.groups(&others);
                if self.grouped != groups.is_some() && !self.steps.is_empty() {
                    return None;
                }
                self.grouped = groups.is_some();
                match groups {
                    Some(groups) => groups,
                    None => vec![self.products(&others)?],
                }
            }
        };
        let all = Run { first, end: self.order.len(), block: 0 };
        self.steps.push(Step { dots, all });
        Some(())
    }

    /// The dot products below an open sum: itself, or those that it joins.
    fn dots(&mut self, node: NodeId) -> Option<(Vec<Vec<Run>>, Option<Grid>)> {
        let Node::Sum { children, rule } = &self.model.tree.nodes[node] else { return None };
        let rule = self.open(*rule)?;
        let is_sum = |&child: &NodeId| matches!(self.model.tree.nodes[child], Node::Sum { .. });
        if !children.iter().any(is_sum) {
            return Some((vec![self.dot(children, rule)?], None));
        }
        if children.len() > MAX_DOTS {
            return None;
        }
        let join = uniform(self.fused(rule)?)?;
        let mut dots = Vec::new();
        for &child in children {
            let Node::Sum { children, rule } = &self.model.tree.nodes[child] else { return None };
            let rule = self.open(*rule)?;
            dots.push(self.dot(children, rule)?);
        }
        Some((dots, Some(join)))
    }

    fn dot(&mut self, children: &[NodeId], rule: &'m Rule) -> Option<Vec<Run>> {
        let grid = uniform(self.fused(rule)?)?;
        if self.dot.is_some_and(|dot| dot != grid) {
            return None;
        }
        self.dot = Some(grid);
        self.products(children)
    }

    /// Scaled exact sums that are filed under the exponents of their scales. What sign their zeros have does not show: it is
    /// forgotten by the sum that they are added in, [or else there is no plan](FusedPlan::grouped).
    fn groups(&mut self, nodes: &[NodeId]) -> Option<Vec<Vec<Run>>> {
        let group = |&node: &NodeId| {
            let Node::Scaled { child, block } = self.model.tree.nodes[node] else { return None };
            let Node::Sum { children, rule } = &self.model.tree.nodes[child] else { return None };
            let rule = &self.model.tree.rules[*rule];
            let is_exact =
                rule.added == Added::Exact && rule.normalised == Normalised::No { exponent: Some(0) };
            let product = |&child: &NodeId| match self.model.tree.nodes[child] {
                Node::Product(k) if is_exact => Some(k),
                _ => None,
            };
            Some((block, children.iter().map(product).collect::<Option<Vec<usize>>>()?))
        };
        let groups: Vec<(usize, Vec<usize>)> = nodes.iter().map(group).collect::<Option<_>>()?;
        let mut runs = Vec::new();
        for (block, products) in groups {
            let first = self.order.len();
            self.order.extend(products);
            runs.push(vec![Run { first, end: self.order.len(), block }]);
        }
        Some(runs)
    }

    /// The rule of a sum that is not normalised.
    fn open(&self, rule: usize) -> Option<&'m Rule> {
        let rule = &self.model.tree.rules[rule];
        let same_signs = rule.zero.negative_zeros_stay == self.last.zero.negative_zeros_stay
            && rule.zero.cancellation_is_negative == self.last.zero.cancellation_is_negative;
        (rule.normalised == Normalised::No { exponent: None }
            && same_signs
            && rule.infinite_operands_first == self.last.infinite_operands_first)
            .then_some(rule)
    }

    /// Appends products, in runs that share a scale.
    fn products(&mut self, nodes: &[NodeId]) -> Option<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        for &node in nodes {
            let (product, block) = match self.model.tree.nodes[node] {
                Node::Product(k) if self.model.scale.is_none() => (k, 0),
                Node::Scaled { child, block } => match self.model.tree.nodes[child] {
                    Node::Product(k) => (k, block),
                    _ => return None,
                },
                _ => return None,
            };
            let at = self.order.len();
            self.order.push(product);
            match runs.last_mut() {
                Some(run) if run.block == block => run.end = at + 1,
                _ => runs.push(Run { first: at, end: at + 1, block }),
            }
        }
        Some(runs)
    }

    /// The fused sum of a rule, if it is of a kind that the kernel has, and counts zeros like the others.
    fn fused(&mut self, rule: &'m Rule) -> Option<&'m Fused> {
        let Added::Fused(fused) = &rule.added else { return None };
        let same_zeros = self.zeros.is_none_or(|zeros| zeros == fused.zeros);
        self.zeros = Some(fused.zeros);
        (same_zeros && fused.exponents == Exponents::Raw && fused.carry.is_none() && !fused.sticky)
            .then_some(fused)
    }

    /// The kernel looks at all summands of a step together to find the sign of a zero.
    fn check_zero_signs(&self) -> Option<()> {
        (self.late.is_none() || !self.last.zero.cancellation_is_negative).then_some(())
    }
}

impl Model {
    /// Whether a node is c, or a sum that has been normalised.
    fn is_accumulated(&self, node: NodeId) -> bool {
        match &self.tree.nodes[node] {
            Node::Accumulator => true,
            Node::Sum { rule, .. } => matches!(self.tree.rules[*rule].normalised, Normalised::To(_)),
            _ => false,
        }
    }
}

fn grid(fraction_bits: u32, rounding: Rounding, fused: &Fused) -> Option<Grid> {
    let truncates = match rounding {
        Rounding::TowardZero => true,
        Rounding::Down => false,
        _ => return None,
    };
    // Not deeper than where zeros stand, nor so high that distances would not fit.
    let floor = fused.floor.unwrap_or(NOWHERE);
    (floor.abs() <= NOWHERE.abs()).then_some(Grid { fraction_bits: fraction_bits as i32, truncates, floor })
}

/// The alignment that all summands have.
fn uniform(fused: &Fused) -> Option<Grid> {
    let (first, others) = fused.alignment.split_first()?;
    if first.far.is_some() || others.iter().any(|other| other != first) {
        return None;
    }
    grid(first.fraction_bits, first.rounding, fused)
}
