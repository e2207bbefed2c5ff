//! What a page about a sheet shows, as plain data: the same for Markdown and HTML.
//!
//! Every text that comes from a sheet is made [printable] here, so that nothing in it is invisible;
//! escaping is left to those who write markup.

use crate::bits::Shown;
use crate::device::Instruction;
use crate::generate::Source;
use crate::markdown::printable;
use crate::model::{Format, Model};
use crate::report::evidence::{Asked, Supported, add_witnesses, asked, stated};
use crate::report::parameters::{Columns, Parameter, columns, parameters};
use crate::report::significands::{Picture, pictures};
use crate::report::special::{Case, cases, statements};
use crate::report::{ReportError, tree};
use crate::sheet::draw::draw;
use crate::sheet::schema::{Ambiguity, Counterexample, Entry, NanPayloads, Sheet, Status, Validation};
use crate::sheet::spelling::{Bits, Phrase, Spelled};
use crate::sheet::table::{counted, formats};
use crate::sheet::{Amendment, Arithmetic};

/// Columns of trees in text.
const TREE_WIDTH: usize = 76;

/// Instructions of a group that a table names at once.
const NAMED: usize = 4;

/// A page about one sheet.
pub struct Page {
    /// The name of its files.
    pub name: String,
    /// Whose instructions these are.
    pub title: String,
    /// Facts about the sheet: what, and its value.
    pub facts: Vec<(String, String)>,
    /// What the device lacks, and why.
    pub absent: Vec<(String, String)>,
    /// How many instructions there are.
    pub instructions: usize,
    /// Those that say the same together, in the sheet's order.
    pub groups: Vec<Group>,
}

/// Instructions of which the sheet says the same.
pub struct Group {
    /// What links lead to.
    pub anchor: String,
    /// The instructions; at least one.
    pub members: Vec<Member>,
    /// How far the answers led.
    pub status: Status,
    /// The algorithm, or `unnamed`.
    pub algorithm: String,
    /// What they compute, in words.
    pub summary: String,
    /// The arithmetic, if there is one.
    pub arithmetic: Option<Details>,
    /// Modes of the machine: which, what they do, and what supports that.
    pub modes: Vec<(String, String, String)>,
    /// What the answers left open.
    pub ambiguous: Vec<Open>,
    /// What else says the same.
    pub equivalent: Vec<Open>,
    /// What publications disagree about: name, statement, source, alternative, its source.
    pub disputed: Vec<[String; 5]>,
    /// Notes that all of them share.
    pub notes: Vec<String>,
}

/// What is drawn of an arithmetic.
pub struct Details {
    /// Its row in the summary.
    pub columns: Columns,
    /// Every parameter.
    pub parameters: Vec<Parameter>,
    /// The instruction for which formats are drawn, where there are several.
    pub drawn_for: Option<String>,
    /// The tree in characters.
    pub tree: Vec<String>,
    /// The tree as an SVG element.
    pub tree_svg: String,
    /// A picture for each rule.
    pub pictures: Vec<Picture>,
    /// What is said of special values.
    pub special: Vec<String>,
    /// What comes out of them.
    pub cases: Vec<Case>,
}

/// An instruction.
pub struct Member {
    /// Its name.
    pub name: String,
    /// Whose mode it is, and which.
    pub mode: Option<String>,
    /// m×n×k.
    pub shape: String,
    /// `fp16·fp16 + fp32`.
    pub formats: String,
    /// The validation in a few characters.
    pub validated: String,
    /// The validation in full.
    pub validation: Vec<String>,
    /// What supports what is said.
    pub evidence: Vec<Supported>,
    /// What the probes asked.
    pub asked: Vec<Asked>,
    /// The simplest input that is not explained, a line each.
    pub counterexample: Vec<String>,
    /// What it took.
    pub cost: Option<String>,
    /// Notes that not all of the group share.
    pub notes: Vec<String>,
}

/// Something that could be said otherwise.
pub struct Open {
    /// What it is about.
    pub statement: String,
    /// What it could be.
    pub alternatives: Vec<String>,
    /// What was tried to tell them apart.
    pub tried: String,
}

