//! Numbers on the command line.

/// A number above 0.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if value > 0.0 && f64::is_finite(value) => Ok(value),
        _ => Err("must be a positive number".to_owned()),
    }
}
