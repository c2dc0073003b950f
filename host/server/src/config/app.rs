//! `[[app]]`: an application of a zoo, and the operator's changes to its card.

use std::path::PathBuf;

use serde::Deserialize;
use switchyard_core::catalog::{Late, Penalty};
use switchyard_core::time::Micros;
use switchyard_executor::manifest::{AppChoice, EvidenceChoice, Prior};

/// One application. Settings that are absent here come from its card in the zoo.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppConfig {
    /// Name in the URL, and folder of the app in the zoo.
    ///
    /// String; required; example `"heart"`.
    pub name: String,
    /// Folder of apps.
    ///
    /// Path; default `"models/zoo"`; example `"/srv/zoo"`.
    #[serde(default = "default_zoo")]
    pub zoo: PathBuf,
    /// Deadline of a request that names none, from its arrival.
    ///
    /// Number, ms, at least 0.001; default from the card; example `150.0`.
    pub slo_ms: Option<f64>,
    /// Utility that a late answer loses. `"step"`: all. `"linear"`: in proportion, all at twice the
    /// deadline. `"sigmoid"`: slowly, then fast, all at twice the deadline.
    ///
    /// `"step"`, `"linear"`, `"sigmoid"`; default from the card; example `"linear"`.
    pub penalty: Option<Penalty>,
    /// Dirichlet prior over the classes. `"card"`: the card's. `"jeffreys"`: 0.5 per class.
    /// `"weak"`: the expected class frequencies. `"strong"`: the expected requests of each class in
    /// a window.
    ///
    /// `"card"`, `"jeffreys"`, `"weak"`, `"strong"`; default `"card"`; example `"weak"`.
    #[serde(default)]
    pub prior: PriorName,
    /// Requests expected per window; the strong prior requires it.
    ///
    /// Number, above 0; default only with `prior = "strong"`; example `12.0`.
    pub prior_requests: Option<f64>,
    /// Evidence of a request's class. `"neighbours"`: the labels of its nearest training points.
    /// `"vote"`: the vote of a small classifier, faster with many points. An app without a
    /// classifier refuses `"vote"`; all shipped apps have one.
    ///
    /// `"neighbours"`, `"vote"`; default `"neighbours"`; example `"vote"`.
    #[serde(default)]
    pub evidence: EvidenceName,
    /// Neighbours counted, k.
    ///
    /// Integer, at least 1; default from the card; example `3`.
    pub neighbours: Option<u32>,
    /// Variants to serve. `NAME@f16`, `NAME@bf16` and `NAME@int8` have weights in [reduced
    /// precision](models.md#reduced-precision).
    ///
    /// List of strings; default all in the zoo; example `["cnn", "cnn@int8"]`.
    pub variants: Option<Vec<String>>,
    /// Treatment of requests that cannot be answered in time. `"shed"`: ended with 429 or 504 as
    /// soon as no variant can answer in time. `"last"`: served once nothing else waits. `"drop"`:
    /// ended with 504 at the deadline. `"serve"`: served late, as the policy decides.
    ///
    /// `"shed"`, `"last"`, `"drop"`, `"serve"`; default `"shed"`; example `"last"`.
    #[serde(default = "default_late")]
    pub late: Late,
}

/// Choices of the prior (SneakPeek section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorName {
    /// The prior of the app's card.
    #[default]
    Card,
    /// 0.5 per class.
    Jeffreys,
    /// The expected class frequencies.
    Weak,
    /// The expected requests of each class in a window of `prior_requests`.
    Strong,
}

/// The evidence of a request's class (SneakPeek section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceName {
    /// The nearest training points.
    #[default]
    Neighbours,
    /// The single vote of a small classifier.
    Vote,
}

// === impl AppConfig ===

impl AppConfig {
    /// The app of a zoo with all settings of its card.
    pub(crate) fn of_card(name: &str, zoo: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            zoo,
            slo_ms: None,
            penalty: None,
            prior: PriorName::default(),
            prior_requests: None,
            evidence: EvidenceName::default(),
            neighbours: None,
            variants: None,
            late: default_late(),
        }
    }

    /// The choice for the zoo's manifest.
    pub fn choice(&self) -> AppChoice {
        AppChoice {
            app: self.name.clone(),
            variants: self.variants.clone(),
            slo: self.slo_ms.map(|ms| Micros((ms * 1e3).round() as u64)),
            penalty: self.penalty,
            prior: match self.prior {
                PriorName::Card => Prior::Card,
                PriorName::Jeffreys => Prior::Jeffreys,
                PriorName::Weak => Prior::Weak,
                PriorName::Strong => Prior::Strong {
                    requests_per_window: self.prior_requests.unwrap_or_default(),
                },
            },
            evidence: match (self.evidence, self.neighbours) {
                (EvidenceName::Vote, _) => EvidenceChoice::Vote,
                (EvidenceName::Neighbours, Some(k)) => EvidenceChoice::Neighbours(k),
                (EvidenceName::Neighbours, None) => EvidenceChoice::Card,
            },
            late: self.late,
        }
    }
}

/// A team in production wants answers in time, and the truth at once otherwise.
fn default_late() -> Late {
    Late::Shed
}

fn default_zoo() -> PathBuf {
    PathBuf::from("models/zoo")
}
