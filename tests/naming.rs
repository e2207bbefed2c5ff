//! Names of algorithms in sheets.

#[path = "../model/tests/published/mod.rs"]
mod published;

use mmaprobe::catalog::Catalog;
use mmaprobe::catalog::published::sheet as published_sheet;
use mmaprobe::characterize::characterize;
use mmaprobe::device::sheet::simulate;
use mmaprobe::device::simulated::Simulated;
use mmaprobe::device::{Device, Identity, Instruction, Provenance};
use mmaprobe::inference::{Options, Silent};
use mmaprobe::model::naming::{Named, name};
use mmaprobe::model::tree::Node;
use mmaprobe::model::{Model, format};
use mmaprobe::sheet::Arithmetic;

#[test]
fn names_survive_yaml() {
    for (algorithm, types, _) in published::published() {
        let model = algorithm.model(&types).unwrap();
        let written = serde_yaml::to_string(&Arithmetic::from(&model)).unwrap();
        let read: Arithmetic = serde_yaml::from_str(&written).unwrap();
        let read = Model::try_from(&read).unwrap();
        assert_eq!(name(&read), Named::Published(algorithm), "{written}");
        assert_eq!(name(&read.canonical()), Named::Published(algorithm), "{written}");
    }
}

/// The sheet's algorithm and notes for a device that computes these models.
fn characterized(models: Vec<Model>) -> Vec<(String, Vec<String>)> {
    let instruction = |(index, model): (usize, Model)| {
        let Model { k, a, b, c, scale, d, .. } = &model;
        let (a, b, c, d) = (a.format, b.format, c.format, *d);
        let name = format!("instruction {index}");
        (Instruction { name, m: 2, n: 2, k: *k, a, b, c, d, scale: *scale, mode_of: None }, model)
    };
    let identity = Identity {
        name: "simulated".into(),
        description: "a device that computes models".into(),
        properties: vec![],
        absent: vec![],
        provenance: Provenance::Simulated,
    };
    let device = Simulated::new(identity, models.into_iter().enumerate().map(instruction).collect()).unwrap();
    let options = Options { validate: 20_000, seed: 1 };
    let sheet = characterize(&device, device.instructions(), &options, None, &Silent).unwrap();
    sheet.instructions.into_iter().map(|entry| (entry.algorithm, entry.notes)).collect()
}

/// Those algorithms that are found in a second or two each.
#[test]
fn characterisation_names_what_it_finds() {
    let quick = ["SFMA", "FDA(F=23)", "CoFDA(F=24, chain=4)", "FDRDA(F=24, F_dot=31, F_c=24)"];
    let (mut models, mut expected) = (vec![], vec![]);
    for (algorithm, types, name) in published::published() {
        if quick.contains(&name) {
            models.push(algorithm.model(&types).unwrap());
            expected.push(name);
        }
    }
    let found = characterized(models);
    assert_eq!(found.iter().map(|(algorithm, _)| algorithm.as_str()).collect::<Vec<_>>(), expected);
}

/// All instructions of the architectures that are characterised in seconds, one of Hopper's, whose sum and rounding had
/// come out as two steps, and one of CDNA2's, which does not show whether c is flushed as A and B are.
#[test]
fn virtual_devices_are_named_as_published() {
    let catalog = Catalog::embedded();
    let mut named = 0;
    for architecture in catalog.architectures() {
        let only = match architecture.name.as_str() {
            "volta" | "turing" | "ampere" | "m1" => "",
            "hopper" => "mma.m16n8k16.f32.f16.f16.f32",
            "cdna2" => "v_mfma_f32_4x4x4f16",
            _ => continue,
        };
        let mut published = published_sheet(architecture).expect("there is something published");
        published.instructions.retain(|entry| only.is_empty() || entry.name == only);
        let device = simulate(&published, architecture.name.clone()).unwrap();
        let options = Options { validate: 1000, seed: 1 };
        let found = characterize(&device, device.instructions(), &options, None, &Silent).unwrap();
        for (found, published) in found.instructions.iter().zip(&published.instructions) {
            assert_eq!((&found.name, &found.algorithm), (&published.name, &published.algorithm));
            named += 1;
        }
    }
    assert_eq!(named, 3 + 5 + 9 + 13 + 1 + 1);
}

#[test]
fn what_has_no_name_is_noted_in_words() {
    let mut model = Model::chain_of_fma(format::FP32, format::FP32, 2);
    for node in &mut model.tree.nodes {
        if let Node::Product(k) = node {
            *k = 1 - *k;
        }
    }
    let found = characterized(vec![model]);
    let (algorithm, notes) = &found[0];
    assert_eq!(algorithm, "unnamed");
    let sentence = "Like SFMA, but products are added in the order p1; then p0.";
    assert!(notes.iter().any(|note| note == sentence), "{notes:?}");
}
