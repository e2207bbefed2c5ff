//! `mmaprobe instructions`.

use super::open;
use super::{Failure, Outcome, print, width};
use crate::cli::Instructions;
use crate::table;

pub fn run(arguments: &Instructions) -> Result<Outcome, Failure> {
    let device = open::open(&arguments.device.device, arguments.device.timeout)?;
    let rows: Vec<[String; 4]> = device
        .instructions()
        .iter()
        .map(|i| {
            let scale = i.scale.map_or(String::new(), |s| format!(", {} scales of {}", s.format, s.block));
            [
                i.name.clone(),
                format!("{}×{}×{}", i.m, i.n, i.k),
                format!("{}·{} + {} → {}{scale}", i.a, i.b, i.c, i.d),
                i.mode_of.as_ref().map_or(String::new(), |(base, mode)| format!("{base} where {mode}")),
            ]
        })
        .collect();
    print(&table::plain(["instruction", "m×n×k", "formats", "mode"], &rows, width()))?;
    device.finish()?;
    Ok(Outcome::Held)
}
