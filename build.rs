//! Gives the tool a name for the very sources it is built from: what took days to measure must not be mixed with what
//! another build would say.

use std::fs;
use std::path::{Path, PathBuf};

/// What decides what the tool finds.
const SOURCES: [&str; 5] = ["src", "model/src", "probes/src", "machines/src", "Cargo.lock"];

fn main() {
    let root =
        PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the package is"));
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(&root.join(source), &mut files);
    }
    files.sort();
    let mut hash = Hash::new();
    for file in &files {
        let name = file.strip_prefix(&root).expect("it is below the root");
        hash.add(name.to_string_lossy().replace('\\', "/").as_bytes());
        hash.add(&fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())));
    }
    println!("cargo::rustc-env=MMAPROBE_SOURCES={:016x}", hash.0);
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return;
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    entries.flatten().for_each(|entry| collect(&entry.path(), files));
}

/// FNV-1a, of 64 bits.
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        // Where one ends counts, too.
        for &byte in bytes.iter().chain(&(bytes.len() as u64).to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
