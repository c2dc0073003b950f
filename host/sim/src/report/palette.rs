//! Colours of answers: one hue per app, stronger with accuracy, in a light and a dark theme.

use std::fmt::Write;

use super::answer_kinds::AnswerKind;

/// An opaque colour: red, green, blue.
type Rgb = (u8, u8, u8);

/// The colours of one app, from its least to its most accurate exit.
struct Ramp {
    light: [Rgb; 2],
    dark: [Rgb; 2],
}

/// By app.
const RAMPS: [Ramp; 5] = [
    Ramp {
        light: [(0xc3, 0xd5, 0xee), (0x1d, 0x4c, 0x94)],
        dark: [(0x2b, 0x41, 0x68), (0x9c, 0xc4, 0xff)],
    },
    Ramp {
        light: [(0xf4, 0xd9, 0xae), (0x9c, 0x58, 0x06)],
        dark: [(0x5e, 0x41, 0x17), (0xff, 0xca, 0x78)],
    },
    Ramp {
        light: [(0xbc, 0xe0, 0xd6), (0x0d, 0x6e, 0x60)],
        dark: [(0x1c, 0x50, 0x48), (0x83, 0xe8, 0xd2)],
    },
    Ramp {
        light: [(0xf1, 0xcc, 0xda), (0x96, 0x28, 0x57)],
        dark: [(0x62, 0x2a, 0x44), (0xff, 0xad, 0xca)],
    },
    Ramp {
        light: [(0xd9, 0xd9, 0xd6), (0x58, 0x58, 0x54)],
        dark: [(0x47, 0x47, 0x45), (0xd6, 0xd6, 0xd2)],
    },
];

/// The style sheet of answers: class `.kN` sets the colour `--c` and, for text on it, `--t`.
pub(super) fn style(kinds: &[AnswerKind<'_>]) -> String {
    let [light, dark] = [false, true].map(|dark| variables(kinds, dark));
    let mut css =
        format!(":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n");
    for at in 0..kinds.len() {
        let _ = write!(css, ".k{at}{{--c:var(--k{at});--t:var(--t{at})}}");
    }
    css
}

fn variables(kinds: &[AnswerKind<'_>], dark: bool) -> String {
    let mut css = String::new();
    for (at, kind) in kinds.iter().enumerate() {
        let ramp = &RAMPS[kind.app_id.index() % RAMPS.len()];
        let [weak, strong] = if dark { ramp.dark } else { ramp.light };
        let colour = between(weak, strong, kind.rank);
        let text = if is_dark(colour) { "#fff" } else { "#14181d" };
        let (r, g, b) = colour;
        let _ = write!(css, "--k{at}:#{r:02x}{g:02x}{b:02x};--t{at}:{text};");
    }
    css
}

fn between(weak: Rgb, strong: Rgb, rank: f64) -> Rgb {
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * rank).round() as u8;
    (
        mix(weak.0, strong.0),
        mix(weak.1, strong.1),
        mix(weak.2, strong.2),
    )
}

/// Whether white text is easier to read on it than black text.
fn is_dark((r, g, b): Rgb) -> bool {
    0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b) < 140.0
}
