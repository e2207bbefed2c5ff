//! Names survive the sheet: what is written as YAML and read again is still the algorithm it was.

#[path = "../model/tests/published/mod.rs"]
mod published;

use mmaprobe::model::Model;
use mmaprobe::model::naming::{Named, name};
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
