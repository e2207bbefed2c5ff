//! Tables for terminals.

use tabled::builder::Builder;
use tabled::settings::peaker::Priority;
use tabled::settings::{Style, Width};

/// A table with a header that is at most `width` columns wide; long cells wrap.
pub fn plain<const N: usize>(header: [&str; N], rows: &[[String; N]], width: usize) -> String {
    let header = header.map(str::to_string);
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.to_vec()).collect();
    grid(&header, &rows, width)
}

/// The same where the number of columns is not known beforehand.
pub fn grid(header: &[String], rows: &[Vec<String>], width: usize) -> String {
    let mut builder = Builder::default();
    builder.push_record(header);
    for row in rows {
        builder.push_record(row);
    }
    let mut table = builder.build();
    table.with(Style::rounded()).with(Width::wrap(width).keep_words(true).priority(Priority::max(true)));
    table.to_string() + "\n"
}
