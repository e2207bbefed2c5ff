//! Markdown: lines in the making, and text that stays text whatever it contains.

/// Columns that text takes at most.
pub const WIDTH: usize = 100;

/// Lines of Markdown in the making.
#[derive(Default)]
pub struct Lines(Vec<String>);

impl Lines {
    /// The lines.
    pub fn finish(self) -> Vec<String> {
        self.0
    }

    /// An empty line, unless nothing stands before it.
    pub fn gap(&mut self) {
        if !self.0.is_empty() {
            self.0.push(String::new());
        }
    }

    /// A line as it is.
    pub fn line(&mut self, line: impl Into<String>) {
        self.0.push(line.into());
    }

    /// A paragraph of text that is Markdown already.
    pub fn paragraph(&mut self, text: &str) {
        self.gap();
        self.wrap(text, "", "");
    }

    /// A heading of that level; its text is Markdown already.
    pub fn heading(&mut self, level: usize, text: &str) {
        self.gap();
        self.0.push(format!("{} {text}", "#".repeat(level)));
    }

    /// Lines of plain text, as they are.
    pub fn verbatim(&mut self, lines: &[String]) {
        self.gap();
        self.0.push("```text".to_string());
        self.0.extend(lines.iter().cloned());
        self.0.push("```".to_string());
    }

    /// A heading and a list of plain texts, if there is anything to list.
    pub fn section(&mut self, level: usize, title: &str, items: impl Iterator<Item = String>) {
        let mut items = items.peekable();
        if items.peek().is_none() {
            return;
        }
        self.heading(level, title);
        self.gap();
        for item in items {
            self.item(&escaped(&item));
        }
    }

    /// An item of a list; its text is Markdown already.
    pub fn item(&mut self, text: &str) {
        self.wrap(text, "- ", "  ");
    }

    /// A row of a table; its cells are Markdown already.
    pub fn row(&mut self, cells: &[String]) {
        self.0.push(format!("| {} |", cells.join(" | ")));
    }

    /// A table, if it has rows.
    pub fn table(&mut self, header: &[&str], rows: &[Vec<String>]) {
        if rows.is_empty() {
            return;
        }
        self.gap();
        self.row(&header.iter().map(|text| text.to_string()).collect::<Vec<_>>());
        self.0.push(format!("|{}", "---|".repeat(header.len())));
        rows.iter().for_each(|row| self.row(row));
    }

    fn wrap(&mut self, text: &str, first: &str, further: &str) {
        let options = textwrap::Options::new(WIDTH)
            .initial_indent(first)
            .subsequent_indent(further)
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        for (index, line) in textwrap::wrap(text, options).into_iter().enumerate() {
            // A first line may begin with the marker that it was given.
            let marker = if index == 0 { first } else { further };
            self.0.push(format!("{marker}{}", continued(&line[marker.len()..])));
        }
    }
}

/// Text in which nothing is Markdown but code in backticks.
pub fn escaped(text: &str) -> String {
    let text = printable(text);
    let mut escaped = String::with_capacity(text.len());
    let mut is_code = false;
    // A backtick without its other half is no code, and several in a row might begin a block of it.
    let is_paired = text.matches('`').count().is_multiple_of(2) && !text.contains("``");
    for character in text.chars() {
        match character {
            '`' if is_paired => is_code = !is_code,
            '\\' | '`' | '[' | ']' | '<' | '>' | '*' | '_' | '|' | '#' | '~' | '&' | '$' if !is_code => {
                escaped.push('\\')
            }
            _ => {}
        }
        escaped.push(character);
    }
    escaped.replace("://", ":\u{200b}//")
}

/// Text for a cell of a table, in which nothing is Markdown.
pub fn cell(text: &str) -> String {
    escaped(&text.replace('`', "'"))
}

/// A name as code in Markdown, in tables too.
pub fn code(name: &str) -> String {
    format!("`{}`", printable(name).replace(['`', '|'], "'"))
}

/// Text on one line that shows all that it says: single spaces for whatever is invisible.
pub fn printable(text: &str) -> String {
    // What stands for itself in a string literal, or only has to be escaped there.
    let is_visible = |c: char| matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1;
    let visible: String = text.chars().map(|c| if is_visible(c) { c } else { ' ' }).collect();
    visible.split(' ').filter(|word| !word.is_empty()).collect::<Vec<&str>>().join(" ")
}

/// A line that is no item of a list by chance, because text was wrapped there.
fn continued(line: &str) -> String {
    let text = line.trim_start();
    let (indent, word) = (&line[..line.len() - text.len()], text.split(' ').next().unwrap_or_default());
    let digits = word.trim_end_matches(['.', ')']);
    let is_number = digits.len() < word.len() && digits.bytes().all(|c| c.is_ascii_digit());
    let is_marker = word.starts_with(['-', '+', '=']);
    match (is_marker, is_number) {
        (true, _) => format!("{indent}\\{text}"),
        (_, true) => format!("{indent}{digits}\\{}", &text[digits.len()..]),
        _ => line.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_and_code_is_code() {
        for (text, markdown) in [
            ("a_b `c_d` <e>", "a\\_b `c_d` \\<e\\>"),
            ("one ` alone_", "one \\` alone\\_"),
            ("```rust panic!() ```", "\\`\\`\\`rust panic!() \\`\\`\\`"),
            ("    indented\n\n    more", "indented more"),
            ("left\u{202e}right\u{0}", "left right"),
            ("$x$", "\\$x\\$"),
            ("http://x", "http:\u{200b}//x"),
        ] {
            assert_eq!(escaped(text), markdown);
        }
        assert_eq!(code("a`b|c\nd"), "`a'b'c d`");
    }

    #[test]
    fn wrapping_begins_no_lists() {
        let mut lines = Lines::default();
        let word = "w".repeat(WIDTH - 1);
        lines.paragraph(&format!("- a {word} + b {word} 12. c {word} 1.5 d {word} -1 e"));
        assert_eq!(
            lines.0.iter().filter(|line| !line.starts_with('w')).collect::<Vec<_>>(),
            ["\\- a", "\\+ b", "12\\. c", "1.5 d", "\\-1 e"]
        );
    }
}
