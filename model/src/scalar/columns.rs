//! Many dot-adds at once, by models with other rules for the same sums.
//!
//! Inference holds thousands of rules against the same answers. [`Columns`] keep the value that one model gives to each
//! node for each of these dot-adds, column by column, so that a neighbour's sums are added in the
//! [lanes](crate::compiled::Level) of a vector, one dot-add in each. What a lane cannot hold (infinities, NaNs, numbers
//! of more than 62 bits) is left open, and has to be executed on its [own](Scalar::execute_from).

mod kernel;

use alloc::vec;
use alloc::vec::Vec;

use super::cell::Cell;
use super::{Changes, Exact, Grafts, Inputs, Scalar};
use crate::compiled::Level;
use crate::compiled::lanes;
use crate::execute::BELOW_ALL;
use crate::format::Decoded;
use crate::tree::{Model, ModelError, Node, NodeId, Product};

/// Lanes of the widest vectors: what columns are a multiple of.
const WIDEST: usize = 16;

/// What is said of a value beside its significand and its exponents: its sign, whether it is a sum that was not
/// normalised, and whether a lane cannot hold it.
const NEGATIVE: i32 = 1;
const OPEN_SUM: i32 = 2;
const UNFIT: i32 = 4;

/// The bits of a magnitude that a lane holds.
const MAGNITUDE_BITS: u32 = 62;

/// The bits of a product of two scales that a lane multiplies with.
const SCALE_BITS: u32 = 8;

/// The values that a model gives to the nodes of its tree, for many dot-adds, and the d that each is to have.
#[derive(Clone, Debug)]
pub struct Columns {
    dot_adds: usize,
    /// The same, and so many more that only whole vectors are left.
    length: usize,
    /// One column for each node.
    values: Values,
    /// For each block of the tree that has scales and for each dot-add, the product of the two scales.
    scales: Values,
    /// The d that each dot-add is to have, where it is a number.
    wanted: Values,
    /// For each dot-add, −1 if the model gives it another d, or else 0.
    missed: Vec<i32>,
}

/// Values of nodes, one list for each thing about them.
#[derive(Clone, Debug, Default)]
struct Values {
    magnitudes: Vec<i64>,
    /// Exponents of the lowest bits.
    lowest: Vec<i32>,
    exponents: Vec<i32>,
    flags: Vec<i32>,
}

impl Values {
    /// So many zeros, none of which fits.
    fn unfit(length: usize) -> Values {
        Values {
            magnitudes: vec![0; length],
            lowest: vec![0; length],
            exponents: vec![0; length],
            flags: vec![UNFIT; length],
        }
    }

    fn set(&mut self, place: usize, magnitude: u64, lowest: i32, exponent: i32, flags: i32) {
        self.magnitudes[place] = magnitude as i64;
        self.lowest[place] = lowest;
        self.exponents[place] = exponent;
        self.flags[place] = flags;
    }

    /// Takes over so many values of others.
    fn copy(&mut self, to: usize, others: &Values, from: usize, number: usize) {
        self.magnitudes[to..to + number].copy_from_slice(&others.magnitudes[from..from + number]);
        self.lowest[to..to + number].copy_from_slice(&others.lowest[from..from + number]);
        self.exponents[to..to + number].copy_from_slice(&others.exponents[from..from + number]);
        self.flags[to..to + number].copy_from_slice(&others.flags[from..from + number]);
    }

    /// A number, if it fits.
    fn set_cell(&mut self, place: usize, cell: &Cell) {
        let [magnitude, high] = cell.halves;
        if cell.is_special || high != 0 || magnitude >> MAGNITUDE_BITS != 0 {
            return;
        }
        let flags = if cell.negative { NEGATIVE } else { 0 } | if cell.is_open_sum { OPEN_SUM } else { 0 };
        self.set(place, magnitude, cell.lsb, cell.exponent, flags);
    }
}

impl Columns {
    /// What a model makes of dot-adds: the operands of each, and the bit pattern of the d that it is to have. Two of these
    /// patterns `differ` where that says so.
    ///
    /// # Errors
    /// If the model [cannot be executed](Model::check).
    pub fn new<'n>(
        model: &Model,
        dot_adds: impl Iterator<Item = (&'n Inputs, u64)>,
        differ: impl Fn(u64, u64) -> bool,
    ) -> Result<Columns, ModelError> {
        let mut lockstep = Lockstep::new(model)?;
        let (asked, wanted): (Vec<&Inputs>, Vec<u64>) = dot_adds.unzip();
        let mut columns = Columns::unfit(model, asked.len());
        let mut found = Vec::with_capacity(asked.len());
        for (index, some) in asked.chunks(WIDEST).enumerate() {
            lockstep.execute_some(some, &mut found, Some((&mut columns, index * WIDEST)));
        }
        for (place, (wanted, d)) in wanted.into_iter().zip(found).enumerate() {
            columns.want(model, place, wanted);
            columns.missed[place] = -i32::from(differ(d, wanted));
            columns.set_scales(model, place, asked[place]);
        }
        Ok(columns)
    }

