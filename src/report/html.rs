//! Pages in HTML: one file each, with nothing to fetch and nothing to run.
//!
//! The templates escape every text; what they take as it is are the drawings, which escape their own.

use askama::Template;

use crate::report::overview::Overview;
use crate::report::page::Page;

#[derive(Template)]
#[template(path = "page.html", whitespace = "minimize")]
struct PageTemplate<'p> {
    page: &'p Page,
    /// The address of the overview, or nothing.
    overview: &'p str,
}

#[derive(Template)]
#[template(path = "overview.html", whitespace = "minimize")]
struct OverviewTemplate<'o> {
    overview: &'o Overview,
}

/// The page of a sheet; `overview` is the address of the page about all sheets, if there is one.
pub fn page(page: &Page, overview: Option<&str>) -> String {
    let template = PageTemplate { page, overview: overview.unwrap_or_default() };
    template.render().expect("writing to a string does not fail")
}

/// The page about several sheets.
pub fn overview(overview: &Overview) -> String {
    OverviewTemplate { overview }.render().expect("writing to a string does not fail")
}

mod filters {
    use askama::filters::Safe;
    use askama::{Result, Values};

    use crate::report::address as address_of;
    use crate::svg::escaped;

    /// Text in which 2^-133 is raised, and `code` is code.
    #[askama::filter_fn]
    pub fn prose(text: impl std::fmt::Display, _: &dyn Values) -> Result<Safe<String>> {
        Ok(Safe(super::code(&super::powers(&escaped(&text.to_string())))))
    }

    /// A name as part of an address.
    #[askama::filter_fn]
    pub fn address(name: impl std::fmt::Display, _: &dyn Values) -> Result<String> {
        Ok(address_of(&name.to_string()))
    }
}

/// Escaped text in which an exponent of 2 is raised: `2^-133`, `2^(e_max − 5)` stays.
fn powers(text: &str) -> String {
    let mut raised = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("2^") {
        let (before, exponent) = (&rest[..at], &rest[at + 2..]);
        let digits = exponent.trim_start_matches('-');
        let signs = exponent.len() - digits.len();
        let count = digits.bytes().take_while(u8::is_ascii_digit).count();
        raised.push_str(before);
        if count == 0 || signs > 1 {
            raised.push_str("2^");
            rest = exponent;
            continue;
        }
        let sign = if signs == 1 { "−" } else { "" };
        raised.push_str(&format!("2<sup>{sign}{}</sup>", &digits[..count]));
        rest = &digits[count..];
    }
    raised + rest
}

/// Escaped text in which what stands in backticks is code, if each has its other half.
fn code(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return text.to_string();
    }
    let part = |(index, part): (usize, &&str)| match index % 2 {
        0 => part.to_string(),
        _ => format!("<code>{part}</code>"),
    };
    parts.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_raised() {
        for (text, raised) in [
            ("0x1 = 2^-149", "0x1 = 2<sup>−149</sup>"),
            ("below 2^128 and 2^", "below 2<sup>128</sup> and 2^"),
            ("2^--1 2^x 2^e_max", "2^--1 2^x 2^e_max"),
        ] {
            assert_eq!(powers(text), raised);
        }
    }

    #[test]
    fn code_is_code_if_it_ends() {
        for (text, marked) in [
            ("by `fused`: x", "by <code>fused</code>: x"),
            ("`a` and `b`", "<code>a</code> and <code>b</code>"),
            ("a ` alone", "a ` alone"),
        ] {
            assert_eq!(code(text), marked);
        }
    }
}