impl Page {
    /// Lays out a sheet.
    ///
    /// # Errors
    /// If its arithmetic makes no sense, or a recording contradicts it.
    pub fn new(source: &Source) -> Result<Page, ReportError> {
        let Source { name, sheet, .. } = source;
        let mut groups: Vec<(Claim, Vec<&Entry>)> = Vec::new();
        for entry in listed(sheet) {
            let claim = Claim::of(entry);
            match groups.iter_mut().find(|(other, _)| *other == claim) {
                Some((_, entries)) => entries.push(entry),
                None => groups.push((claim, vec![entry])),
            }
        }
        let groups = groups
            .into_iter()
            .enumerate()
            .map(|(index, (_, entries))| group(source, index, &entries))
            .collect::<Result<Vec<Group>, ReportError>>()?;
        Ok(Page {
            name: name.clone(),
            title: printable(&sheet.device.description),
            facts: facts(sheet),
            absent: sheet
                .absent
                .iter()
                .map(|absent| (printable(&absent.name), printable(&absent.reason)))
                .collect(),
            instructions: listed(sheet).count(),
            groups,
        })
    }
}

/// The entries of a sheet that are worth a place: a mode without effect is told with its instruction.
pub fn listed(sheet: &Sheet) -> impl Iterator<Item = &Entry> {
    sheet.instructions.iter().filter(|entry| entry.status != Status::ModeWithoutEffect)
}

/// What has to be the same for instructions to be told of together: everything that is claimed but for the
/// formats of A and B.
#[derive(PartialEq)]
struct Claim {
    arithmetic: Option<Arithmetic>,
    status: Status,
    algorithm: String,
    ambiguous: Vec<Ambiguity>,
    equivalent: Vec<Ambiguity>,
    disputed: Vec<(String, String, Amendment)>,
    modes: Vec<(String, String)>,
    /// Of an instruction without arithmetic, its name: it is told of alone.
    alone: Option<String>,
}

impl Claim {
    fn of(entry: &Entry) -> Claim {
        let mut arithmetic = entry.arithmetic.clone();
        if let Some(own) = &mut arithmetic {
            (own.a.format, own.b.format) = (own.d, own.d);
        }
        let disputes = entry.disputed.iter();
        let alone = entry.arithmetic.is_none() || entry.counterexample.is_some();
        Claim {
            arithmetic,
            status: entry.status,
            algorithm: entry.algorithm.clone(),
            ambiguous: entry.ambiguous.clone(),
            equivalent: entry.equivalent.clone(),
            disputed: disputes
                .map(|d| (d.name.clone(), d.alternative.clone(), d.amendment.clone()))
                .collect(),
            modes: entry.modes.iter().map(|mode| (mode.mode.clone(), mode.effect.clone())).collect(),
            alone: alone.then(|| entry.name.clone()),
        }
    }
}

fn facts(sheet: &Sheet) -> Vec<(String, String)> {
    let mut facts = vec![
        ("device".to_string(), sheet.device.name.clone()),
        ("provenance".to_string(), Phrase(sheet.provenance).to_string()),
        ("tool".to_string(), sheet.tool.clone()),
    ];
    facts.extend(sheet.date.iter().map(|date| ("date".to_string(), date.clone())));
    facts.extend(sheet.device.properties.0.iter().cloned());
    facts.into_iter().map(|(what, value)| (printable(&what), printable(&value))).collect()
}

