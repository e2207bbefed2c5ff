//! Names of instructions as patterns: `wgmma.m64n{n}k{k}.{d}.{a}.{b}`.

/// Fills in what a pattern leaves open; `value` gives what stands for a word in braces.
///
/// # Errors
/// The first word that `value` does not know, or an unmatched brace.
pub fn fill(pattern: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((word, after)) = after.split_once('}') else {
            return Err(format!("`{{` without `}}` in `{pattern}`"));
        };
        filled.push_str(before);
        filled.push_str(&value(word).ok_or_else(|| format!("nothing stands for {{{word}}} in `{pattern}`"))?);
        rest = after;
    }
    Ok(filled + rest)
}

/// The numbers that stand for `{m}` and `{n}` in a name of that pattern; `None` where the pattern has
/// none. `None` altogether if the name is not of that pattern.
pub fn read(pattern: &str, name: &str) -> Option<[Option<usize>; 2]> {
    let mut numbers = [None; 2];
    let (mut pattern, mut name) = (pattern, name);
    while let Some((before, after)) = pattern.split_once('{') {
        name = name.strip_prefix(before)?;
        let (word, after) = after.split_once('}')?;
        let digits = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
        let (number, rest) = name.split_at(digits);
        // One spelling for each number: no leading zeros.
        let number: usize = number.parse().ok().filter(|value: &usize| value.to_string() == number)?;
        let place = &mut numbers[usize::from(word == "n")];
        if place.is_some_and(|known| known != number) {
            return None;
        }
        *place = Some(number);
        (pattern, name) = (after, rest);
    }
    (pattern == name).then_some(numbers)
}
