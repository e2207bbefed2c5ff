//! Progress on stderr; nothing at all where stderr is no terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::characterize::Named;
use crate::inference::Progress;

/// A line on stderr that says what is being done.
pub struct Display {
    bar: ProgressBar,
}

impl Default for Display {
    fn default() -> Display {
        Display::new()
    }
}

impl Display {
    /// A display that is empty until a step begins.
    pub fn new() -> Display {
        // indicatif hides a bar that is not drawn to a terminal.
        Display { bar: ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()) }
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Named for Display {
    fn named(&self, name: &str) -> Box<dyn Progress + '_> {
        self.bar.enable_steady_tick(Duration::from_millis(100));
        Box::new(OfInstruction { bar: &self.bar, name: name.to_string() })
    }
}

struct OfInstruction<'d> {
    bar: &'d ProgressBar,
    name: String,
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Progress for OfInstruction<'_> {
    fn step(&self, what: &str, length: Option<u64>) {
        self.bar.reset();
        match length {
            Some(length) => {
                self.bar.set_style(style("{msg} {wide_bar} {human_pos}/{human_len} {eta}"));
                self.bar.set_length(length);
            }
            None => {
                self.bar.set_style(style("{spinner} {msg} {elapsed}"));
                self.bar.unset_length();
            }
        }
        self.bar.set_message(format!("{}: {what}", self.name));
    }

    fn advance(&self, amount: u64) {
        self.bar.inc(amount);
    }
}