fn group(source: &Source, index: usize, entries: &[&Entry]) -> Result<Group, ReportError> {
    let first = entries[0];
    let shared = |note: &String| entries.iter().all(|entry| entry.notes.contains(note));
    let members = entries
        .iter()
        .map(|entry| member(source, entry, &|note| entries.len() > 1 && shared(note)))
        .collect::<Result<Vec<Member>, ReportError>>()?;
    let mut models = Vec::new();
    for entry in entries {
        if let Some(model) = model(source, entry)? {
            models.push((entry.instruction(), model));
        }
    }
    let open = |ambiguities: &[Ambiguity]| ambiguities.iter().map(Open::from).collect::<Vec<_>>();
    let p = |text: &String| printable(text);
    Ok(Group {
        anchor: format!("i{}", index + 1),
        members,
        status: first.status,
        algorithm: printable(&first.algorithm),
        summary: printable(&first.summary),
        arithmetic: details(&models),
        modes: first.modes.iter().map(|own| (p(&own.mode), p(&own.effect), p(&own.evidence))).collect(),
        ambiguous: open(&first.ambiguous),
        equivalent: open(&first.equivalent),
        disputed: first
            .disputed
            .iter()
            .map(|d| [&d.name, &d.statement, &d.source, &d.alternative, &d.alternative_source].map(p))
            .collect(),
        notes: if entries.len() > 1 {
            first.notes.iter().filter(|note| shared(note)).map(p).collect()
        } else {
            Vec::new()
        },
    })
}

/// Drawings of models that differ in the formats of A and B alone: of the one with the widest products.
fn details(models: &[(Instruction, Model)]) -> Option<Details> {
    let width =
        |(_, model): &&(Instruction, Model)| model.a.format.fraction_bits + model.b.format.fraction_bits;
    // Of equally wide ones the first; `max_by_key` would take the last.
    let (instruction, model) = models.iter().rev().max_by_key(width)?;
    Some(Details {
        columns: columns(model),
        parameters: parameters(model),
        drawn_for: (models.len() > 1).then(|| printable(&instruction.name)),
        tree: draw(model, TREE_WIDTH),
        tree_svg: tree::svg(model),
        pictures: pictures(model),
        special: statements(model),
        cases: cases(instruction, model),
    })
}

fn model(source: &Source, entry: &Entry) -> Result<Option<Model>, ReportError> {
    let model = entry.arithmetic.as_ref().map(Model::try_from).transpose();
    model.map_err(|error| ReportError::Arithmetic {
        sheet: source.name.clone(),
        instruction: entry.name.clone(),
        error,
    })
}

fn member(
    source: &Source,
    entry: &Entry,
    is_shared: &dyn Fn(&String) -> bool,
) -> Result<Member, ReportError> {
    let instruction = entry.instruction();
    let mut evidence = stated(entry);
    let mut probes = Vec::new();
    if let Some(model) = model(source, entry)? {
        probes = asked(&evidence, &instruction, &model);
        let recorded = source.recorded.as_ref().and_then(|recorded| recorded.get(&entry.name));
        if let Some(recorded) = recorded.filter(|_| entry.status.is_executable()) {
            add_witnesses(&mut evidence, &instruction, &model, recorded)?;
        }
    }
    let formats = formats(&entry.formats).replace('\n', " ");
    let scale =
        entry.scale.map(|scale| format!(", a {} scale for each {} elements", scale.format, scale.block));
    let notes = entry.notes.iter().filter(|note| !is_shared(note));
    Ok(Member {
        name: printable(&entry.name),
        mode: entry.mode_of.as_ref().map(|of| printable(&format!("{} with {}", of.instruction, of.mode))),
        shape: format!("{}×{}×{}", entry.shape.m, entry.shape.n, entry.shape.k),
        formats: formats + &scale.unwrap_or_default(),
        validated: match &entry.validation {
            None => "–".to_string(),
            Some(Validation { mismatches: 0, dot_adds, .. }) => counted(*dot_adds, "dot-add"),
            Some(Validation { mismatches, .. }) => counted(*mismatches, "mismatch"),
        },
        validation: entry.validation.as_ref().map(validation).unwrap_or_default(),
        evidence,
        asked: probes,
        counterexample: entry
            .counterexample
            .as_ref()
            .map(|example| counterexample(&instruction, example))
            .unwrap_or_default(),
        cost: entry.cost.map(|cost| {
            format!("{} in {}", counted(cost.dot_adds, "dot-add"), counted(cost.rounds, "round"))
        }),
        notes: notes.map(|note| printable(note)).collect(),
    })
}

