//! The choice of apps and variants to serve, with settings that override their cards.

use switchyard_core::catalog::{Late, Penalty};
use switchyard_core::time::Micros;
use switchyard_models::card::AppCard;

/// Jeffreys' prior for a multinomial: 0.5 per class.
const JEFFREYS: f64 = 0.5;

/// A Dirichlet parameter must be positive, even for a class that is never expected.
const ALPHA_MIN: f64 = 1e-3;

/// One app to serve, with settings that override its card.
#[derive(Clone, Debug, PartialEq)]
pub struct AppChoice {
    /// Name of its folder in the zoo.
    pub app: String,
    /// Its variants by name, `NAME@PRECISION` for narrower weights; `None`: all, with the weights as
    /// they were trained.
    pub variants: Option<Vec<String>>,
    /// Deadline of a request that names none.
    pub slo: Option<Micros>,
    /// Loss of utility of a late answer.
    pub penalty: Option<Penalty>,
    /// The Dirichlet prior over its classes.
    pub prior: Prior,
    /// The evidence of a request's class.
    pub evidence: EvidenceChoice,
    /// Treatment of requests that cannot be answered in time.
    pub late: Late,
}

/// The evidence of a request's class (SneakPeek section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvidenceChoice {
    /// The number of nearest neighbours on the app's card.
    #[default]
    Card,
    /// This many nearest neighbours.
    Neighbours(u32),
    /// The single vote of a small classifier.
    Vote,
}

/// Choices of the Dirichlet prior (SneakPeek section 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Prior {
    /// The prior on the app's card, otherwise [`Jeffreys`](Self::Jeffreys).
    #[default]
    Card,
    /// 0.5 per class: no knowledge.
    Jeffreys,
    /// The expected class frequencies: one request's worth of knowledge.
    Weak,
    /// The expected number of requests of each class in a window.
    Strong {
        /// Requests expected per window.
        requests_per_window: f64,
    },
}

// === impl AppChoice ===

impl AppChoice {
    /// All variants of an app, with the settings of its card.
    pub fn new(app: impl Into<String>) -> Self {
        Self {
            app: app.into(),
            variants: None,
            slo: None,
            penalty: None,
            prior: Prior::default(),
            evidence: EvidenceChoice::default(),
            late: Late::Serve,
        }
    }
}

// === impl Prior ===

impl Prior {
    /// The Dirichlet parameters, one per class.
    pub(crate) fn alpha(self, card: &AppCard) -> Vec<f64> {
        let expected = |requests: f64| {
            let share = card.workload_mix.iter();
            share
                .map(|share| (share * requests).max(ALPHA_MIN))
                .collect()
        };
        match (self, &card.sneakpeek) {
            (Self::Card, Some(sneakpeek)) => sneakpeek.prior.clone(),
            (Self::Card, None) | (Self::Jeffreys, _) => vec![JEFFREYS; card.classes.len()],
            (Self::Weak, _) => expected(1.0),
            (
                Self::Strong {
                    requests_per_window,
                },
                _,
            ) => expected(requests_per_window),
        }
    }
}
