//! Why something was decided: a code and numbers, as recordings, `replay` and the admin API show
//! them.
//!
//! ```
//! use switchyard_sdk::Reason;
//!
//! let reason = Reason::new("due-first").with("slack_us", 1_200u64).with("accuracy", 0.93);
//! assert_eq!(reason.as_str(), "due-first slack_us=1200 accuracy=0.93");
//! ```
//!
//! The contract carries the text. A host that finds a code and numbers in it shows them by name;
//! any other text is shown unchanged. Building a reason costs some tens of nanoseconds per number; a
//! reason that does not change from window to window can be built once and cloned.

use std::fmt::Write as _;

/// A short reason: a code such as `due-first`, then named figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(String);

/// A number that a reason can carry.
pub trait Figure {
    /// Appends the number.
    fn write(&self, text: &mut String);
}

// === impl Reason ===

impl Reason {
    /// A reason with this code: letters, digits and `-`, without spaces.
    pub fn new(code: &str) -> Self {
        // Room for two or three figures, so that they cost no further allocation.
        let mut text = String::with_capacity(code.len() + 48);
        text.push_str(code);
        Self(text)
    }

    /// The same with a figure. Put its unit last in the name: `slack_us`, `accuracy`.
    #[must_use]
    pub fn with(mut self, name: &str, figure: impl Figure) -> Self {
        self.0.push(' ');
        self.0.push_str(name);
        self.0.push('=');
        figure.write(&mut self.0);
        self
    }

    /// The text in the contract's type.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// Free text, shown unchanged.
impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Free text, shown unchanged.
impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

// === impl Figure ===

macro_rules! integers {
    ($($integer:ty),*) => {$(
        impl Figure for $integer {
            fn write(&self, text: &mut String) {
                // Writing to a string cannot fail.
                let _ = write!(text, "{self}");
            }
        }
    )*};
}

integers!(u32, u64, usize, i32, i64);

/// At most six decimals, without trailing zeros. Written as integers: the standard library's exact
/// printing of floats would be a third of a small component.
impl Figure for f64 {
    fn write(&self, text: &mut String) {
        const SCALE: f64 = 1e6;
        if !self.is_finite() {
            let word = if self.is_nan() { "NaN" } else { "inf" };
            text.push_str(if *self < 0.0 { "-" } else { "" });
            text.push_str(word);
            return;
        }
        // Saturates at 1.8e13, far beyond any figure of a policy.
        let scaled = libm::round(self.abs() * SCALE) as u64;
        let (whole, mut decimals) = (scaled / SCALE as u64, scaled % SCALE as u64);
        let sign = if *self < 0.0 && scaled > 0 { "-" } else { "" };
        let _ = write!(text, "{sign}{whole}");
        if decimals > 0 {
            let mut digits = 6;
            while decimals.is_multiple_of(10) {
                decimals /= 10;
                digits -= 1;
            }
            let _ = write!(text, ".{decimals:0digits$}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(figure: impl Figure) -> String {
        let mut text = String::new();
        figure.write(&mut text);
        text
    }

    #[test]
    fn floats_are_short() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (0.93, "0.93"),
            (-2.5, "-2.5"),
            (1e-6, "0.000001"),
            (-1e-9, "0"),
            (1_234.050_001, "1234.050001"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "NaN"),
        ];
        for (figure, expected) in cases {
            assert_eq!(written(figure), expected);
        }
    }

    #[test]
    fn floats_read_back_within_their_decimals() {
        for figure in [0.1 + 0.2, 3.999_999_9, 12_345.678_9, -0.000_123_4] {
            let read: f64 = written(figure).parse().unwrap();
            assert!((read - figure).abs() < 1e-6, "{figure} {read}");
        }
    }

    /// Runs the first request, refuses the second, answers the third.
    struct Explains;

    impl crate::Policy for Explains {
        fn describe() -> crate::Description {
            crate::Description::new("explains", "0.1.0", "")
        }

        fn configure(_: &crate::Catalog, _: &str) -> Result<Self, String> {
            Ok(Self)
        }

        fn schedule(
            &mut self,
            window: &crate::Window,
            plan: &mut crate::PlanBuilder,
        ) -> Result<(), String> {
            let all: Vec<_> = window.requests().collect();
            // Given before any dispatch; the reasons still belong to their own lists.
            plan.reject_because(all[1], Reason::new("hopeless"));
            plan.answer_because(all[2], "clear");
            let worker = window.idle_workers()[0].id();
            let run = plan.run(worker, crate::VariantId(0));
            run.because(Reason::new("first")).requests([all[0]]);
            Ok(())
        }
    }

    #[test]
    fn reasons_belong_to_their_decisions() {
        let catalog = crate::testing::CatalogBuilder::new()
            .app("a", &["x", "y"])
            .sneakpeek(5, 0.6)
            .variant("net", &[0.9, 0.9])
            .latency(10, 1)
            .worker("w")
            .build();
        let window = crate::testing::WindowBuilder::new(&catalog)
            .request("a")
            .request("a")
            .request("a")
            .evidence(&[5, 0])
            .build();
        let plan = crate::testing::try_run(&mut Explains, &catalog, &window).unwrap();
        let said = plan.reasons.iter().map(|r| (r.dispatch, r.text.as_str()));
        let expected = [(0, "first"), (1, "hopeless"), (2, "clear")];
        assert_eq!(said.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn free_text_is_unchanged() {
        assert_eq!(Reason::from("longest queue").as_str(), "longest queue");
    }
}
