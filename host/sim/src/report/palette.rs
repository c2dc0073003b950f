//! Colours, told apart by people who see fewer of them, in a light and a dark theme.
//!
//! Policies have strong hues after Okabe and Ito, and a shape of marker beside. Ways to answer
//! have one hue per app and grow stronger with accuracy: a bar that is stronger is more accurate.

use std::fmt::Write;

use super::view::View;

/// Policies with a colour of their own; later ones take turns, with dashed lines.
pub(super) const POLICY_COLOURS: usize = 8;

/// By policy: light theme, dark theme.
const POLICIES: [(&str, &str); POLICY_COLOURS] = [
    ("#0068a8", "#5ab4f0"),
    ("#c84e00", "#ff9a5c"),
    ("#00845f", "#35cf9f"),
    ("#a03c8c", "#e891d4"),
    ("#8a6d00", "#e8c547"),
    ("#4a4fb5", "#a3a8ff"),
    ("#8f1d3f", "#f07a97"),
    ("#4d565f", "#b8c2cc"),
];

/// By app: from the weakest to the strongest colour, in the light theme, in the dark one.
const RAMPS: [[Colour; 4]; 5] = [
    [
        (0xc3, 0xd5, 0xee),
        (0x1d, 0x4c, 0x94),
        (0x2b, 0x41, 0x68),
        (0x9c, 0xc4, 0xff),
    ],
    [
        (0xf4, 0xd9, 0xae),
        (0x9c, 0x58, 0x06),
        (0x5e, 0x41, 0x17),
        (0xff, 0xca, 0x78),
    ],
    [
        (0xbc, 0xe0, 0xd6),
        (0x0d, 0x6e, 0x60),
        (0x1c, 0x50, 0x48),
        (0x83, 0xe8, 0xd2),
    ],
    [
        (0xf1, 0xcc, 0xda),
        (0x96, 0x28, 0x57),
        (0x62, 0x2a, 0x44),
        (0xff, 0xad, 0xca),
    ],
    [
        (0xd9, 0xd9, 0xd6),
        (0x58, 0x58, 0x54),
        (0x47, 0x47, 0x45),
        (0xd6, 0xd6, 0xd2),
    ],
];

type Colour = (u8, u8, u8);

/// Theme-dependent colours as CSS variables: `--pN` of policies, `--kN` of ways to answer and
/// `--tN` of text on them, for the light theme or the dark one.
pub(super) fn variables(view: &View<'_>, dark: bool) -> String {
    let mut css = String::new();
    for (at, (light_colour, dark_colour)) in POLICIES.iter().enumerate() {
        let colour = if dark { dark_colour } else { light_colour };
        let _ = write!(css, "--p{at}:{colour};");
    }
    for (at, kind) in view.kinds.iter().enumerate() {
        let ramp = RAMPS[kind.app_at % RAMPS.len()];
        let (weak, strong) = if dark {
            (ramp[2], ramp[3])
        } else {
            (ramp[0], ramp[1])
        };
        let colour = between(weak, strong, kind.rank);
        let text = if is_dark(colour) { "#fff" } else { "#14181d" };
        let (r, g, b) = colour;
        let _ = write!(css, "--k{at}:#{r:02x}{g:02x}{b:02x};--t{at}:{text};");
    }
    css
}

/// The classes that use the variables.
pub(super) fn classes(view: &View<'_>) -> String {
    let mut css = String::new();
    for at in 0..POLICY_COLOURS {
        let _ = write!(css, ".p{at}{{--c:var(--p{at})}}");
    }
    for at in 0..view.kinds.len() {
        let _ = write!(css, ".k{at}{{--c:var(--k{at});--t:var(--t{at})}}");
    }
    css
}

/// Classes of everything drawn for a policy.
pub(super) fn policy_class(policy: usize) -> String {
    let turn = if policy >= POLICY_COLOURS {
        " again"
    } else {
        ""
    };
    format!("p{}{turn}", policy % POLICY_COLOURS)
}

fn between(weak: Colour, strong: Colour, rank: f64) -> Colour {
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * rank).round() as u8;
    (
        mix(weak.0, strong.0),
        mix(weak.1, strong.1),
        mix(weak.2, strong.2),
    )
}

/// Whether white text is easier to read on it than black.
fn is_dark((r, g, b): Colour) -> bool {
    0.299 * f64::from(r) + 0.587 * f64::from(g) + 0.114 * f64::from(b) < 140.0
}
