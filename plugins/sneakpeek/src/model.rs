//! The candidate models of each app: every exit of every variant, and the SneakPeek model. Computed
//! once per catalog.

use switchyard_sdk::accuracy::{expected, posterior};
use switchyard_sdk::catalog::App;
use switchyard_sdk::priority::variance;
use switchyard_sdk::{Catalog, ExitId, Penalty, VariantId};

use crate::settings::SneakPeekSettings;

/// Largest number of candidates of an app: a set of them is a `u64`.
const MODELS_MAX: usize = 64;

/// Largest number of variants of a catalog, for [`Residents`].
const VARIANTS_MAX: usize = 256;

/// The candidate models of one app.
#[derive(Clone, Debug)]
pub(crate) struct AppModels {
    pub(crate) penalty: Penalty,
    /// Dirichlet parameters (eq. 10).
    pub(crate) prior: Vec<f64>,
    /// The exits, then the SneakPeek model if it is a candidate.
    pub(crate) models: Vec<CandidateModel>,
    /// Accuracy of each candidate for a request without evidence.
    pub(crate) unseen: Vec<f64>,
    /// Variance of `unseen` over the exits.
    pub(crate) unseen_variance: f64,
    /// The least latency of one request on any worker.
    pub(crate) fastest_us: u64,
    /// Largest number of requests of a group.
    pub(crate) group_max: usize,
}

/// One candidate.
#[derive(Clone, Debug)]
pub(crate) struct CandidateModel {
    /// None for the SneakPeek model, which answers from evidence.
    pub(crate) run: Option<(VariantId, ExitId)>,
    /// Whether its exit is not the last one of the variant.
    pub(crate) is_early: bool,
    /// Accuracy on the test set.
    pub(crate) profiled: f64,
    pub(crate) recall: Vec<f64>,
    /// One per kind of worker; empty for the SneakPeek model.
    pub(crate) by_kind: Vec<ModelCost>,
    pub(crate) memory_bytes: u64,
}

/// The cost of a candidate on one kind of worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelCost {
    /// By batch, from 1; empty if it cannot run there.
    pub(crate) latencies_us: Vec<u64>,
    /// Load time of its variant.
    pub(crate) load_us: u64,
}

/// A set of variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Residents([u64; VARIANTS_MAX / 64]);

// === impl AppModels ===

impl AppModels {
    /// The candidates of every app.
    ///
    /// # Errors
    /// More than 256 variants, or an app with more than 64 candidates.
    pub(crate) fn of_catalog(
        catalog: &Catalog,
        settings: &SneakPeekSettings,
    ) -> Result<Vec<Self>, String> {
        if catalog.variants().len() > VARIANTS_MAX {
            return Err(format!(
                "catalog: {} variants; sneakpeek takes at most {VARIANTS_MAX}",
                catalog.variants().len()
            ));
        }
        catalog
            .apps()
            .map(|app| Self::try_new(catalog, app, settings))
            .collect()
    }

    fn try_new(
        catalog: &Catalog,
        app: App<'_>,
        settings: &SneakPeekSettings,
    ) -> Result<Self, String> {
        let mut models = runnable(catalog, app, settings.exits);
        if let Some(model) = app.sneakpeek.as_ref().filter(|_| settings.short_circuits()) {
            models.push(CandidateModel {
                run: None,
                is_early: false,
                profiled: model.accuracy,
                recall: model.recall.clone(),
                by_kind: Vec::new(),
                memory_bytes: 0,
            });
        }
        if models.len() > MODELS_MAX {
            let name = &app.name;
            return Err(format!(
                "settings: exits: app {name} has {} candidates, at most {MODELS_MAX}; try exits = false",
                models.len()
            ));
        }
        let theta = settings
            .is_data_aware()
            .then(|| posterior(&app.prior, None))
            .filter(|_| app.classifies());
        let unseen: Vec<f64> = models
            .iter()
            .map(|m| m.accuracy(theta.as_deref()))
            .collect();
        let costs = || models.iter().flat_map(|model| &model.by_kind);
        let largest = costs()
            .map(|cost| cost.latencies_us.len())
            .max()
            .unwrap_or(1);
        Ok(Self {
            penalty: app.penalty,
            prior: app.prior.clone(),
            unseen_variance: variance(&unseen[..runs(&models)]),
            fastest_us: costs()
                .filter_map(|c| c.latencies_us.first())
                .min()
                .copied()
                .unwrap_or(0),
            group_max: match settings.group_max {
                _ if !settings.algorithm.groups() => 1,
                bound => bound.unwrap_or(largest).clamp(1, largest.max(1)),
            },
            unseen,
            models,
        })
    }

