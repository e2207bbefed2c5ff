//! Measured throughput as tables, for terminals and as Markdown.

use mmaprobe_kernels::cpu::Processor;

use crate::table;
use crate::throughput::{Figure, Throughput};

/// An instruction's table, at most `width` columns wide: median GFLOPS, and below each the share of the
/// peak and the spread.
pub fn terminal(throughput: &Throughput, width: usize) -> String {
    let mut header = vec!["acc.".to_string()];
    header.extend(throughput.threads.iter().map(|&threads| counted(threads)));
    let rows: Vec<Vec<String>> = rows(throughput)
        .map(|(accumulators, figures)| {
            let cells = figures.iter().zip(&throughput.threads).map(|(figure, &threads)| {
                let share = share(throughput, figure, threads).map_or(String::new(), |share| share + " ");
                format!("{:.1}\n{share}±{}", throughput.flops(figure) / 1e9, spread(figure))
            });
            std::iter::once(accumulators.to_string()).chain(cells).collect()
        })
        .collect();
    let share = if throughput.peak.is_some() { "% of the peak, " } else { "" };
    let title = format!(
        "{} on {}: GFLOPS for 1 and more accumulators a thread (acc.); below, {share}± spread in %",
        throughput.name, throughput.registers
    );
    let mut text = textwrap::fill(&title, width) + "\n" + &table::grid(&header, &rows, width);
    for note in notes(throughput) {
        text += &(textwrap::fill(&note, width) + "\n");
    }
    text
}

/// The report: how it was measured, a table for each instruction as the unit's descriptions have them, and
/// what was not run. `plot` is the plot's file, from where the report is.
pub fn markdown(
    processor: &Processor,
    measured: &[Throughput],
    absent: &[(String, String)],
    plot: &str,
) -> String {
    let properties: Vec<String> =
        processor.properties.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let mut text = format!(
        "# Throughput of {}\n\n{}\n\n\
         Operations a second of an instruction alone, a multiply-add being two: no loads and no stores. Each \
         figure is the median of {} samples of about 2 ms, interleaved with those of all others; ± is half \
         the distance between their quartiles. The clock is measured, by dependent additions after each \
         sample, and the share of the peak is of each sample's own clock.\n\n![GFLOPS over accumulators]({plot})\n",
        processor.brand,
        properties.join(", "),
        measured.first().map_or(0, |throughput| throughput.repetitions),
    );
    for throughput in measured {
        let heads: Vec<String> = throughput.threads.iter().map(|&threads| counted(threads)).collect();
        text += &format!(
            "\n## {} on {}\n\n| accumulators | {} |\n|---|{}\n",
            throughput.name,
            throughput.registers,
            heads.join(" | "),
            "--:|".repeat(heads.len())
        );
        for (accumulators, figures) in rows(throughput) {
            let cells = figures.iter().zip(&throughput.threads).map(|(figure, &threads)| {
                let share = share(throughput, figure, threads);
                let share = share.map_or(String::new(), |share| format!("{share} of peak, "));
                format!("{:.1} GFLOPS ({share}±{} %)", throughput.flops(figure) / 1e9, spread(figure))
            });
            text += &format!("| {accumulators} a thread | {} |\n", cells.collect::<Vec<_>>().join(" | "));
        }
        for note in notes(throughput) {
            text += &format!("\n{note}\n");
        }
    }
    if !absent.is_empty() {
        text += "\n## Not run here\n\n";
        for (name, reason) in absent {
            text += &format!("- {name}: {reason}\n");
        }
    }
    text
}

fn rows(throughput: &Throughput) -> impl Iterator<Item = (usize, &Vec<Figure>)> {
    throughput.figures.iter().enumerate().map(|(index, figures)| (index + 1, figures))
}

fn counted(threads: usize) -> String {
    if threads == 1 { "1 thread".to_string() } else { format!("{threads} threads") }
}

fn share(throughput: &Throughput, figure: &Figure, threads: usize) -> Option<String> {
    throughput.share(figure, threads).map(|share| format!("{:.0}%", share * 100.0))
}

/// In percent, with a decimal where there is room for one.
fn spread(figure: &Figure) -> String {
    let percent = figure.spread * 100.0;
    if percent < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") }
}

