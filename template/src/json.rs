//! As much JSON as the device protocol needs: objects of strings, numbers and words.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

/// A value in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A string.
    String(String),
    /// A number, `true`, `false` or `null`, as it is written.
    Word(String),
}

impl Value {
    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            Value::Word(_) => None,
        }
    }

    /// The number, if it is a whole one that is not negative.
    pub fn as_count(&self) -> Option<usize> {
        match self {
            Value::String(_) => None,
            Value::Word(word) => word.parse().ok(),
        }
    }
}

/// A string as JSON has it.
pub fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control < ' ' => quoted += &format!("\\u{:04x}", u32::from(control)),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}

/// Reads an object whose values are strings, numbers and words.
pub fn object(line: &str) -> Result<HashMap<String, Value>, String> {
    let mut rest = line.trim().chars().peekable();
    let object = members(&mut rest).and_then(|object| rest.next().is_none().then_some(object));
    object.ok_or_else(|| format!("no request: {:?}", line.trim_end()))
}

fn members(rest: &mut Peekable<Chars>) -> Option<HashMap<String, Value>> {
    let mut object = HashMap::new();
    rest.next_if_eq(&'{')?;
    blanks(rest);
    if rest.next_if_eq(&'}').is_some() {
        return Some(object);
    }
    loop {
        blanks(rest);
        let name = text(rest)?;
        blanks(rest);
        rest.next_if_eq(&':')?;
        blanks(rest);
        let value = match rest.peek()? {
            '"' => Value::String(text(rest)?),
            _ => Value::Word(word(rest)?),
        };
        object.insert(name, value);
        blanks(rest);
        match rest.next()? {
            ',' => {}
            '}' => return Some(object),
            _ => return None,
        }
    }
}

fn blanks(rest: &mut Peekable<Chars>) {
    while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
}

fn word(rest: &mut Peekable<Chars>) -> Option<String> {
    let mut word = String::new();
    while let Some(c) = rest.next_if(|&c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
        word.push(c);
    }
    (!word.is_empty()).then_some(word)
}

fn text(rest: &mut Peekable<Chars>) -> Option<String> {
    rest.next_if_eq(&'"')?;
    let mut units: Vec<u16> = Vec::new();
    loop {
        let character = match rest.next()? {
            '"' => return String::from_utf16(&units).ok(),
            '\\' => match rest.next()? {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let digits: String = rest.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).ok()?);
                    continue;
                }
                other => other,
            },
            other => other,
        };
        units.extend_from_slice(character.encode_utf16(&mut [0; 2]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let request =
            object(r#" {"op": "run", "instruction":"a \"b\"\\\u00e9\ud83d\ude00", "count":12} "#).unwrap();
        assert_eq!(request["op"].as_str(), Some("run"));
        assert_eq!(request["instruction"].as_str(), Some("a \"b\"\\é😀"));
        assert_eq!(request["count"].as_count(), Some(12));
        assert_eq!(request["op"].as_count(), None);
        assert_eq!(object("{}").unwrap(), HashMap::new());
    }

    #[test]
    fn anything_else_is_refused() {
        for line in ["", "{", "[]", r#"{"op"}"#, r#"{"op":}"#, r#"{"op":"run"} x"#, r#"{"op":"\ud83d"}"#] {
            assert!(object(line).is_err(), "{line}");
        }
        assert_eq!(object(r#"{"n":-1}"#).unwrap()["n"].as_count(), None);
    }

    #[test]
    fn strings_are_written_as_they_are_read() {
        for text in ["", "plain", "quote \" backslash \\ newline \n tab \t é"] {
            let line = format!("{{\"text\":{}}}", string(text));
            assert_eq!(object(&line).unwrap()["text"].as_str(), Some(text));
        }
    }
}
