//! What a generated crate carries along: the very source of `model`, and the handwritten part that every
//! generated crate shares (the folder `template`).

use include_dir::{Dir, include_dir};

use crate::generate::identifiers::CrateName;

static MODEL: Dir = include_dir!("$CARGO_MANIFEST_DIR/model/src");
static MODEL_MANIFEST: &str = include_str!("../../model/Cargo.toml");
static TEMPLATE: Dir = include_dir!("$CARGO_MANIFEST_DIR/template");
/// Files that stand in the crate as they do here.
const UNCHANGED: [(&str, &str); 3] = [
    ("LICENSE-APACHE", include_str!("../../LICENSE-APACHE")),
    ("LICENSE-MIT", include_str!("../../LICENSE-MIT")),
    ("rustfmt.toml", include_str!("../../rustfmt.toml")),
];

/// The root of the model's source: it becomes part of the generated crate's own root.
const MODEL_ROOT: &str = "lib.rs";

/// The files that are carried along, by path, the crate's name in the place of others.
pub fn files(name: &CrateName) -> Vec<(String, String)> {
    let unchanged = UNCHANGED.iter().map(|&(path, text)| (path.to_string(), text.to_string()));
    let model = texts(&MODEL)
        .into_iter()
        .filter(|(path, _)| path != MODEL_ROOT)
        .map(|(path, text)| (format!("src/{path}"), renamed(text, name)));
    let template =
        texts(&TEMPLATE).into_iter().map(|(path, text)| (renamed(&path, name), renamed(text, name)));
    unchanged.chain(model).chain(template).collect()
}

/// The code of the model's root, without its documentation: attributes, modules and what they export.
pub fn root(name: &CrateName) -> String {
    let text = MODEL.get_file(MODEL_ROOT).and_then(|file| file.contents_utf8()).unwrap_or_default();
    let code = text.lines().skip_while(|line| line.starts_with("//!"));
    renamed(&code.map(|line| format!("{line}\n")).collect::<String>(), name)
}

/// The features of the model, which become those of the generated crate, all on by default: the lines of
/// its `[features]` table, none if there is no feature.
pub fn features() -> Vec<String> {
    let table = MODEL_MANIFEST.lines().skip_while(|line| *line != "[features]").skip(1);
    let table = table.take_while(|line| !line.starts_with('[') && !line.trim().is_empty());
    // The tool itself turns all on, and the crate is to run what the tool runs.
    let mut lines: Vec<String> =
        table.filter(|line| !line.starts_with("default =")).map(str::to_string).collect();
    let name = |line: &String| {
        Some(line.split_once(" = ")?.0).filter(|name| !name.starts_with('#')).map(str::to_string)
    };
    let names: Vec<String> = lines.iter().filter_map(name).collect();
    if !names.is_empty() {
        lines.insert(0, format!("default = {names:?}"));
    }
    lines
}

/// Names of modules in the root of a generated crate that no sheet can have.
pub fn modules() -> Vec<String> {
    let own = TEMPLATE.get_dir("src").into_iter().flat_map(Dir::files);
    let files = MODEL.files().chain(own);
    let stem = |path: &std::path::Path| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_string);
    let folders = MODEL.dirs().filter_map(|folder| stem(folder.path()));
    files.filter_map(|file| stem(file.path())).chain(folders).chain(["sheets".to_string()]).collect()
}

/// Every file of a folder, with its path below the outermost one, in the order of the paths.
fn texts(folder: &Dir<'static>) -> Vec<(String, &'static str)> {
    let mut texts: Vec<(String, &'static str)> = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(folder) = folders.pop() {
        folders.extend(folder.dirs().cloned());
        for file in folder.files() {
            if let (Some(path), Some(text)) = (file.path().to_str(), file.contents_utf8()) {
                texts.push((path.replace('\\', "/"), text));
            }
        }
    }
    texts.sort();
    texts
}

/// Text in which the crate is called by its name.
fn renamed(text: &str, name: &CrateName) -> String {
    // First all to one name, so that nothing is replaced in what has been put in.
    text.replace("mmaprobe_model", "generated_model")
        .replace("generated_model", &name.library())
        .replace("generated-model", name.package())
        .replace("GENERATED_MODEL", &name.upper())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_has_no_dependencies_that_would_have_to_be_carried_along() {
        let mut table = MODEL_MANIFEST.lines().skip_while(|line| *line != "[dependencies]").skip(1);
        assert!(table.next().is_some_and(|line| line.trim().is_empty()));
    }

    #[test]
    fn the_source_of_the_model_is_all_there() {
        let name = CrateName::new("some-model").unwrap();
        let files = files(&name);
        let text = |path: &str| files.iter().find(|(own, _)| own == path).map(|(_, text)| text.as_str());
        let execute = text("src/execute.rs").unwrap();
        assert_eq!(execute, include_str!("../../model/src/execute.rs"));
        assert!(files.iter().all(|(_, text)| !text.contains("mmaprobe_model")));
        assert!(root(&name).starts_with("#![no_std]"));
        assert!(modules().iter().any(|module| module == "tree"));
        let name = CrateName::new("my-generated-model").unwrap();
        let text = "mmaprobe_model generated_model generated-model GENERATED_MODEL";
        assert_eq!(
            renamed(text, &name),
            "my_generated_model my_generated_model my-generated-model MY_GENERATED_MODEL"
        );
    }
}
