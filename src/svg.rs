//! What every drawing in SVG needs; [plots](crate::plot) are some of them.

/// Text as XML has it, in contents and in attributes.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
