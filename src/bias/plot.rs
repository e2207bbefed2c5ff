//! Error distributions as SVG: a histogram for each device, on the same axes, as in Figure 2 of the
//! MMA-Sim paper.

use crate::bias::Errors;
use crate::plot::{Axes, COLOURS, document, round_step};

/// Bars of a histogram: an odd number, so that one is around zero.
const BARS: usize = 61;

/// What is drawn of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Drawn<'e> {
    /// The devices' names.
    pub devices: [&'e str; 2],
    /// The instruction.
    pub instruction: &'e str,
    /// The devices' errors.
    pub errors: &'e [Errors; 2],
}

/// The histograms of some instructions, those of two devices beside each other.
pub fn svg(drawn: &[Drawn]) -> String {
    let plots: Vec<String> = drawn.iter().flat_map(plots).collect();
    document(&plots)
}

fn plots(drawn: &Drawn) -> Vec<String> {
    // All but one in two hundred on each side.
    let farthest = |errors: &Errors| errors.quantile(0.005).abs().max(errors.quantile(0.995).abs());
    let farthest = drawn.errors.iter().map(farthest).fold(0.0, f64::max);
    let reach = if farthest > 0.0 { round_step(farthest) } else { 1.0 };
    let counts: Vec<Vec<f64>> = drawn.errors.iter().map(|errors| histogram(errors, reach)).collect();
    let highest = counts.iter().flatten().copied().fold(0.0, f64::max).max(1e-9);
    let axes = Axes::new(-reach, reach, highest);
    let names = drawn.devices.iter().zip(drawn.errors).zip(&counts).enumerate();
    names
        .map(|(index, ((device, errors), counts))| plot(drawn, device, errors, counts, axes, index))
        .collect()
}

/// Percent of the errors in each bar; those beyond are left out.
fn histogram(errors: &Errors, reach: f64) -> Vec<f64> {
    let mut counts = vec![0.0; BARS];
    let each = 100.0 / errors.count.max(1) as f64;
    for error in &errors.sorted {
        let at = ((error + reach) / (2.0 * reach) * BARS as f64).floor();
        if (0.0..BARS as f64).contains(&at) {
            counts[at as usize] += each;
        }
    }
    counts
}

fn plot(drawn: &Drawn, device: &str, errors: &Errors, counts: &[f64], axes: Axes, index: usize) -> String {
    let colour = COLOURS[index];
    let reach = axes.to();
    let marks = [-1.0, -0.5, 0.0, 0.5, 1.0].map(|part| (part * reach, format!("{}", part * reach)));
    let subtitle =
        format!("{}: mean {:.4}, deviation {:.4}", drawn.instruction, errors.mean, errors.deviation);
    let mut text = axes.frame(device, &subtitle, "answer − exact result; percent of answers", &marks);
    let width = (axes.x(reach) - axes.x(-reach)) / BARS as f64;
    for (bar, &count) in counts.iter().enumerate() {
        let (x, y) = (axes.x(-reach) + width * bar as f64, axes.y(count));
        let height = axes.y(0.0) - y;
        if count > 0.0 {
            text += &format!(
                "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{colour}\"/>\n"
            );
        }
    }
    for (at, dashes) in [(0.0, ""), (errors.mean, " stroke-dasharray=\"4 3\"")] {
        let (x, top, bottom) = (axes.x(at), axes.y(axes.top()), axes.y(0.0));
        text += &format!(
            "<line x1=\"{x:.2}\" y1=\"{top:.1}\" x2=\"{x:.2}\" y2=\"{bottom:.1}\" stroke=\"#444\"{dashes}/>\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_hold_every_error_within_reach() {
        let errors = Errors::of(vec![-0.9, -0.1, 0.0, 0.1, 0.9, 5.0], 0);
        let counts = histogram(&errors, 1.0);
        assert!((counts.iter().sum::<f64>() - 500.0 / 6.0).abs() < 1e-9);
        assert!((counts[BARS / 2] - 100.0 / 6.0).abs() < 1e-9, "zero is in the middle: {counts:?}");
        let both = [errors.clone(), Errors::of(vec![0.0; 10], 0)];
        let drawn = Drawn { devices: ["one & two", "three"], instruction: "mma", errors: &both };
        let svg = svg(&[drawn]);
        assert_eq!(svg.matches("<g ").count(), 2);
        assert!(svg.contains(">one &amp; two<") && svg.contains("mean 0.8333"), "{svg}");
        // White paper, and the bars that are not empty.
        assert_eq!(svg.matches("<rect ").count(), 1 + 5 + 1, "{svg}");
    }
}
