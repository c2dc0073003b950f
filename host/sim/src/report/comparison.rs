//! What each policy changes against one of them, metric by metric.

use serde::{Deserialize, Serialize};

use super::metric::{Better, COLUMNS, Metric};
use crate::metrics::{Effect, Report};
use crate::runner::Outcome;

/// One policy against the baseline at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The point's name.
    pub point: String,
    /// The policy.
    pub policy: String,
    /// The policy that it is compared with.
    pub baseline: String,
    /// By metric: those that say something of quality.
    pub effects: Vec<Change>,
}

/// What becomes of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The metric's name.
    pub metric: String,
    /// The difference.
    #[serde(flatten)]
    pub effect: Effect,
    /// What to make of it.
    pub verdict: Verdict,
}

/// What to make of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The policy is better than the baseline.
    Better,
    /// It is worse.
    Worse,
    /// These runs do not tell.
    Noise,
}

// === impl Verdict ===

impl Verdict {
    /// As people read it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Noise => "noise",
        }
    }

    fn of(effect: &Effect, better: Better) -> Self {
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
    /// How people read its metric.
    pub fn shown(&self) -> Option<&'static Metric> {
        COLUMNS.iter().find(|metric| metric.key == self.metric)
    }
}

/// Every policy against `baseline`, at each point that it ran at.
pub fn comparisons(outcomes: &[Outcome], baseline: &str) -> Vec<Comparison> {
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

fn changes(baseline: &[Report], other: &[Report]) -> Vec<Change> {
    let telling = COLUMNS.iter().filter(|m| m.better != Better::Neither);
    let values = |reports: &[Report], key: &str| {
        let value = |report: &Report| {
            let mut scalars = report.scalars().into_iter();
            scalars.find(|(name, _)| *name == key)?.1
        };
        reports.iter().map(value).collect::<Vec<_>>()
    };
    let change = |metric: &Metric| {
        let effect = Effect::of(&values(baseline, metric.key), &values(other, metric.key))?;
        Some(Change {
            metric: metric.key.to_owned(),
            effect,
            verdict: Verdict::of(&effect, metric.better),
        })
    };
    telling.filter_map(change).collect()
}
