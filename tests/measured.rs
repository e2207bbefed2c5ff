//! Answers of real hardware, recorded once, against the sheets that were made from them: every answer
//! in `reports/measured/NAME.rec` has to be the one that `reports/measured/NAME.yaml` gives.
//!
//! This needs neither the hardware nor the questions that today's inference would ask.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use mmaprobe::device::sheet::simulate;
use mmaprobe::device::{Batch, Device};
use mmaprobe::sheet;
use serde_json::Value;

/// Batches that the recording and the sheet have in common, and their output elements.
fn compare(recording: &Path, sheet: &Path) -> (u64, u64) {
    let sheet = sheet::load(sheet).expect("the sheet is valid");
    let device = simulate(&sheet, "the sheet".to_string()).expect("the sheet is executable");
    let file = std::fs::File::open(recording).expect("the recording is there");
    let mut reader = BufReader::new(MultiGzDecoder::new(file));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a header");
    let (mut batches, mut elements) = (0, 0);
    loop {
        line.clear();
        if reader.read_line(&mut line).expect("gzip members are whole") == 0 {
            return (batches, elements);
        }
        let header: Value = serde_json::from_str(&line).expect("a line of JSON before each batch");
        let Some(name) = header["instruction"].as_str() else { continue };
        let instruction =
            device.instructions().iter().find(|i| i.name == name).expect("an instruction of the sheet");
        let count = header["count"].as_u64().expect("a count") as usize;
        let bytes = instruction.bytes();
        let mut array = |each: usize| {
            let mut array = vec![0; count * each];
            reader.read_exact(&mut array).expect("whole arrays");
            array
        };
        let [a, b, c, sa, sb] = [bytes.a, bytes.b, bytes.c, bytes.sa, bytes.sb].map(&mut array);
        let recorded = array(bytes.d);
        let answer = device.run(instruction, &Batch { count, a, b, c, sa, sb }).expect("a simulation");
        assert_eq!(answer, recorded, "{name}: the sheet contradicts recorded answers");
        batches += 1;
        elements += (count * instruction.m * instruction.n) as u64;
    }
}

#[test]
fn sheets_of_real_hardware_give_every_recorded_answer() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/measured");
    let mut compared = 0;
    for entry in folder.read_dir().expect("reports/measured is there") {
        let path = entry.expect("a readable folder").path();
        if path.extension().is_some_and(|extension| extension == "rec") {
            let (batches, elements) = compare(&path, &path.with_extension("yaml"));
            assert!(batches > 100 && elements > 50_000, "{}: hardly anything recorded", path.display());
            compared += 1;
        }
    }
    assert!(compared > 0, "no recording in {}", folder.display());
}