fn validation(validation: &Validation) -> Vec<String> {
    let payloads = match validation.nan_payloads {
        NanPayloads::Compared => "NaNs compared bit for bit",
        NanPayloads::NotCompared => "all NaNs taken as one",
    };
    let mut lines = vec![format!(
        "{}, {}, seed {}, {payloads}",
        counted(validation.dot_adds, "dot-add"),
        counted(validation.mismatches, "mismatch"),
        validation.seed
    )];
    let parts: Vec<String> = validation
        .distributions
        .iter()
        .map(|part| format!("{} {}", counted(part.dot_adds, "dot-add"), printable(&part.name)))
        .collect();
    if !parts.is_empty() {
        lines.push(parts.join(", "));
    }
    lines.push(printable(&validation.bound));
    lines
}

fn counterexample(instruction: &Instruction, example: &Counterexample) -> Vec<String> {
    let Counterexample { a, b, c, sa, sb, device, model, note } = example;
    let Instruction { a: of_a, b: of_b, c: of_c, d: of_d, scale, .. } = instruction;
    let shown = |format: &Format, bits: &str| match Bits::read(bits) {
        Ok(Bits(bits)) if bits & !format.mask() == 0 => Shown { format, bits }.to_string(),
        _ => printable(bits),
    };
    let mut lines = vec![printable(note), format!("c = {}", shown(of_c, c))];
    let scales = scale.as_ref().map_or(of_a, |scale| &scale.format);
    for (name, format, elements) in [("a", of_a, a), ("b", of_b, b), ("sa", scales, sa), ("sb", scales, sb)] {
        for (index, bits) in elements.iter().enumerate() {
            lines.push(format!("{name}[{index}] = {}", shown(format, bits)));
        }
    }
    lines.push(format!("the device gives {}", shown(of_d, device)));
    lines.extend(model.iter().map(|bits| format!("the arithmetic gives {}", shown(of_d, bits))));
    lines
}

impl From<&Ambiguity> for Open {
    fn from(ambiguity: &Ambiguity) -> Open {
        let Ambiguity { statement, alternatives, tried } = ambiguity;
        Open {
            statement: printable(statement),
            alternatives: alternatives.iter().map(|text| printable(text)).collect(),
            tried: printable(tried),
        }
    }
}

impl Member {
    /// Whether anybody was asked.
    pub fn was_asked(&self) -> bool {
        self.evidence.iter().any(|own| own.answers > 0) || !self.validation.is_empty()
    }

    /// What is said of it where nobody was asked: who says what, and notes.
    pub fn sayings(&self) -> Vec<String> {
        let said = self.evidence.iter().map(|own| match &own.source {
            Some(source) => format!("{} ({source})", own.statement),
            None => own.statement.clone(),
        });
        said.chain(self.notes.iter().cloned()).collect()
    }
}

impl Group {
    /// What it is called: its first instruction, and how many more there are.
    pub fn title(&self) -> (&str, String) {
        let more = match self.members.len() {
            1 => String::new(),
            many => format!(" and {} more", many - 1),
        };
        (&self.members[0].name, more)
    }

    /// The instructions that a table names at once.
    pub fn shown(&self) -> &[Member] {
        &self.members[..self.members.len().min(NAMED)]
    }

    /// The instructions that it folds.
    pub fn folded(&self) -> &[Member] {
        &self.members[self.shown().len()..]
    }

    /// What could be said otherwise, under titles.
    pub fn open(&self) -> [(&'static str, &[Open]); 2] {
        [("Ambiguous", &self.ambiguous), ("Not told apart", &self.equivalent)]
    }

    /// Whether there is a page's worth to say of each instruction, and not a line.
    pub fn was_asked(&self) -> bool {
        self.members.iter().any(|own| own.was_asked() || !own.counterexample.is_empty())
    }

    /// Why there is no arithmetic.
    pub fn without_arithmetic(&self) -> String {
        match self.status {
            status if status.is_executable() => "The sheet knows no arithmetic of it.".to_string(),
            status => format!("The sheet gives no tree: it is {status}."),
        }
    }

    /// A warning, if the arithmetic does not stand for the device.
    pub fn warning(&self) -> Option<&'static str> {
        (self.status == Status::Refuted)
            .then_some("The device contradicts this arithmetic: see the counterexample.")
    }
}
