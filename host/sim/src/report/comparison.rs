//! Differences of policies from one of them, metric by metric.

use serde::{Deserialize, Serialize};

use super::metric::{Better, COLUMNS, Metric};
use crate::metrics::{PairedEffect, Report};
use crate::runner::PolicyOutcome;
use crate::text;

/// One policy against the baseline at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The point's name.
    pub point: String,
    /// The policy.
    pub policy: String,
    /// The policy that it is compared with.
    pub baseline: String,
    /// By metric: those that measure quality.
    pub effects: Vec<Change>,
}

/// The difference in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The metric's name.
    pub metric: String,
    /// The difference.
    #[serde(flatten)]
    pub effect: PairedEffect,
    /// Its direction, if it is significant.
    pub verdict: Verdict,
}

/// The direction of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The policy is better than the baseline.
    Better,
    /// The policy is worse than the baseline.
    Worse,
    /// Not significant: the 95 % confidence interval of the difference contains 0.
    Noise,
}

// === impl Verdict ===

impl Verdict {
    /// As tables write it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Noise => "n.s.",
        }
    }

    fn of(effect: &PairedEffect, better: Better) -> Self {
        let is_more = effect.difference.mean > 0.0;
        match (effect.is_noise(), is_more == (better == Better::Higher)) {
            (true, _) => Self::Noise,
            (false, true) => Self::Better,
            (false, false) => Self::Worse,
        }
    }
}

// === impl Change ===

impl Change {
    /// Its metric as people read it.
    pub fn shown(&self) -> Option<&'static Metric> {
        COLUMNS.iter().find(|metric| metric.key == self.metric)
    }

    /// The mean difference, half of its interval, and the verdict, as tables write them: `+0.45`,
    /// `0.10`, `worse`.
    pub fn parts(&self) -> Option<[String; 3]> {
        let metric = self.shown()?;
        let difference = &self.effect.difference;
        let half_width = difference.half_width.unwrap_or_default() * metric.factor;
        Some([
            metric.signed(difference.mean),
            text::number(half_width, metric.decimals),
            self.verdict.label().to_owned(),
        ])
    }
}

/// Every policy against `baseline`, at each point at which both ran.
pub fn comparisons(outcomes: &[PolicyOutcome], baseline: &str) -> Vec<Comparison> {
    let others = outcomes.iter().filter(|outcome| outcome.policy != baseline);
    let compared = others.filter_map(|other| {
        let mut with = outcomes.iter();
        let with = with.find(|one| one.policy == baseline && one.point == other.point)?;
        Some(Comparison {
            point: other.point.clone(),
            policy: other.policy.clone(),
            baseline: baseline.to_owned(),
            effects: changes(&with.reports, &other.reports),
        })
    });
    compared.collect()
}

/// The paired difference of two policies' runs in one metric.
pub(super) fn paired(
    baseline: &[Report],
    other: &[Report],
    metric: &Metric,
) -> Option<PairedEffect> {
    let values = |reports: &[Report]| {
        let value = |report: &Report| {
            let mut scalars = report.scalars().into_iter();
            scalars.find(|(name, _)| *name == metric.key)?.1
        };
        reports.iter().map(value).collect::<Vec<_>>()
    };
    PairedEffect::of(&values(baseline), &values(other))
}

fn changes(baseline: &[Report], other: &[Report]) -> Vec<Change> {
    let judged = COLUMNS.iter().filter(|m| m.better != Better::Neither);
    let change = |metric: &Metric| {
        let effect = paired(baseline, other, metric)?;
        Some(Change {
            metric: metric.key.to_owned(),
            effect,
            verdict: Verdict::of(&effect, metric.better),
        })
    };
    judged.filter_map(change).collect()
}
