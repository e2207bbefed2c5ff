//! A vendor's library, replaced by a stand-in written in C: the tool run with it, and a matrix product
//! that any stand-in can compute.

use std::path::Path;
use std::process::{Command, Output};

/// A compiled stand-in.
pub struct StandIn {
    folder: tempfile::TempDir,
    /// The variable that says how it behaves.
    mode: &'static str,
}

impl StandIn {
    /// Compiles a file of `tests/devices` to a library of these names; `None` and a message where there
    /// is no C compiler. It behaves as `MOCK_{vendor}` says, and writes a line for each launch to the
    /// file that `MOCK_{vendor}_LOG` names.
    pub fn new(source: &str, options: &[&str], names: &[&str], mode: &'static str) -> Option<StandIn> {
        let folder = tempfile::tempdir().unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/devices").join(source);
        for name in names {
            let library = folder.path().join(name);
            let mut command = Command::new("cc");
            command.args(["-shared", "-fPIC", "-O1"]).args(options).arg("-o").arg(library).arg(&path);
            match command.status() {
                Ok(status) => assert!(status.success(), "{source} compiles"),
                Err(error) => {
                    eprintln!("NOT RUN: cc: {error}");
                    return None;
                }
            }
        }
        Some(StandIn { folder, mode })
    }

    /// Runs the tool with the stand-in in some mode.
    pub fn run(&self, mode: &str, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
        self.run_program(env!("CARGO_BIN_EXE_mmaprobe"), mode, environment, arguments)
    }

    /// Runs a program that runs the tool.
    pub fn run_program(
        &self,
        program: &str,
        mode: &str,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Output {
        Command::new(program)
            .args(arguments)
            .env("LD_LIBRARY_PATH", self.folder.path())
            .env(self.mode, mode)
            .env(format!("{}_LOG", self.mode), self.folder.path().join("log"))
            .envs(environment.iter().copied())
            .output()
            .unwrap()
    }

    /// The numbers of each launch since the last call.
    pub fn launches(&self) -> Vec<Vec<u32>> {
        let path = self.folder.path().join("log");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        let numbers = |line: &str| line.split(' ').map(|number| number.parse().unwrap()).collect();
        text.lines().map(numbers).collect()
    }

    /// Multiplies zero matrices, so many tiles of an instruction on fp16 and fp32 below each other, and
    /// checks that D is C.
    pub fn multiply(
        &self,
        device: &str,
        (instruction, [m, n, k]): (&str, [usize; 3]),
        (mode, environment): (&str, &[(&str, &str)]),
        tiles: usize,
    ) -> Output {
        let folder = self.folder.path();
        let rows = m * tiles;
        let npy = |name: &str, rows: usize, columns: usize, ty: &str, data: Vec<u8>| {
            let head = format!("{{'descr': '{ty}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
            let length = (head.len() + 11).next_multiple_of(64) - 10;
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((length as u16).to_le_bytes());
            bytes.extend(format!("{head:<width$}\n", width = length - 1).bytes());
            bytes.extend(data);
            let path = folder.join(name);
            std::fs::write(&path, bytes).unwrap();
            path.display().to_string()
        };
        let a = npy("a.npy", rows, k, "<u2", vec![0; 2 * rows * k]);
        let b = npy("b.npy", k, n, "<u2", vec![0; 2 * k * n]);
        let values = (0..rows * n).flat_map(|index| (index as f32 - 0.5).to_le_bytes());
        let c = npy("c.npy", rows, n, "<f4", values.collect());
        let d = folder.join("d.npy").display().to_string();
        let _ = std::fs::remove_file(&d);
        let matrices = ["--a", &a, "--b", &b, "--c", &c, "-o", &d, "--force"];
        let mut arguments = vec!["simulate", "--device", device, "--instruction", instruction];
        arguments.extend(matrices);
        arguments.extend(["--device-timeout", "0.3"]);
        let output = self.run(mode, environment, &arguments);
        if output.status.success() {
            let (c, d) = (std::fs::read(&c).unwrap(), std::fs::read(&d).unwrap());
            let data = 4 * rows * n;
            assert_eq!(c[c.len() - data..], d[d.len() - data..], "D = C where A is zero");
        }
        output
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What was printed, without the lines of tables and their ends.
pub fn words(output: &Output) -> String {
    let text = stdout(output).replace(['│', '\n'], " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