    /// Number of candidates that run on a worker; they come first.
    pub(crate) fn runs(&self) -> usize {
        runs(&self.models)
    }

    /// The candidates whose profiled accuracy reaches `min_quality`, as bits; all if none does.
    pub(crate) fn reaching(&self, min_quality: f64) -> u64 {
        // The client's value was rounded to f32.
        let reaches = |model: &CandidateModel| model.profiled >= min_quality - 1e-6;
        let all = self.models.iter().enumerate();
        let mask = all
            .filter(|(_, model)| reaches(model))
            .fold(0, |mask, (i, _)| mask | 1 << i);
        if mask == 0 { u64::MAX } else { mask }
    }

    /// Index of the SneakPeek model, if it is a candidate.
    pub(crate) fn sneakpeek(&self) -> Option<usize> {
        let last = self.models.len().checked_sub(1)?;
        self.models[last].run.is_none().then_some(last)
    }
}

fn runs(models: &[CandidateModel]) -> usize {
    models
        .iter()
        .take_while(|model| model.run.is_some())
        .count()
}

fn runnable(catalog: &Catalog, app: App<'_>, exits: bool) -> Vec<CandidateModel> {
    let mut models = Vec::new();
    for variant in catalog.variants_of(app.id) {
        for exit in variant
            .exit_ids()
            .filter(|&exit| exits || exit == variant.last_exit())
        {
            let latencies_us = |worker| catalog.latencies_us(worker, variant.id, exit);
            let by_kind = (0..catalog.kinds()).map(|kind| {
                let mut of_kind = catalog.workers().filter(|w| w.kind().index() == kind);
                // Workers of one kind have equal latencies, except at exits that some do not answer.
                let answering = of_kind.find(|w| !latencies_us(w.id).is_empty());
                answering.map_or_else(ModelCost::default, |worker| ModelCost {
                    latencies_us: latencies_us(worker.id).to_vec(),
                    load_us: catalog.load_us(worker.id, variant.id),
                })
            });
            models.push(CandidateModel {
                run: Some((variant.id, exit)),
                is_early: exit != variant.last_exit(),
                profiled: variant.quality_of(exit),
                recall: variant.exit(exit).recall.clone(),
                by_kind: by_kind.collect(),
                memory_bytes: variant.memory_bytes,
            });
        }
    }
    models
}

// === impl CandidateModel ===

impl CandidateModel {
    /// Accuracy for class probabilities theta (eq. 9). Without theta, and always for the SneakPeek
    /// model, which must not judge its own guess (section 5.3.1), the profiled accuracy.
    pub(crate) fn accuracy(&self, theta: Option<&[f64]>) -> f64 {
        match theta {
            Some(theta) if self.run.is_some() => expected(theta, &self.recall),
            _ => self.profiled,
        }
    }
}

// === impl Residents ===

impl Residents {
    pub(crate) fn contains(&self, variant: VariantId) -> bool {
        self.0[variant.index() / 64] & (1 << (variant.index() % 64)) != 0
    }

    pub(crate) fn insert(&mut self, variant: VariantId) {
        self.0[variant.index() / 64] |= 1 << (variant.index() % 64);
    }
}