/// Where the peak comes from, and what to hold against the figures.
fn notes(throughput: &Throughput) -> Vec<String> {
    let hertz = throughput.hertz();
    let operations = throughput.operations;
    let mut notes = vec![match throughput.peak {
        Some(peak) => format!(
            "Peak of a core: {} a cycle of {operations} operations each at {:.2} GHz, {:.1} GFLOPS: \
             {}.",
            executions(peak.per_cycle),
            hertz / 1e9,
            peak.per_cycle * operations as f64 * hertz / 1e9,
            peak.because
        ),
        None => format!(
            "The peak is not known here for this processor. {operations} operations an execution, at {:.2} GHz.",
            hertz / 1e9
        ),
    }];
    let threads = throughput.threads.iter().max().copied().unwrap_or(0);
    if threads > throughput.cores {
        notes.push(format!("{threads} threads share {} cores.", throughput.cores));
    }
    // Where threads share a core they disturb each other, and that is what is measured.
    let alone = throughput.figures.iter().flat_map(|figures| {
        figures.iter().zip(&throughput.threads).filter(|(_, threads)| **threads <= throughput.cores)
    });
    let disturbed: Vec<usize> = alone.map(|(figure, _)| figure.disturbed).collect();
    let (some, all) = (disturbed.iter().sum::<usize>(), disturbed.len() * throughput.repetitions);
    if some > 0 {
        notes.push(format!("In {some} of {all} samples something else had a processor meanwhile; they are left out of a figure that \
             has others."));
    }
    notes
}

/// A number of executions: 2, 1 or 1/16.
fn executions(number: f64) -> String {
    match number {
        1.0 => "1 execution".to_string(),
        ..1.0 => format!("1/{:.0} execution", 1.0 / number),
        _ => format!("{number:.0} executions"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::throughput::peak::Peak;

    /// Figures of so many accumulators and threads: a thread's rate is 10⁹ for each accumulator, at 4 GHz.
    pub fn measured(accumulators: usize, threads: usize) -> Throughput {
        let figure = |n: usize, threads: usize| Figure {
            rate: 1e9 * (n * threads.min(2)) as f64,
            spread: 0.004,
            hertz: 4e9,
            per_cycle: (n * threads.min(2)) as f64 / 4.0,
            disturbed: usize::from(threads == 2),
        };
        Throughput {
            name: "fma".to_string(),
            registers: "zmm".to_string(),
            operations: 32,
            threads: (1..=threads).collect(),
            cores: 2,
            figures: (1..=accumulators).map(|n| (1..=threads).map(|t| figure(n, t)).collect()).collect(),
            repetitions: 5,
            peak: Some(Peak { per_cycle: 2.0, because: "two units" }),
        }
    }

    #[test]
    fn tables_fit_80_columns_with_six_threads() {
        let mut fast = measured(3, 6);
        fast.figures[2][5].rate = 99_999e9 / 32.0;
        fast.figures[2][5].per_cycle = 4.0;
        fast.figures[2][5].spread = 0.123;
        let text = terminal(&fast, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        // 3·10⁹ · 32 operations, and 3/4 of 2 executions a cycle.
        for says in [
            "│ 3    │ 96.0",
            "│      │ 38% ±0.4",
            "6 threads",
            "99999.0",
            "100% ±12",
            "each at 4.00 GHz, 256.0",
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
        assert!(text.contains("6 threads share 2 cores.") && text.contains("In 3 of 30 samples"), "{text}");
    }

    #[test]
    fn markdown_has_the_tables_of_the_descriptions() {
        let processor = Processor {
            brand: "Z80".to_string(),
            properties: vec![("model", "207".to_string())],
            units: Vec::new(),
            absent: Vec::new(),
        };
        let absent = [("tdpbf16ps".to_string(), "no tiles".to_string())];
        let unknown = Throughput { peak: None, ..measured(1, 1) };
        let text = markdown(&processor, &[measured(2, 2), unknown], &absent, "x.svg");
        for says in [
            "# Throughput of Z80\n\nmodel 207\n",
            "![GFLOPS over accumulators](x.svg)",
            "| accumulators | 1 thread | 2 threads |\n|---|--:|--:|\n",
            "| 2 a thread | 64.0 GFLOPS (25% of peak, ±0.4 %) | 128.0 GFLOPS (25% of peak, ±0.4 %) |",
            "| 1 a thread | 32.0 GFLOPS (±0.4 %) |",
            "not known here",
            "- tdpbf16ps: no tiles",
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
    }
}
