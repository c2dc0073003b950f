//! `[[app]]`: an application out of a zoo, and what the operator wants otherwise.

use std::path::PathBuf;

use serde::Deserialize;
use switchyard_core::catalog::Penalty;
use switchyard_core::time::Micros;
use switchyard_executor::manifest::{AppChoice, EvidenceChoice, Prior};

/// One application. What is not said here is as its card in the zoo says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppConfig {
    /// Name in the URL, and of its folder in the zoo.
    pub name: String,
    /// Folder of applications that holds it.
    #[serde(default = "default_zoo")]
    pub zoo: PathBuf,
    /// Deadline of a request that names none, in milliseconds from its arrival.
    pub slo_ms: Option<f64>,
    /// Shape of the penalty for a late answer.
    pub penalty: Option<Penalty>,
    /// Where the Dirichlet prior over the classes comes from.
    #[serde(default)]
    pub prior: PriorName,
    /// For the strong prior: requests expected per window.
    pub prior_requests: Option<f64>,
    /// What is counted as evidence of a request's class.
    #[serde(default)]
    pub evidence: EvidenceName,
    /// Neighbours counted, as the app's card says when absent.
    pub neighbours: Option<u32>,
    /// The variants to serve, all when absent.
    pub variants: Option<Vec<String>>,
    /// What becomes of a request whose deadline has passed before it ran.
    #[serde(default)]
    pub late: Late,
}

/// What becomes of a request whose deadline has passed before it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// It is answered late.
    #[default]
    Serve,
    /// It is dropped, and its client told so (504).
    Drop,
}

/// Choices of the prior (SneakPeek section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorName {
    /// What the app's card says.
    #[default]
    Card,
    /// 0.5 per class.
    Jeffreys,
    /// The expected class frequencies.
    Weak,
    /// The expected requests of each class in a window of `prior_requests`.
    Strong,
}

/// What is counted as evidence of a request's class (SneakPeek section 4).
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
    /// As the zoo's manifest wants it.
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
            drops_late: self.late == Late::Drop,
        }
    }
}

fn default_zoo() -> PathBuf {
    PathBuf::from("models/zoo")
}
