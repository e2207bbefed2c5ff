//! The crate as a device: it speaks mmaprobe's device protocol, version 1, on standard input and output.
//!
//! ```text
//! mmaprobe validate --device DEVICE --against exec:target/release/generated-model
//! ```
//!
//! A crate of several sheets offers the instructions of the one that its argument names; without an
//! argument it offers all, each as `SHEET/NAME`.

mod json;

use std::collections::HashMap;
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::process::ExitCode;

use generated_model::batch::Batch;
use generated_model::instruction::{Instruction, Prepared};
use generated_model::sheet::{Sheet, sheets};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let offered = match &arguments[..] {
        [] => sheets(),
        [name] => match sheets().iter().find(|sheet| sheet.name == name) {
            Some(sheet) => std::slice::from_ref(sheet),
            None => {
                let names: Vec<&str> = sheets().iter().map(|sheet| sheet.name).collect();
                eprintln!("there is no sheet '{name}'; there are: {}", names.join(", "));
                return ExitCode::from(2);
            }
        },
        _ => {
            eprintln!("usage: {} [SHEET]", env!("CARGO_PKG_NAME"));
            return ExitCode::from(2);
        }
    };
    let (mut input, mut output) = (io::stdin().lock(), io::BufWriter::new(io::stdout().lock()));
    match serve(&Device::new(offered), &mut input, &mut output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The instructions on offer, ready to be executed.
struct Device {
    /// The reply to `hello`.
    description: String,
    /// By the names under which they are offered.
    instructions: HashMap<String, Prepared>,
}

impl Device {
    fn new(sheets: &[Sheet]) -> Device {
        let offered: Vec<(String, Instruction)> = sheets
            .iter()
            .flat_map(|sheet| sheet.instructions)
            .map(|&instruction| match sheets {
                [_] => (instruction.name().to_string(), instruction),
                _ => (format!("{}/{}", instruction.sheet(), instruction.name()), instruction),
            })
            .collect();
        let descriptions: Vec<String> =
            offered.iter().map(|(name, instruction)| describe(name, instruction)).collect();
        Device {
            description: format!(
                r#"{{"protocol":1,"name":{},"instructions":[{}]}}"#,
                json::string(env!("CARGO_PKG_NAME")),
                descriptions.join(",")
            ),
            instructions: offered.into_iter().map(|(name, own)| (name, own.prepare())).collect(),
        }
    }
}

/// An instruction as `hello` tells of it.
fn describe(name: &str, instruction: &Instruction) -> String {
    let mut text = format!(
        r#"{{"name":{},"m":{},"n":{},"k":{},"a":"{}","b":"{}","c":"{}","d":"{}""#,
        json::string(name),
        instruction.m(),
        instruction.n(),
        instruction.k(),
        instruction.a(),
        instruction.b(),
        instruction.c(),
        instruction.d()
    );
    if let Some(scale) = instruction.scale() {
        text += &format!(r#","scale":"{}","block":{}"#, scale.format, scale.block);
    }
    text + "}"
}

/// Answers requests until there are no more.
fn serve(device: &Device, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<()> {
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let request = json::object(&line).map_err(|problem| refused(output, &problem))?;
        match request.get("op").and_then(json::Value::as_str) {
            Some("hello") => writeln!(output, "{}", device.description)?,
            Some("bye") => return Ok(()),
            Some("run") => run(device, &request, input, output)?,
            _ => return Err(refused(output, "the request has no operation that this device knows")),
        }
        output.flush()?;
    }
}

/// Answers a request to compute.
fn run(
    device: &Device,
    request: &HashMap<String, json::Value>,
    input: &mut impl Read,
    output: &mut impl Write,
) -> io::Result<()> {
    let name = request.get("instruction").and_then(json::Value::as_str).unwrap_or_default();
    let count = request.get("count").and_then(json::Value::as_count);
    // What follows the request has a length that only instruction and count tell: without them nothing
    // further can be understood.
    let Some(prepared) = device.instructions.get(name) else {
        return Err(refused(output, &format!("there is no instruction {name:?}")));
    };
    let Some(count) = count else {
        return Err(refused(output, "the request says no count"));
    };
    let bytes = prepared.instruction().bytes().map(|each| each.checked_mul(count));
    let [Some(a), Some(b), Some(c), Some(sa), Some(sb), Some(d)] = bytes else {
        return Err(refused(output, &format!("{count} problems do not fit into memory")));
    };
    let mut read = |length: usize| {
        let mut array = Vec::new();
        match input.take(length as u64).read_to_end(&mut array)? {
            all if all == length => Ok(array),
            _ => Err(io::Error::new(ErrorKind::UnexpectedEof, "the input ends within a problem")),
        }
    };
    let (a, b, c, sa, sb) = (read(a)?, read(b)?, read(c)?, read(sa)?, read(sb)?);
    let mut results = vec![0; d];
    let batch = Batch { count, a: &a, b: &b, c: &c, sa: &sa, sb: &sb };
    match prepared.execute_bytes(&batch, &mut results) {
        Ok(()) => {
            writeln!(output, r#"{{"ok":true}}"#)?;
            output.write_all(&results)
        }
        Err(error) => writeln!(output, r#"{{"error":{}}}"#, json::string(&error.to_string())),
    }
}

/// Tells the tool why the session ends here, as far as it listens, and returns that as the error to end
/// with.
fn refused(output: &mut impl Write, problem: &str) -> io::Error {
    let _ = writeln!(output, r#"{{"error":{}}}"#, json::string(problem)).and_then(|()| output.flush());
    io::Error::other(problem)
}
