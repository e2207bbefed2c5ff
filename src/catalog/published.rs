//! Parameter sheets of what is published, made from the catalogue.

use mmaprobe_model::tree::NanRule;

use crate::catalog::arithmetic::{Checked, Disputed};
use crate::catalog::{Architecture, Family};
use crate::device::Provenance;
use crate::sheet::ordered::Ordered;
use crate::sheet::schema::{DeviceFacts, Dispute, Formats, SCHEMA, Shape, Statement};
use crate::sheet::words::describe;
use crate::sheet::{Amendment, Arithmetic, Entry, Sheet, Status};

/// The sheet that follows from an architecture's catalogue file; `None` if the file does not say what
/// any instruction computes.
pub fn sheet(architecture: &Architecture) -> Option<Sheet> {
    let assembler = architecture.assembled.as_ref().map(|assembled| assembled.by.as_str());
    let instructions: Vec<Entry> =
        architecture.families.iter().filter_map(|family| entry(family, assembler)).collect();
    if instructions.is_empty() {
        return None;
    }
    let targets = architecture.targets.join(", ");
    let kind = if architecture.is_of_processors() { "processors" } else { "gpus" };
    let gpus: Vec<&str> = architecture.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    Some(Sheet {
        schema: SCHEMA.to_string(),
        tool: concat!("mmaprobe ", env!("CARGO_PKG_VERSION")).to_string(),
        device: DeviceFacts {
            name: architecture.name.clone(),
            description: format!("{} ({targets}) as published", architecture.title),
            properties: Ordered(vec![(kind.to_string(), gpus.join(", "))]),
        },
        provenance: Provenance::Published,
        date: None,
        absent: Vec::new(),
        instructions,
    })
}

/// The entry of an instruction, in its smallest shape; `assembler` is what was seen to make one machine
/// instruction of it.
fn entry(family: &Family, assembler: Option<&str>) -> Option<Entry> {
    let published = family.published.as_ref()?;
    // Reading the catalogue has made these models before.
    let model = published.model(&family.types).ok()?;
    let arithmetic = Arithmetic::from(&model);
    let disputed: Vec<Dispute> =
        published.disputes.iter().filter_map(|dispute| disputed(family, dispute, &arithmetic)).collect();
    let mut notes = Vec::new();
    if published.checked == Checked::Recorded {
        notes.push("Recordings of GPUs of this architecture agree with it.".to_string());
    }
    if family.blocks > 1 {
        notes.push(format!("One execution computes {} such problems.", family.blocks));
    }
    if family.pattern.contains('{') {
        notes.push(format!("It comes with {}, and computes the same with each.", family.shapes()));
    }
    let (m, n) = family.smallest();
    if let Some(assembler) = assembler {
        let isa = family.isa(m, n);
        notes.push(format!(
            "One instruction of the machine: {assembler} makes {isa} of it, and nothing else."
        ));
    }
    if model.nan == NanRule::Unknown {
        notes.push("Which NaN a NaN result is has not been published.".to_string());
    }
    let instruction = family.instruction(m, n);
    let mut statement = published.algorithm.to_string();
    if family.isa != family.pattern {
        statement += &format!(" for {}", family.isa(m, n));
    }
    Some(Entry {
        name: instruction.name,
        mode_of: None,
        shape: Shape { m, n, k: instruction.k },
        formats: Formats { a: instruction.a, b: instruction.b, c: instruction.c, d: instruction.d },
        scale: instruction.scale.map(Into::into),
        status: Status::Published,
        algorithm: published.algorithm.to_string(),
        summary: describe(&model),
        arithmetic: Some(arithmetic),
        modes: Vec::new(),
        evidence: vec![Statement {
            statement,
            probes: Vec::new(),
            answers: 0,
            rejected: Vec::new(),
            source: Some(published.source.clone()),
        }],
        equivalent: Vec::new(),
        ambiguous: Vec::new(),
        disputed,
        counterexample: None,
        validation: None,
        cost: None,
        notes,
    })
}

/// The published sheet with a hypothetical variant as the arithmetic of every instruction that has it;
/// `None` if none has one of that name.
pub fn with_variant(architecture: &Architecture, sheet: &Sheet, name: &str) -> Option<Sheet> {
    let mut sheet = sheet.clone();
    let mut any = false;
    for family in &architecture.families {
        let Some(published) = &family.published else { continue };
        let Some(variant) = published.variants.iter().find(|variant| variant.name == name) else { continue };
        let (m, n) = family.smallest();
        let listed = family.name(m, n);
        let entry = sheet.instructions.iter_mut().find(|entry| entry.name == listed)?;
        // Reading the catalogue has made this model before.
        let model = published.alternative(&variant.alternative, &family.types).ok()?;
        entry.arithmetic = Some(Arithmetic::from(&model));
        any = true;
    }
    any.then_some(sheet)
}

fn disputed(family: &Family, disputed: &Disputed, arithmetic: &Arithmetic) -> Option<Dispute> {
    let model = family.published.as_ref()?.alternative(&disputed.alternative, &family.types).ok()?;
    let text = &disputed.dispute;
    Some(Dispute {
        name: disputed.name.clone(),
        statement: text.statement.clone(),
        source: text.source.clone(),
        alternative: text.alternative.clone(),
        alternative_source: text.alternative_source.clone(),
        amendment: Amendment::between(arithmetic, &Arithmetic::from(&model)),
    })
}
