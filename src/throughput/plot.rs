//! Plots of throughput: operations a second over accumulators, a line for each number of threads.

use crate::plot::{Axes, COLOURS, LEFT, RIGHT, WIDTH, document};
use crate::throughput::Throughput;

/// The plots of some instructions, two beside each other.
pub fn svg(measured: &[Throughput]) -> String {
    let plots: Vec<String> = measured.iter().map(plot).collect();
    document(&plots)
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
    let most = throughput.figures.len();
    let axes = Axes::new(1.0, most.max(2) as f64, highest);
    let x = |accumulators: usize| axes.x(accumulators as f64);
    let y = |value: f64| axes.y(value);

    let title = format!("{} on {}", throughput.name, throughput.registers);
    let subtitle = if throughput.peak.is_some() { "GFLOPS; dashed: peak" } else { "GFLOPS" };
    let marks: Vec<(f64, String)> = (1..=most).map(|count| (count as f64, count.to_string())).collect();
    let mut text = axes.frame(&title, subtitle, "accumulators a thread", &marks);
    let mut line = |element: String| text.push_str(&(element + "\n"));
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
            let (low, high) = (y((value - spread).max(0.0)), y((value + spread).min(axes.top())));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::HEIGHT;
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
}
