//! Plots of throughput as SVG: operations a second over accumulators, a line for each number of threads.
//!
//! Written by hand: lines, circles and text are all that it takes, and a plotting library is a hundred
//! times as much.

use std::fmt::Write;

use crate::svg::escaped;
use crate::throughput::Throughput;

/// Of one plot, in pixels.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 260.0;
/// Around the area that lines are drawn in.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 40.0;

/// Colours that colour-blind people tell apart (Okabe and Ito), one for each number of threads.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// The plots of some instructions, two beside each other.
pub fn svg(measured: &[Throughput]) -> String {
    let columns = measured.len().clamp(1, 2);
    let rows = measured.len().div_ceil(columns);
    let (width, height) = (WIDTH * columns as f64, HEIGHT * rows as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, throughput) in measured.iter().enumerate() {
        let (x, y) = ((index % columns) as f64 * WIDTH, (index / columns) as f64 * HEIGHT);
        // A string is always written to.
        let _ = writeln!(svg, "<g transform=\"translate({x} {y})\">\n{}</g>", plot(throughput));
    }
    svg + "</svg>\n"
}

fn plot(throughput: &Throughput) -> String {
    let giga = 1e9;
    let peak = |threads: usize| {
        let cores = threads.min(throughput.cores) as f64;
        let peak = throughput.peak?;
        Some(peak.per_cycle * cores * throughput.operations as f64 * throughput.hertz() / giga)
    };
    let flops = |row: usize, column: usize| throughput.flops(&throughput.figures[row][column]) / giga;
    let columns = throughput.threads.len();
    let all = (0..throughput.figures.len()).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let highest = all.map(|(row, column)| flops(row, column)).fold(0.0, f64::max);
    let highest = throughput.threads.iter().filter_map(|&threads| peak(threads)).fold(highest, f64::max);
    let step = round_step(highest / 5.0);
    let top = (highest / step).ceil() * step;
    let most = throughput.figures.len();
    let x = |accumulators: usize| {
        LEFT + (WIDTH - LEFT - RIGHT) * (accumulators - 1) as f64 / (most.max(2) - 1) as f64
    };
    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top;

    let mut text = format!(
        "<text x=\"{LEFT}\" y=\"18\" font-size=\"13\" font-weight=\"bold\">{} on {}</text>\n\
         <text x=\"{LEFT}\" y=\"34\">GFLOPS{}</text>\n",
        escaped(&throughput.name),
        escaped(&throughput.registers),
        if throughput.peak.is_some() { "; dashed: peak" } else { "" }
    );
    let mut line = |element: String| text.push_str(&(element + "\n"));
    let mut value = 0.0;
    while value <= top + step / 2.0 {
        let (at, right) = (y(value), WIDTH - RIGHT);
        line(format!("<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>"));
        let (left, below) = (LEFT - 6.0, at + 4.0);
        line(format!("<text x=\"{left}\" y=\"{below:.1}\" text-anchor=\"end\">{}</text>", number(value)));
        value += step;
    }
    for accumulators in 1..=most {
        let (at, below) = (x(accumulators), HEIGHT - BOTTOM + 16.0);
        line(format!("<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{accumulators}</text>"));
    }
    let (middle, below) = (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 8.0);
    line(format!("<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">accumulators a thread</text>"));
    let mut legend = WIDTH - RIGHT;
    for (column, &threads) in throughput.threads.iter().enumerate().rev() {
        let colour = COLOURS[column % COLOURS.len()];
        if let Some(peak) = peak(threads) {
            let (at, right) = (y(peak), WIDTH - RIGHT);
            line(format!(
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"{colour}\" \
                 stroke-dasharray=\"4 3\"/>"
            ));
        }
        let points: Vec<String> =
            (0..most).map(|row| format!("{:.1},{:.1}", x(row + 1), y(flops(row, column)))).collect();
        line(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            points.join(" ")
        ));
        for row in 0..most {
            let (at, value) = (x(row + 1), flops(row, column));
            let spread = throughput.figures[row][column].spread * value;
            let (low, high) = (y((value - spread).max(0.0)), y((value + spread).min(top)));
            line(format!(
                "<line x1=\"{at:.1}\" y1=\"{low:.1}\" x2=\"{at:.1}\" y2=\"{high:.1}\" stroke=\"{colour}\"/>\
                 <circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"2.5\" fill=\"{colour}\"/>",
                y(value)
            ));
        }
        let label = if threads == 1 { "1 thread".to_string() } else { format!("{threads} threads") };
        line(format!("<text x=\"{legend}\" y=\"34\" text-anchor=\"end\" fill=\"{colour}\">{label}</text>"));
        legend -= 58.0;
    }
    text
}

/// The least of 1, 2 or 5 times a power of ten that is not below a step.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= least);
    factor.unwrap_or(10.0) * power
}

/// A tick's number, without decimals where it needs none.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::report::tests::measured;

    #[test]
    fn every_figure_is_a_point_inside_its_plot() {
        let all = [measured(4, 2), measured(1, 6), measured(12, 1)];
        let svg = svg(&all);
        let points: usize = all.iter().map(|one| one.figures.len() * one.threads.len()).sum();
        assert_eq!(svg.matches("<circle").count(), points);
        for (attribute, most) in [("cx=\"", WIDTH), ("cy=\"", HEIGHT)] {
            for rest in svg.split(attribute).skip(1) {
                let value: f64 = rest.split('"').next().unwrap().parse().unwrap();
                assert!((0.0..=most).contains(&value), "{attribute}{value}");
            }
        }
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<g ").count(), 3);
        assert!(svg.contains(">GFLOPS; dashed: peak<") && svg.contains("6 threads"));
    }

    #[test]
    fn steps_are_round() {
        for (least, step) in [(0.9, 1.0), (1.0, 1.0), (1.1, 2.0), (33.0, 50.0), (70.0, 100.0), (0.03, 0.05)] {
            assert!((round_step(least) - step).abs() < 1e-12, "{least}");
        }
    }
}
