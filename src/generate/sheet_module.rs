//! The module of a sheet: each of its instructions as a constant.

use std::fmt::Write;

use crate::device::Instruction;
use crate::generate::code::Code;
use crate::generate::identifiers::Identifiers;
use crate::generate::{Included, docs, trees};
use crate::markdown;

/// The constants of a sheet's instructions.
pub struct Constants {
    /// Their names, in the order of the instructions.
    pub names: Vec<String>,
}

impl Constants {
    /// Names for the instructions of a sheet.
    pub fn of(included: &[Included]) -> Constants {
        let mut identifiers = Identifiers::without(["INSTRUCTIONS"]);
        Constants { names: included.iter().map(|own| identifiers.capital(&own.entry.name)).collect() }
    }
}

/// The source of a sheet's module. With `associated`, the instructions are constants of the type
/// `Instruction`, as suits a crate of one sheet; otherwise of the module.
pub fn source(
    sheet: &str,
    title: &str,
    included: &[Included],
    constants: &Constants,
    associated: bool,
) -> String {
    let indent = if associated { 4 } else { 0 };
    let mut body = String::new();
    if associated {
        body += "impl Instruction {\n";
    }
    for (index, (own, name)) in included.iter().zip(&constants.names).enumerate() {
        if index > 0 {
            body += "\n";
        }
        for line in docs::instruction(own.entry, &own.instruction, own.model) {
            let gap = if line.is_empty() { "" } else { " " };
            writeln!(body, "{:indent$}///{gap}{line}", "").expect("strings take any text");
        }
        let head = format!("pub const {name}: Instruction = Instruction(");
        write!(body, "{:indent$}{head}", "").expect("strings take any text");
        let facts = Code::reference(facts(sheet, own));
        facts.write(&mut body, indent, indent + head.len(), 2);
        body += ");\n";
    }
    if associated {
        body += "}\n";
    }
    let path = if associated { "Instruction::" } else { "" };
    let list = Code::reference(Code::List(
        constants.names.iter().map(|name| Code::atom(format_args!("{path}{name}"))).collect(),
    ));
    let list = list.assigned("pub const INSTRUCTIONS: &[Instruction]");
    let instructions = format!("/// Every instruction of the sheet, in its order.\n{list}");
    let imports = trees::imports(&body);
    let own = if included.is_empty() {
        "use crate::instruction::Instruction;\n"
    } else {
        "use crate::instruction::{Facts, Instruction};\n"
    };
    let mut lines: Vec<&str> = imports.split_inclusive('\n').collect();
    // In the order of the modules; a list that takes several lines is the last.
    let place = lines.iter().position(|line| *line > own).unwrap_or(lines.len());
    lines.insert(place, own);
    let title = markdown::escaped(title);
    format!("//! {title}.\n\n{}\n{instructions}\n\n{body}", lines.concat())
}

fn facts(sheet: &str, own: &Included) -> Code {
    let Instruction { m, n, a, b, c, d, scale, .. } = &own.instruction;
    Code::Struct(
        "Facts".into(),
        vec![
            ("sheet", Code::string(sheet)),
            ("name", Code::string(&own.entry.name)),
            ("status", Code::string(own.entry.status.name())),
            ("algorithm", Code::string(&own.entry.algorithm)),
            ("m", Code::atom(m)),
            ("n", Code::atom(n)),
            ("a", trees::format(a)),
            ("b", trees::format(b)),
            ("c", trees::format(c)),
            ("d", trees::format(d)),
            ("scale", Code::option(scale.as_ref().map(trees::scale))),
            ("model", trees::model(own.model)),
        ],
    )
}
