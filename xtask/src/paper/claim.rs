//! A claim of a figure: its words, its measure, its bound.

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::formula::Formula;
use super::sample::Sample;

/// A statement of a paper.
#[derive(Debug)]
pub(crate) struct Claim {
    /// In words.
    pub(crate) says: String,
    /// The number or the words that were published; none for a claim of this repository, which only
    /// guards against change.
    pub(crate) published: Option<String>,
    /// The published number, in the unit of the measure.
    pub(crate) value: Option<f64>,
    pub(crate) measure: Formula,
    pub(crate) bound: Bound,
    /// The parameter of the set-up that was fitted to the published value: the claim predicts nothing.
    pub(crate) fitted: Option<String>,
    /// Why it does not hold here. A claim that has a reason must not hold.
    pub(crate) departs: Option<String>,
}

/// The ground of a claim's bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ground {
    /// A published number, with a tolerance or as a limit.
    Number,
    /// Published words, such as a direction.
    Words,
    /// A published value to which a parameter of the set-up was fitted.
    Fitted,
    /// Measured here, and not published.
    Measured,
}

/// When a claim holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// Between the two.
    Within(f64, f64),
}

/// A claim as a figure's file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClaimFile {
    says: String,
    published: Option<String>,
    value: Option<f64>,
    measure: String,
    at_least: Option<f64>,
    at_most: Option<f64>,
    within: Option<[f64; 2]>,
    fitted: Option<String>,
    departs: Option<String>,
}

// === impl Claim ===

impl Claim {
    /// Checks a claim of a figure's file.
    ///
    /// # Errors
    /// Names the claim and the field.
    pub(super) fn try_new(read: ClaimFile) -> Result<Self> {
        let bounds = [
            read.at_least.map(Bound::AtLeast),
            read.at_most.map(Bound::AtMost),
            read.within.map(|[low, high]| Bound::Within(low, high)),
        ];
        let bounds: Vec<Bound> = bounds.into_iter().flatten().collect();
        let &[bound] = bounds.as_slice() else {
            bail!(
                "claim `{}`: must have one of at_least, at_most and within",
                read.says
            );
        };
        if let (Some(value), Bound::Within(low, high)) = (read.value, bound)
            && !(low..=high).contains(&value)
        {
            bail!(
                "claim `{}`: value {value} is not within {low} to {high}, so the bound is not the \
                 published number with a tolerance",
                read.says
            );
        }
        if read.value.is_some() && read.published.is_none() {
            bail!("claim `{}`: a value is published", read.says);
        }
        if read.fitted.is_some() && read.published.is_none() {
            bail!("claim `{}`: a fit is to a published value", read.says);
        }
        let measure = read.measure.parse().map_err(anyhow::Error::msg);
        Ok(Self {
            measure: measure.with_context(|| format!("claim `{}`: measure", read.says))?,
            says: read.says,
            published: read.published,
            value: read.value,
            bound,
            fitted: read.fitted,
            departs: read.departs,
        })
    }

    /// The ground of its bound.
    pub(crate) fn ground(&self) -> Ground {
        match (&self.published, self.value) {
            _ if self.fitted.is_some() => Ground::Fitted,
            (_, Some(_)) => Ground::Number,
            (Some(_), None) => Ground::Words,
            (None, None) => Ground::Measured,
        }
    }
}

// === impl Bound ===

impl Bound {
    /// Whether all of the value's interval is inside.
    pub(crate) fn holds(self, value: &Sample) -> bool {
        self.excess(value) <= 0.0
    }

    /// The worst of several values: one that breaks the bound, if any does.
    pub(crate) fn worst(self, values: impl Iterator<Item = Sample>) -> Option<Sample> {
        values.max_by(|a, b| self.excess(a).total_cmp(&self.excess(b)))
    }

    /// By how much the far end of the value's interval is outside; not a number if the value is not.
    fn excess(self, value: &Sample) -> f64 {
        let (mean, half) = (value.mean, value.half_width().unwrap_or(0.0));
        match self {
            Self::AtLeast(low) => low - (mean - half),
            Self::AtMost(high) => mean + half - high,
            Self::Within(low, high) => (low - (mean - half)).max(mean + half - high),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Claim> {
        Claim::try_new(toml::from_str(text)?)
    }

    #[test]
    fn a_claim_has_one_bound() {
        let claim = |bounds: &str| {
            let claim = "says = \"c\"\npublished = \"2x\"\nmeasure = \"utility(a)\"\n";
            read(&format!("{claim}{bounds}"))
        };
        let one = claim("at_least = 2.0").unwrap();
        assert_eq!(one.bound, Bound::AtLeast(2.0));
        assert!(claim("").is_err());
        assert!(claim("at_least = 1.0\nat_most = 2.0").is_err());
        let error = claim("at_last = 1.0").unwrap_err();
        assert!(format!("{error:#}").contains("at_last"), "{error:#}");
    }

    #[test]
    fn the_worst_value_is_the_one_farthest_out() {
        let worst = |bound: Bound| {
            let values = [1.0, 3.0, 2.0].map(Sample::constant);
            bound.worst(values.into_iter()).unwrap().mean
        };
        assert_eq!(worst(Bound::AtLeast(2.0)), 1.0);
        assert_eq!(worst(Bound::AtMost(2.0)), 3.0);
        assert_eq!(worst(Bound::Within(0.9, 2.5)), 3.0);
        let holds = |value| Bound::Within(1.0, 2.0).holds(&Sample::constant(value));
        assert!(holds(2.0) && !holds(2.1) && !holds(f64::NAN));
    }

    #[test]
    fn a_claim_holds_only_if_its_interval_does() {
        // 2 +- 0.94, by t(9) = 2.262.
        let values: Vec<_> = [0.75, 3.25].repeat(5).into_iter().map(Some).collect();
        let value = Sample::new(2.0, &values);
        assert!(Bound::AtLeast(1.0).holds(&value) && !Bound::AtLeast(1.1).holds(&value));
        assert!(Bound::AtMost(3.0).holds(&value) && !Bound::AtMost(2.9).holds(&value));
        assert!(!Bound::Within(1.1, 3.0).holds(&value) && Bound::Within(1.0, 3.0).holds(&value));
    }
}
