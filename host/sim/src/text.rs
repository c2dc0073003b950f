//! Numbers as text, and names with any characters as HTML.

/// A name as HTML, for text and for quoted attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Not allowed in HTML.
            c if c.is_control() && c != '\n' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// With commas between thousands.
pub(crate) fn number(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let negative = value < 0.0 && plain.bytes().any(|digit| (b'1'..=b'9').contains(&digit));
    let mut grouped = String::from(if negative { "−" } else { "" });
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + fraction
}

/// The label of a tick: enough digits to differ from the neighbours `step` away; from 10,000 on in
/// thousands if the step allows it.
pub(crate) fn tick(value: f64, step: f64) -> String {
    let (value, step, suffix) = match value.abs() {
        large if large >= 10_000_000.0 && step >= 1e5 => (value / 1e6, step / 1e6, "M"),
        large if large >= 10_000.0 && step >= 1e3 => (value / 1e3, step / 1e3, "k"),
        _ => (value, step, ""),
    };
    let decimals = (0..9).find(|&decimals| {
        let scaled = step.abs() * power(10.0, decimals);
        (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0)
    });
    number(value, decimals.unwrap_or(2) as usize) + suffix
}

/// A number to three significant digits, for tooltips and text alternatives.
pub(crate) fn brief(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = number(value, decimals);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `1 run`, `2 runs`.
pub(crate) fn plural(count: usize, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{} {many}", number(count as f64, 0)),
    }
}

/// At most `characters_max` characters: an ellipsis replaces the middle of a longer text, because
/// names differ at their ends.
pub(crate) fn shortened(text: &str, characters_max: usize) -> String {
    let count = text.chars().count();
    if count <= characters_max {
        return text.to_owned();
    }
    let kept = characters_max.saturating_sub(1);
    let tail = kept / 2;
    let head = text.chars().take(kept - tail);
    head.chain(['…'])
        .chain(text.chars().skip(count - tail))
        .collect()
}

fn power(base: f64, exponent: i32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(number(1_234_567.891, 1), "1,234,567.9");
        assert_eq!(number(999.0, 0), "999");
        assert_eq!(number(-1_000.0, 0), "−1,000");
        assert_eq!(number(-0.000_1, 2), "0.00", "no minus before zero");
        assert_eq!(number(f64::NAN, 2), "-");
    }

    #[test]
    fn ticks_have_the_digits_of_their_step() {
        assert_eq!(tick(0.5, 0.25), "0.50");
        assert_eq!(tick(3.0, 1.0), "3");
        assert_eq!(tick(15_000.0, 5_000.0), "15k");
        assert_eq!(tick(10_025.0, 25.0), "10,025");
        assert_eq!(tick(0.3, 0.1), "0.3");
    }

    #[test]
    fn brief_numbers_have_three_significant_digits() {
        let brief: Vec<String> = [0.0, 0.012_34, 6.0, 13.66, 1_234.5].map(brief).into();
        assert_eq!(brief, ["0", "0.012", "6", "13.7", "1,234"]);
    }

    #[test]
    fn names_cannot_become_elements() {
        assert_eq!(escape("<b>\"&'"), "&lt;b&gt;&quot;&amp;&#39;");
        assert_eq!(escape("a\u{0}b"), "a\u{fffd}b");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("sneakpeek", 9), "sneakpeek");
        assert_eq!(shortened("headroom-quarter", 10), "headr…rter");
        assert_eq!(shortened("ab", 1), "…");
    }
}
