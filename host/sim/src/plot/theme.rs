//! Colours in a light and a dark theme, distinguishable with colour vision deficiency.
//!
//! Series have strong hues after Okabe and Ito. From the ninth on the hues repeat with dashed lines
//! and hollow markers; each hue also has its own marker shape.

use std::fmt::Write;

/// Hues; series after them reuse these with dashed lines and hollow markers.
pub const SERIES_COLOURS: usize = 8;

/// By series: light theme, dark theme.
const SERIES: [(&str, &str); SERIES_COLOURS] = [
    ("#0068a8", "#5ab4f0"),
    ("#c84e00", "#ff9a5c"),
    ("#00845f", "#35cf9f"),
    ("#a03c8c", "#e891d4"),
    ("#8a6d00", "#e8c547"),
    ("#4a4fb5", "#a3a8ff"),
    ("#8f1d3f", "#f07a97"),
    ("#4d565f", "#b8c2cc"),
];

/// Rules of all plots, with the colours that they share.
const RULES: &str = include_str!("style.css");

/// The ground of a file: the colours of GitHub's pages in its light and dark theme.
const FILE_GROUND: (&str, &str) = ("#ffffff", "#0d1117");

/// A series of a plot, by its position: decides its colour and its marker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesId(pub usize);

// === impl SeriesId ===

impl SeriesId {
    /// CSS classes of everything drawn for the series.
    pub fn class(self) -> String {
        let repeated = if self.0 < SERIES_COLOURS {
            ""
        } else {
            " again"
        };
        format!("s{}{repeated}", self.0 % SERIES_COLOURS)
    }
}

/// The style sheet that inline drawings need, once per page.
pub fn style() -> String {
    let [light, dark] = [false, true].map(series_variables);
    let mut css = format!(
        "{RULES}:root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
    );
    for series in 0..SERIES_COLOURS {
        let _ = write!(css, ".s{series}{{--c:var(--s{series})}}");
    }
    css
}

/// The style sheet of a drawing that is a file of its own.
pub(super) fn file_style() -> String {
    let (light, dark) = FILE_GROUND;
    format!(
        "{}\n:root{{--paper:{light}}}@media (prefers-color-scheme: dark){{:root{{--paper:{dark}}}}}\n\
         text{{font-family:system-ui,-apple-system,\"Segoe UI\",Helvetica,Arial,sans-serif}}",
        style()
    )
}

fn series_variables(dark: bool) -> String {
    let mut css = String::new();
    for (series, (light_colour, dark_colour)) in SERIES.iter().enumerate() {
        let colour = if dark { dark_colour } else { light_colour };
        let _ = write!(css, "--s{series}:{colour};");
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_a_light_and_a_dark_value() {
        let css = file_style();
        for used in css.split("var(").skip(1) {
            let name = used.split(')').next().unwrap_or_default();
            // Set by the class of the element.
            if !["--c", "--t"].contains(&name) {
                let values = css.matches(&format!("{name}:")).count();
                assert!(values >= 2, "{name} has {values} values");
            }
        }
    }

    #[test]
    fn series_repeat_their_hues_with_another_stroke() {
        assert_eq!(SeriesId(1).class(), "s1");
        assert_eq!(SeriesId(9).class(), "s1 again");
    }
}
