//! SMT-LIB 2 as text: commands apart, bit vectors as numbers.

/// The commands of a script, without comments between them.
pub fn commands(script: &str) -> impl Iterator<Item = &str> {
    let mut rest = script;
    std::iter::from_fn(move || {
        let start = skip_to_command(rest)?;
        let text = &rest[start..];
        let end = end_of_command(text);
        rest = &text[end..];
        Some(&text[..end])
    })
}

/// Where the next parenthesis opens that is not in a comment.
fn skip_to_command(text: &str) -> Option<usize> {
    let mut in_comment = false;
    text.bytes().position(|byte| {
        match byte {
            b';' => in_comment = true,
            b'\n' => in_comment = false,
            _ => {}
        }
        byte == b'(' && !in_comment
    })
}

/// Where the command that a text starts with ends.
fn end_of_command(text: &str) -> usize {
    let mut depth = 0usize;
    let mut in_comment = false;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b';' => in_comment = true,
            b'\n' => in_comment = false,
            b'(' if !in_comment => depth += 1,
            b')' if !in_comment => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    text.len()
}

/// A bit vector of at most 64 bits: `#b0101`, `#x7f` or `(_ bv5 16)`.
pub fn bits(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("#b") {
        return u64::from_str_radix(digits, 2).ok();
    }
    if let Some(digits) = text.strip_prefix("#x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    let words = text.strip_prefix("(_ bv")?.strip_suffix(')')?;
    words.split_once(' ')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_end_where_their_parentheses_do() {
        let script = "; one (not this)\n(set-logic QF_BV)\n(assert (= a ; here )\n b))(check-sat)\n; end";
        let found: Vec<&str> = commands(script).collect();
        assert_eq!(found, ["(set-logic QF_BV)", "(assert (= a ; here )\n b))", "(check-sat)"]);
    }

    #[test]
    fn bit_vectors_are_read_in_every_notation() {
        assert_eq!(bits("#b0101"), Some(5));
        assert_eq!(bits("#x7f"), Some(0x7f));
        assert_eq!(bits("(_ bv65535 16)"), Some(65535));
        assert_eq!(bits("true"), None);
    }
}