    /// Room for what so many dot-adds come to.
    fn unfit(model: &Model, dot_adds: usize) -> Columns {
        let length = dot_adds.next_multiple_of(WIDEST);
        let blocks = model.scale.map_or(0, |scale| model.k.div_ceil(scale.block.max(1)));
        Columns {
            dot_adds,
            length,
            values: Values::unfit(model.tree.nodes.len() * length),
            scales: Values::unfit(blocks * length),
            wanted: Values::unfit(length),
            missed: vec![0; length],
        }
    }

    /// The d that a dot-add is to have, if that is a number.
    fn want(&mut self, model: &Model, place: usize, d: u64) {
        if let Decoded::Finite { negative, significand, exponent } = model.d.decode(d)
            && model.d.pack(Decoded::Finite { negative, significand, exponent }) == d
        {
            self.wanted.set(place, significand, 0, exponent, i32::from(negative));
        }
    }

    /// The values of so many dot-adds from this place on: those of leaves, from one of theirs on, and of what was evaluated.
    fn take_over(
        &mut self,
        model: &Model,
        to: usize,
        number: usize,
        (leaves, from): (&Columns, usize),
        evaluated: &Scratch,
    ) {
        for (id, node) in model.tree.nodes.iter().enumerate() {
            let to = id * self.length + to;
            match node {
                Node::Sum { .. } | Node::Scaled { .. } => {
                    self.values.copy(to, &evaluated.values, id * WIDEST, number)
                }
                _ => self.values.copy(to, &leaves.values, id * WIDEST + from, number),
            }
        }
    }

    /// The values of a dot-add that is executed alone, and its d.
    fn take_alone(&mut self, scalar: &mut Scalar, place: usize, inputs: &Inputs) -> u64 {
        let Some(nodes) = scalar.nodes(inputs) else { return scalar.execute(inputs) };
        for (node, cell) in nodes.cells.iter().enumerate() {
            self.values.set_cell(node * self.length + place, cell);
        }
        nodes.d()
    }

    /// The scales of a dot-add.
    fn set_scales(&mut self, model: &Model, place: usize, inputs: &Inputs) {
        let Some(scale) = model.scale else { return };
        let blocks = self.scales.magnitudes.len() / self.length;
        for (block, scales) in inputs.scales.iter().take(blocks).enumerate() {
            let lowest = scales.exponent - 2 * scale.format.fraction_bits as i32;
            let fits = scales.is_known && scales.magnitude >> SCALE_BITS == 0;
            let flags = if fits { i32::from(scales.negative) } else { UNFIT };
            self.scales.set(block * self.length + place, scales.magnitude, lowest, scales.exponent, flags);
        }
    }

    /// Which of the dot-adds from this one on, as many as a vector holds, get another d than they are to have by another
    /// model, which can be executed, where these steps lead from the model's values to its own.
    ///
    /// # Panics
    /// If there is no such dot-add, or if the steps are those of other trees.
    pub fn differing(&self, other: &Model, steps: Steps, from: usize, scratch: &mut Scratch) -> Differing {
        assert!(from < self.dot_adds, "there are {} dot-adds", self.dot_adds);
        scratch.make_room(other.tree.nodes.len());
        let level = scratch.level;
        lanes::run(level, kernel::Held { columns: self, other, steps, from, scratch })
    }
}

/// What is evaluated of another model.
#[derive(Clone, Copy, Debug)]
pub enum Steps<'a> {
    /// What is different over the same tree, as far as that shows: in [sums](Changes::are_of_sums) alone.
    Changed(&'a Changes),
    /// What another tree does not have in common with the model's.
    Grafted(&'a Grafts),
}

/// Executes a model on many dot-adds, as many at once as vectors have lanes; bit for bit as [`Scalar`] does.
#[derive(Clone, Debug)]
pub struct Lockstep<'m> {
    scalar: Scalar<'m>,
    /// One vector's products and c.
    leaves: Columns,
    grafts: Grafts,
    scratch: Scratch,
}

