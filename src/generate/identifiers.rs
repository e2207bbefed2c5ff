//! Names of crates, modules and constants for what sheets call as they like.

use std::collections::HashSet;

/// The name of a crate, in its three spellings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrateName(String);

/// Words that are no names in Rust.
const KEYWORDS: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "union", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Crates that Rust itself brings along.
const BUILT_IN: [&str; 5] = ["alloc", "core", "proc_macro", "std", "test"];

/// Names that a generated crate cannot have besides: Cargo keeps folders of these names, and the crate's
/// binary and tests have modules of them.
const RESERVED: [&str; 8] =
    ["build", "deps", "examples", "incremental", "agreement", "evidence", "json", "support"];

/// Longest name: lines that name the crate must not need wrapping.
const LONGEST: usize = 40;

impl CrateName {
    /// Takes a name if a crate can have it.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence.
    pub fn new(name: &str) -> Result<CrateName, String> {
        let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        if !starts || !name.chars().all(is_allowed) || name.len() > LONGEST {
            return Err(format!(
                "it has to be a letter and then letters, digits, `-` and `_`, all small, at most {LONGEST}"
            ));
        }
        let spelled = CrateName(name.to_string());
        let library = spelled.library();
        if KEYWORDS.iter().chain(&BUILT_IN).chain(&RESERVED).any(|reserved| *reserved == library) {
            return Err("that name is reserved".to_string());
        }
        Ok(spelled)
    }

    /// As in a manifest: `cdna3-model`.
    pub fn package(&self) -> &str {
        &self.0
    }

    /// As in Rust and C: `cdna3_model`.
    pub fn library(&self) -> String {
        self.0.replace('-', "_")
    }

    /// As in C macros: `CDNA3_MODEL`.
    pub fn upper(&self) -> String {
        self.library().to_uppercase()
    }
}

/// Hands out identifiers, no two alike.
#[derive(Clone, Debug, Default)]
pub struct Identifiers {
    taken: HashSet<String>,
}

impl Identifiers {
    /// Hands out none of these.
    pub fn without<'n>(taken: impl IntoIterator<Item = &'n str>) -> Identifiers {
        Identifiers { taken: taken.into_iter().map(str::to_string).collect() }
    }

    /// A name in small letters, for modules and functions, that is neither a keyword nor a crate of Rust's
    /// own: `mma_m16n8k8_f32`.
    pub fn small(&mut self, name: &str) -> String {
        self.taken.extend(KEYWORDS.iter().chain(&BUILT_IN).map(|word| word.to_string()));
        self.fresh(words(name).to_lowercase())
    }

    /// A name in capital letters, for constants: `MMA_M16N8K8_F32`.
    pub fn capital(&mut self, name: &str) -> String {
        self.fresh(words(name).to_uppercase())
    }

    fn fresh(&mut self, name: String) -> String {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let fresh = std::iter::once(name.clone()).chain(numbered).find(|name| !self.taken.contains(name));
        let fresh = fresh.expect("there are more numbers than names");
        self.taken.insert(fresh.clone());
        fresh
    }
}

/// Characters of an identifier that come from a name: enough for any real one, and few enough for one line.
const CHARACTERS: usize = 56;

/// Letters and digits joined by single underscores, a letter first.
fn words(name: &str) -> String {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let mut joined = parts.collect::<Vec<&str>>().join("_");
    joined.truncate(CHARACTERS);
    match joined.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => joined,
        _ => format!("i{joined}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers_and_stay_apart() {
        let mut constants = Identifiers::without(["TAKEN"]);
        for (name, constant) in [
            ("v_mfma_f32_32x32x8_f16", "V_MFMA_F32_32X32X8_F16"),
            ("mma.m16n8k8.f32", "MMA_M16N8K8_F32"),
            ("mma-m16n8k8..f32", "MMA_M16N8K8_F32_2"),
            ("taken", "TAKEN_2"),
            ("4x4", "I4X4"),
            ("été", "T"),
            ("…", "I"),
        ] {
            assert_eq!(constants.capital(name), constant);
        }
        let mut modules = Identifiers::default();
        for (name, module) in [("Intel-Xeon-6", "intel_xeon_6"), ("Loop", "loop_2"), ("core", "core_2")] {
            assert_eq!(modules.small(name), module);
        }
    }

    #[test]
    fn crates_have_names_that_cargo_takes() {
        let name = CrateName::new("cdna3-model").unwrap();
        assert_eq!(
            (name.package(), name.library().as_str(), name.upper().as_str()),
            ("cdna3-model", "cdna3_model", "CDNA3_MODEL")
        );
        for wrong in ["", "3d", "a b", "é", "A", "std", "proc-macro", "loop", "json", &"a".repeat(41)] {
            assert!(CrateName::new(wrong).is_err(), "{wrong}");
        }
    }
}
