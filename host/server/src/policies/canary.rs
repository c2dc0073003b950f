//! The settings of a canary, as an order has them: `switchyard_core::canary` compares the policies.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use switchyard_core::canary::{CanaryRule, PromoteIf, SHARE_MAX};
use switchyard_core::catalog::Catalog;
use switchyard_core::time::Micros;

/// Longest time of a canary.
const WITHIN_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Bounds of a slot that follows from the apps' deadlines.
const SLOT: [Micros; 2] = [Micros::from_millis(10), Micros::from_millis(100)];

/// Slots in the shortest deadline.
const SLOTS_PER_SLO: u64 = 3;

/// Longest slot that an order may ask for.
const SLOT_MAX_MS: u64 = 60_000;

/// The settings of a canary, each with a default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CanarySettings {
    /// Share of the requests that the candidate gets, above 0 to 0.5. The baseline, a second instance of
    /// the policy that serves, gets as many.
    pub share: f64,
    /// When the candidate is promoted.
    pub promote_if: PromoteIf,
    /// Whether a worse candidate is rolled back at once. Otherwise it goes on until its time is over.
    pub rollback_if_worse: bool,
    /// Probability of a wrong verdict about a candidate that equals the baseline, above 0 to 0.5.
    pub error: f64,
    /// Utility that a candidate may lose and still count as not worse, 0 to 1.
    pub margin: f64,
    /// Faults of the candidate at which it is rolled back, 1 or more.
    pub faults_max: u64,
    /// Longest time, in seconds; the candidate is rolled back at its end.
    pub within_s: u64,
    /// How long a member is on duty, in milliseconds. By default a third of the shortest deadline of the
    /// apps, at least 10 and at most 100.
    pub slot_ms: Option<u64>,
}

// === impl CanarySettings ===

impl Default for CanarySettings {
    fn default() -> Self {
        let rule = CanaryRule::default();
        Self {
            share: 0.1,
            promote_if: rule.promote_if,
            rollback_if_worse: rule.rolls_back_if_worse,
            error: rule.error,
            margin: rule.margin,
            faults_max: rule.faults_max,
            within_s: rule.within.0 / 1_000_000,
            slot_ms: None,
        }
    }
}

impl CanarySettings {
    /// Checks every number.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(&self) -> Result<(), String> {
        let wrong = |field: &str, value: String, range: &str| {
            Err(format!("{field}: {value} is not within {range}"))
        };
        let within_max = WITHIN_MAX.as_secs();
        if !(self.share > 0.0 && self.share <= SHARE_MAX) {
            return wrong("share", self.share.to_string(), "0 (exclusive) to 0.5");
        }
        if !(self.error > 0.0 && self.error <= 0.5) {
            return wrong("error", self.error.to_string(), "0 (exclusive) to 0.5");
        }
        if !(0.0..=1.0).contains(&self.margin) {
            return wrong("margin", self.margin.to_string(), "0 to 1");
        }
        if self.faults_max == 0 {
            return wrong("faults_max", "0".to_owned(), "1 and more");
        }
        if !(1..=within_max).contains(&self.within_s) {
            let range = format!("1 to {within_max} seconds");
            return wrong("within_s", self.within_s.to_string(), &range);
        }
        match self.slot_ms {
            Some(ms) if !(1..=SLOT_MAX_MS).contains(&ms) => {
                wrong("slot_ms", ms.to_string(), &format!("1 to {SLOT_MAX_MS}"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn rule(&self) -> CanaryRule {
        CanaryRule {
            promote_if: self.promote_if,
            rolls_back_if_worse: self.rollback_if_worse,
            error: self.error,
            margin: self.margin,
            faults_max: self.faults_max,
            within: Micros(self.within_s * 1_000_000),
        }
    }

    pub(super) fn slot(&self, catalog: &Catalog) -> Micros {
        match self.slot_ms {
            Some(ms) => Micros::from_millis(ms),
            None => {
                let shortest = catalog.apps.iter().map(|app| app.slo.0).min();
                let slot = Micros(shortest.unwrap_or_default() / SLOTS_PER_SLO);
                slot.clamp(SLOT[0], SLOT[1])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn numbers_out_of_range_are_named() {
        let defaults = CanarySettings::default();
        assert_eq!(defaults.validate(), Ok(()));
        let wrong = [
            (
                CanarySettings {
                    share: 0.6,
                    ..defaults
                },
                "share: 0.6",
            ),
            (
                CanarySettings {
                    share: f64::NAN,
                    ..defaults
                },
                "share: NaN",
            ),
            (
                CanarySettings {
                    error: 0.0,
                    ..defaults
                },
                "error: 0",
            ),
            (
                CanarySettings {
                    margin: -0.1,
                    ..defaults
                },
                "margin: -0.1",
            ),
            (
                CanarySettings {
                    faults_max: 0,
                    ..defaults
                },
                "faults_max: 0",
            ),
            (
                CanarySettings {
                    within_s: 0,
                    ..defaults
                },
                "within_s: 0",
            ),
            (
                CanarySettings {
                    slot_ms: Some(0),
                    ..defaults
                },
                "slot_ms: 0",
            ),
        ];
        for (settings, start) in wrong {
            let reason = settings.validate().unwrap_err();
            assert!(reason.starts_with(start), "{reason}");
        }
    }

    #[test]
    fn an_order_names_only_the_settings_that_it_changes() {
        let order = r#"{"share": 0.25, "promote_if": "not-worse"}"#;
        let settings: CanarySettings = serde_json::from_str(order).unwrap();
        let expected = CanarySettings {
            share: 0.25,
            promote_if: PromoteIf::NotWorse,
            ..CanarySettings::default()
        };
        assert_eq!(settings, expected);
        assert!(serde_json::from_str::<CanarySettings>(r#"{"shares": 0.25}"#).is_err());
    }
}
