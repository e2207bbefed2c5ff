//! Plots as SVG.
//!
//! Written by hand: lines, circles and text are all that it takes, and a plotting library is a hundred
//! times as much.

use crate::svg::escaped;

/// Of one plot, in pixels.
pub const WIDTH: f64 = 400.0;
/// Of one plot, in pixels.
pub const HEIGHT: f64 = 260.0;
/// Left of the area that lines are drawn in.
pub const LEFT: f64 = 56.0;
/// Right of it.
pub const RIGHT: f64 = 16.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 40.0;

/// Colours that colour-blind people tell apart (Okabe and Ito).
pub const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// Several plots as one drawing, two beside each other.
pub fn document(plots: &[String]) -> String {
    let columns = plots.len().clamp(1, 2);
    let rows = plots.len().div_ceil(columns);
    let (width, height) = (WIDTH * columns as f64, HEIGHT * rows as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, plot) in plots.iter().enumerate() {
        let (x, y) = ((index % columns) as f64 * WIDTH, (index / columns) as f64 * HEIGHT);
        svg += &format!("<g transform=\"translate({x} {y})\">\n{plot}</g>\n");
    }
    svg + "</svg>\n"
}

/// The axes of a plot: y begins at 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axes {
    from: f64,
    to: f64,
    step: f64,
    top: f64,
}

impl Axes {
    /// Axes for x from `from` to `to`, and y up to a round number that is not below `highest`.
    pub fn new(from: f64, to: f64, highest: f64) -> Axes {
        let step = round_step(highest / 5.0);
        Axes { from, to, step, top: (highest / step).ceil() * step }
    }

    /// The largest x.
    pub fn to(&self) -> f64 {
        self.to
    }

    /// The highest y.
    pub fn top(&self) -> f64 {
        self.top
    }

    /// Where an x is, in pixels.
    pub fn x(&self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (value - self.from) / (self.to - self.from)
    }

    /// Where a y is, in pixels.
    pub fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.top
    }

    /// A title, a line below it, what the x axis shows, its marks, and a line across for each round y.
    pub fn frame(&self, title: &str, subtitle: &str, x_label: &str, marks: &[(f64, String)]) -> String {
        let mut text = format!(
            "<text x=\"{LEFT}\" y=\"18\" font-size=\"13\" font-weight=\"bold\">{}</text>\n\
             <text x=\"{LEFT}\" y=\"34\">{}</text>\n",
            escaped(title),
            escaped(subtitle)
        );
        let mut line = |element: String| text.push_str(&(element + "\n"));
        let mut value = 0.0;
        while value <= self.top + self.step / 2.0 {
            let (at, right) = (self.y(value), WIDTH - RIGHT);
            line(format!(
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>"
            ));
            let (left, below) = (LEFT - 6.0, at + 4.0);
            line(format!("<text x=\"{left}\" y=\"{below:.1}\" text-anchor=\"end\">{}</text>", number(value)));
            value += self.step;
        }
        for (value, label) in marks {
            let (at, below) = (self.x(*value), HEIGHT - BOTTOM + 16.0);
            line(format!(
                "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{}</text>",
                escaped(label)
            ));
        }
        let (middle, below) = (LEFT + (WIDTH - LEFT - RIGHT) / 2.0, HEIGHT - 8.0);
        line(format!(
            "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{}</text>",
            escaped(x_label)
        ));
        text
    }
}

/// The least of 1, 2 or 5 times a power of ten that is not below a step.
pub fn round_step(least: f64) -> f64 {
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

    #[test]
    fn steps_are_round() {
        for (least, step) in [(0.9, 1.0), (1.0, 1.0), (1.1, 2.0), (33.0, 50.0), (70.0, 100.0), (0.03, 0.05)] {
            assert!((round_step(least) - step).abs() < 1e-12, "{least}");
        }
    }

    #[test]
    fn axes_span_the_area() {
        let axes = Axes::new(-2.0, 2.0, 7.0);
        assert_eq!((axes.x(-2.0), axes.x(2.0)), (LEFT, WIDTH - RIGHT));
        assert_eq!((axes.top(), axes.y(0.0), axes.y(8.0)), (8.0, HEIGHT - BOTTOM, TOP));
        let frame = axes.frame("a < b", "c & d", "x", &[(0.0, "0".to_string())]);
        assert!(frame.contains(">a &lt; b<") && frame.contains(">c &amp; d<"), "{frame}");
        assert_eq!(frame.matches("<line ").count(), 5, "{frame}");
    }
}
