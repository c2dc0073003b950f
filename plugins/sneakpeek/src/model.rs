//! The candidates of each app: every exit of every variant, and the SneakPeek model. Worked
//! out once per catalog.

use switchyard_sdk::accuracy::{expected, posterior};
use switchyard_sdk::catalog::App;
use switchyard_sdk::priority::variance;
use switchyard_sdk::{Catalog, ExitId, Penalty, VariantId};

use crate::settings::Settings;

/// Candidates of one app; a set of them is the bits of a `u64`.
const MODELS_MAX: usize = 64;

/// Variants of a catalog; which ones a worker holds is [`Residents`].
const VARIANTS_MAX: usize = 256;

/// What one app's requests can be answered with.
#[derive(Clone, Debug)]
pub(crate) struct AppModels {
    pub(crate) penalty: Penalty,
    /// Dirichlet parameters (eq. 10).
    pub(crate) prior: Vec<f64>,
    /// The exits, then the SneakPeek model where there is one.
    pub(crate) models: Vec<Model>,
    /// Accuracy of each model for a request without evidence.
    pub(crate) unseen: Vec<f64>,
    /// Variance of `unseen` over the models that run.
    pub(crate) unseen_variance: f64,
    /// The least time in which a worker can answer one request.
    pub(crate) fastest_us: u64,
    /// Requests of one group at most.
    pub(crate) group_max: usize,
}

/// One candidate.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// What runs; none for the SneakPeek model, whose answer is there already.
    pub(crate) run: Option<(VariantId, ExitId)>,
    /// Accuracy on the test set.
    pub(crate) profiled: f64,
    pub(crate) recall: Vec<f64>,
    /// What it costs on each kind of worker.
    pub(crate) by_kind: Vec<Cost>,
    pub(crate) memory_bytes: u64,
}

/// What a model costs on one kind of worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cost {
    /// By batch, from 1; empty where it cannot run.
    pub(crate) latencies_us: Vec<u64>,
    /// To make its variant resident.
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
    /// More variants or candidates than fit the sets, by name.
    pub(crate) fn of_catalog(catalog: &Catalog, settings: &Settings) -> Result<Vec<Self>, String> {
        if catalog.variants().len() > VARIANTS_MAX {
            return Err(format!("catalog: variants: more than {VARIANTS_MAX}"));
        }
        catalog
            .apps()
            .map(|app| Self::try_new(catalog, app, settings))
            .collect()
    }

    fn try_new(catalog: &Catalog, app: App<'_>, settings: &Settings) -> Result<Self, String> {
        let mut models = runnable(catalog, app, settings.exits);
        if let Some(model) = app.sneakpeek.as_ref().filter(|_| settings.short_circuits()) {
            models.push(Model {
                run: None,
                profiled: model.accuracy,
                recall: model.recall.clone(),
                by_kind: Vec::new(),
                memory_bytes: 0,
            });
        }
        if models.len() > MODELS_MAX {
            let name = &app.name;
            return Err(format!(
                "settings: exits: {name} has more than {MODELS_MAX} candidates"
            ));
        }
        let theta = settings
            .is_data_aware()
            .then(|| posterior(&app.prior, None));
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

    /// Models that run on a worker; they come first.
    pub(crate) fn runs(&self) -> usize {
        runs(&self.models)
    }

    /// Those candidates whose profiled accuracy is what a client asks for; all of them when
    /// none reaches it.
    pub(crate) fn reaching(&self, min_accuracy: f64) -> u64 {
        // The client's number was rounded to an f32 on its way.
        let reaches = |model: &Model| model.profiled >= min_accuracy - 1e-6;
        let all = self.models.iter().enumerate();
        let mask = all
            .filter(|(_, model)| reaches(model))
            .fold(0, |mask, (i, _)| mask | 1 << i);
        if mask == 0 { u64::MAX } else { mask }
    }

    /// The SneakPeek model's position, where it is a candidate.
    pub(crate) fn sneakpeek(&self) -> Option<usize> {
        let last = self.models.len().checked_sub(1)?;
        self.models[last].run.is_none().then_some(last)
    }
}

fn runs(models: &[Model]) -> usize {
    models
        .iter()
        .take_while(|model| model.run.is_some())
        .count()
}

fn runnable(catalog: &Catalog, app: App<'_>, exits: bool) -> Vec<Model> {
    let mut models = Vec::new();
    for variant in catalog.variants_of(app.id) {
        for exit in variant
            .exit_ids()
            .filter(|&exit| exits || exit == variant.last_exit())
        {
            let by_kind = (0..catalog.kinds()).map(|kind| {
                let of_kind = catalog
                    .workers()
                    .find(|worker| worker.kind().index() == kind);
                of_kind.map_or_else(Cost::default, |worker| Cost {
                    latencies_us: catalog.latencies_us(worker.id, variant.id, exit).to_vec(),
                    load_us: catalog.load_us(worker.id, variant.id),
                })
            });
            models.push(Model {
                run: Some((variant.id, exit)),
                profiled: variant.exit(exit).accuracy,
                recall: variant.exit(exit).recall.clone(),
                by_kind: by_kind.collect(),
                memory_bytes: variant.memory_bytes,
            });
        }
    }
    models
}

// === impl Model ===

impl Model {
    /// Accuracy for class probabilities theta (eq. 9). Without them, and always for the
    /// SneakPeek model, which must not judge itself by its own guess (section 5.3.1), it is
    /// the profiled one.
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
