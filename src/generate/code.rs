//! Rust expressions laid out as rustfmt lays them out, with the settings of generated crates: lines of at
//! most [`WIDTH`] columns, and whatever fits on one line on one line.

use std::fmt::Write;

/// Columns that a line takes at most.
pub const WIDTH: usize = 110;

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// Text that is never broken.
    Atom(String),
    /// `Name { field: value, … }`.
    Struct(String, Vec<(&'static str, Code)>),
    /// `Name(value)`.
    Call(&'static str, Box<Code>),
    /// `name(value, …)`, of several values.
    Arguments(&'static str, Vec<Code>),
    /// `&value`.
    Reference(Box<Code>),
    /// `[value, …]`.
    List(Vec<Code>),
    /// `[value, …]`, each value on its own line below a comment.
    Commented(Vec<(String, Code)>),
}

impl Code {
    /// Text that is never broken.
    pub fn atom(text: impl std::fmt::Display) -> Code {
        Code::Atom(text.to_string())
    }

    /// A string literal.
    pub fn string(text: &str) -> Code {
        Code::Atom(format!("{text:?}"))
    }

    /// A pair.
    pub fn pair(first: &str, second: &str) -> Code {
        Code::Arguments("", vec![Code::string(first), Code::string(second)])
    }

    /// `Name(value)`.
    pub fn call(name: &'static str, value: Code) -> Code {
        Code::Call(name, Box::new(value))
    }

    /// `&value`.
    pub fn reference(value: Code) -> Code {
        Code::Reference(Box::new(value))
    }

    /// `Some(value)` or `None`.
    pub fn option(value: Option<Code>) -> Code {
        value.map_or_else(|| Code::atom("None"), |value| Code::call("Some", value))
    }

    /// On one line, if nothing forbids it.
    fn flat(&self) -> Option<String> {
        let all = |items: &[Code]| items.iter().map(Code::flat).collect::<Option<Vec<String>>>();
        match self {
            Code::Atom(text) => Some(text.clone()),
            Code::Struct(name, fields) => {
                let field = |(name, value): &(&str, Code)| Some(format!("{name}: {}", value.flat()?));
                let fields: Vec<String> = fields.iter().map(field).collect::<Option<_>>()?;
                Some(format!("{name} {{ {} }}", fields.join(", ")))
            }
            Code::Call(name, value) => Some(format!("{name}({})", value.flat()?)),
            Code::Arguments(name, items) => Some(format!("{name}({})", all(items)?.join(", "))),
            Code::Reference(value) => Some(format!("&{}", value.flat()?)),
            Code::List(items) => Some(format!("[{}]", all(items)?.join(", "))),
            Code::Commented(items) if items.is_empty() => Some("[]".to_string()),
            Code::Commented(_) => None,
        }
    }

    /// `HEAD = value;`, the head with its indentation: the value begins a line of its own if all of it fits
    /// there, and not behind the head.
    pub fn assigned(&self, head: &str) -> String {
        let indent = head.len() - head.trim_start().len();
        let mut text = format!("{head} =");
        let column = head.chars().count() + 3;
        let width = self.flat().map(|flat| flat.chars().count() + 1);
        if width.is_some_and(|width| column + width > WIDTH && indent + 4 + width <= WIDTH) {
            line(&mut text, indent + 4);
            self.write(&mut text, indent + 4, indent + 4, 1);
        } else {
            text.push(' ');
            self.write(&mut text, indent, column, 1);
        }
        text + ";"
    }

    /// Appends the expression, which starts in column `column` of a line that is indented by `indent`, and
    /// is followed by `behind` more characters on its last line.
    pub fn write(&self, text: &mut String, indent: usize, column: usize, behind: usize) {
        if let Some(flat) = self.flat()
            && column + flat.chars().count() + behind <= WIDTH
        {
            text.push_str(&flat);
            return;
        }
        let inner = indent + 4;
        match self {
            Code::Atom(atom) => text.push_str(atom),
            Code::Reference(value) => {
                text.push('&');
                value.write(text, indent, column + 1, behind);
            }
            Code::Call(name, value) => {
                text.push_str(name);
                text.push('(');
                value.write(text, indent, column + name.len() + 1, behind + 1);
                text.push(')');
            }
            Code::Struct(name, fields) => {
                text.push_str(name);
                text.push_str(" {");
                for (name, value) in fields {
                    line(text, inner);
                    text.push_str(name);
                    text.push_str(": ");
                    value.write(text, inner, inner + name.len() + 2, 1);
                    text.push(',');
                }
                line(text, indent);
                text.push('}');
            }
            // An only item that takes several lines does not get lines of its own.
            Code::List(items) if matches!(&items[..], [Code::Struct(..) | Code::Call(..)]) => {
                text.push('[');
                items[0].write(text, indent, column + 1, behind + 1);
                text.push(']');
            }
            Code::List(items) => list(text, indent, ['[', ']'], items.iter().map(|item| (None, item))),
            Code::Arguments(name, items) => {
                text.push_str(name);
                list(text, indent, ['(', ')'], items.iter().map(|item| (None, item)));
            }
            Code::Commented(items) => {
                list(text, indent, ['[', ']'], items.iter().map(|(comment, item)| (Some(comment), item)));
            }
        }
    }
}

/// Begins a line.
fn line(text: &mut String, indent: usize) {
    write!(text, "\n{:indent$}", "").expect("strings take any text");
}

fn list<'c>(
    text: &mut String,
    indent: usize,
    [opening, closing]: [char; 2],
    items: impl Iterator<Item = (Option<&'c String>, &'c Code)>,
) {
    text.push(opening);
    for (comment, item) in items {
        if let Some(comment) = comment {
            line(text, indent + 4);
            text.push_str("// ");
            text.push_str(comment);
        }
        line(text, indent + 4);
        item.write(text, indent + 4, indent + 4, 1);
        text.push(',');
    }
    line(text, indent);
    text.push(closing);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_out(code: &Code, indent: usize) -> String {
        let mut text = String::new();
        code.write(&mut text, indent, indent, 0);
        text
    }

    #[test]
    fn what_fits_stays_on_a_line() {
        let point = |name: &str| {
            Code::Struct(name.into(), vec![("x", Code::atom(1)), ("y", Code::option(Some(Code::atom(2))))])
        };
        assert_eq!(laid_out(&point("Point"), 0), "Point { x: 1, y: Some(2) }");
        let long = "P".repeat(WIDTH - 22);
        assert_eq!(laid_out(&point(&long), 0).lines().count(), 1);
        assert_eq!(
            laid_out(&point(&long), 4),
            format!("{long} {{\n        x: 1,\n        y: Some(2),\n    }}")
        );
    }

    #[test]
    fn an_only_item_shares_its_lines_with_the_brackets() {
        let item = Code::Struct("P".repeat(WIDTH), vec![("x", Code::atom(1))]);
        let name = "P".repeat(WIDTH);
        assert_eq!(laid_out(&Code::List(vec![item.clone()]), 0), format!("[{name} {{\n    x: 1,\n}}]"));
        let one = format!("    {name} {{\n        x: 1,\n    }},\n");
        assert_eq!(laid_out(&Code::List(vec![item.clone(), item]), 0), format!("[\n{one}{one}]"));
    }

    #[test]
    fn assignments_break_behind_the_sign_if_that_is_enough() {
        let list = |count: usize| Code::List((0..count).map(|_| Code::string("0123456789")).collect());
        assert_eq!(list(1).assigned("  let x"), "  let x = [\"0123456789\"];");
        let head = format!("  let {}", "x".repeat(80));
        let broken = format!("{head} =\n      [\"0123456789\", \"0123456789\"];");
        assert_eq!(list(2).assigned(&head), broken);
        assert_eq!(list(9).assigned("let x").lines().count(), 11);
    }

    #[test]
    fn comments_stand_above_what_they_are_about() {
        let code = Code::reference(Code::Commented(vec![("one".to_string(), Code::atom(1))]));
        assert_eq!(laid_out(&code, 0), "&[\n    // one\n    1,\n]");
    }
}