impl<'m> Lockstep<'m> {
    /// Prepares a model for execution.
    ///
    /// # Errors
    /// If the model [cannot be executed](Model::check).
    pub fn new(model: &'m Model) -> Result<Lockstep<'m>, ModelError> {
        Ok(Lockstep::with(Scalar::new(model)?))
    }

    /// The same, of the model that this executes.
    ///
    /// # Panics
    /// If it [follows](Scalar::follow) other rules than the model's.
    pub fn with(scalar: Scalar<'m>) -> Lockstep<'m> {
        assert!(scalar.follows_model, "lanes follow the model's rules");
        let model = scalar.model();
        let mut leaves = Columns::unfit(model, WIDEST);
        for (id, node) in model.tree.nodes.iter().enumerate() {
            if *node == Node::Zero {
                (0..WIDEST).for_each(|lane| leaves.values.set(id * WIDEST + lane, 0, 0, BELOW_ALL, 0));
            }
        }
        let scratch = Scratch::new(Level::best());
        Lockstep { scalar, leaves, grafts: Grafts::onto_leaves(model), scratch }
    }

    /// Dot-adds in a vector, at most.
    pub const LANES: usize = WIDEST;

    /// Adds the d of each of these dot-adds, in their order.
    ///
    /// # Panics
    /// If there are fewer operands than the model calls for.
    pub fn execute(&mut self, dot_adds: &[&Inputs], d: &mut Vec<u64>) {
        dot_adds.chunks(WIDEST).for_each(|some| self.execute_some(some, d, None));
    }

    /// The same for those of a vector, at most; the values of all nodes can be kept, as far as they fit, in columns from a
    /// place on.
    fn execute_some(
        &mut self,
        dot_adds: &[&Inputs],
        d: &mut Vec<u64>,
        mut keep: Option<(&mut Columns, usize)>,
    ) {
        let model = self.scalar.model();
        self.leaves.dot_adds = dot_adds.len();
        for (lane, inputs) in dot_adds.iter().enumerate() {
            self.set_leaves(lane, inputs);
        }
        let mut from = 0;
        while from < dot_adds.len() {
            let Lockstep { leaves, grafts, scratch, .. } = self;
            let told = leaves.differing(model, Steps::Grafted(grafts), from, scratch);
            if let Some((columns, first)) = &mut keep {
                columns.take_over(model, *first + from, told.number, (&self.leaves, from), &self.scratch);
            }
            for (lane, inputs) in dot_adds[from..from + told.number].iter().enumerate() {
                let is_open = told.is_open >> lane & 1 == 1;
                d.push(match &mut keep {
                    _ if !is_open => self.scratch.d(model, lane),
                    Some((columns, first)) => {
                        columns.take_alone(&mut self.scalar, *first + from + lane, inputs)
                    }
                    None => self.scalar.execute(inputs),
                });
            }
            from += told.number;
        }
    }

    /// The products, c and the scales of a dot-add.
    fn set_leaves(&mut self, lane: usize, inputs: &Inputs) {
        let model = self.scalar.model();
        // What was decoded in other formats is left open.
        let is_usable = inputs.formats == self.scalar.formats;
        let is_exact = is_usable && self.scalar.plain[..2] == [true; 2] && model.product == Product::Exact;
        for (id, node) in model.tree.nodes.iter().enumerate() {
            if !matches!(node, Node::Product(_) | Node::Accumulator) {
                continue;
            }
            let place = id * WIDEST + lane;
            if is_exact
                && let Node::Product(k) = node
                && let &Exact { magnitude, exponent, negative, is_known: true, .. } = &inputs.products[*k]
                && magnitude >> MAGNITUDE_BITS == 0
            {
                let lowest = exponent - self.scalar.product_fraction_bits;
                self.leaves.values.set(place, magnitude, lowest, exponent, i32::from(negative));
                continue;
            }
            self.leaves.values.flags[place] = UNFIT;
            if is_usable && self.scalar.node(id, &inputs.elements, &inputs.products).is_some() {
                self.leaves.values.set_cell(place, &self.scalar.cells[id]);
            }
        }
        self.leaves.set_scales(model, lane, inputs);
    }
}

/// What some dot-adds come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differing {
    /// How many they are.
    pub number: usize,
    /// A bit for each, the first lowest: whether its d is another than it is to be.
    pub differs: u32,
    /// Whether that is left open.
    pub is_open: u32,
    /// Whether any of its nodes may have another value than the model's. By a model over another tree: yes.
    pub differs_inside: u32,
}

/// Room for the values of one vector of dot-adds.
#[derive(Clone, Debug)]
pub struct Scratch {
    level: Level,
    values: Values,
    /// For each node and lane, −1 if its value is another than the model's, or else 0.
    differs: Vec<i32>,
    /// For each node, whether that is so of any lane.
    any_differs: Vec<bool>,
    /// For each node, the one of the model's tree that has its value, where none is evaluated.
    sources: Vec<NodeId>,
}

impl Scratch {
    /// For the vectors of this level, or for portable ones, where this machine lacks it.
    pub fn new(level: Level) -> Scratch {
        Scratch {
            level,
            values: Values::default(),
            differs: Vec::new(),
            any_differs: Vec::new(),
            sources: Vec::new(),
        }
    }

    fn make_room(&mut self, nodes: usize) {
        if self.any_differs.len() < nodes {
            self.values = Values::unfit(nodes * WIDEST);
            self.differs = vec![0; nodes * WIDEST];
            self.any_differs = vec![false; nodes];
            self.sources = (0..nodes).collect();
        }
    }

    /// The d of a dot-add whose root's value fits.
    fn d(&self, model: &Model, lane: usize) -> u64 {
        let place = (model.tree.nodes.len() - 1) * WIDEST + lane;
        let (magnitude, exponent) = (self.values.magnitudes[place], self.values.exponents[place]);
        let negative = self.values.flags[place] & NEGATIVE != 0;
        model.d.pack(Decoded::Finite { negative, significand: magnitude as u64, exponent })
    }
}
