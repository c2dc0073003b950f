//! ModelSwitching: the model of each load, decided when the policy is configured.

use switchyard_sdk::catalog::App;
use switchyard_sdk::host::{self, ArtifactError};
use switchyard_sdk::{Catalog, VariantId};

use crate::menu::{Menu, ModelChoice};
use crate::responses::{FILE, Measured, Responses};

/// The next command after an error.
const PREPARE: &str = "run `switchyard prepare selection`";

/// The model of each measured load.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadSteps {
    /// Ascending loads in requests per second.
    steps: Vec<(f64, ModelChoice)>,
}

// === impl LoadSteps ===

impl LoadSteps {
    /// Per load, the most accurate model whose response latency is below the app's SLO; the fastest
    /// if none is.
    ///
    /// # Errors
    /// The file has no measurement of the app on these workers, or one for another SLO or variants.
    pub(crate) fn new(
        catalog: &Catalog,
        app: App<'_>,
        menu: &Menu,
        responses: &Responses,
    ) -> Result<Self, String> {
        let workers = catalog.workers().len() as u32;
        let name = &app.name;
        let measured = responses.of(name, workers).ok_or_else(|| {
            format!("{FILE}: `measured`: no entry for app {name} on {workers} workers; {PREPARE}")
        })?;
        let kinds = catalog.workers().map(|worker| worker.kind().index());
        let mut names = kinds.filter_map(|kind| catalog.raw().kinds.get(kind));
        if let Some(other) = names.find(|kind| **kind != measured.kind) {
            let of = &measured.kind;
            return Err(format!(
                "{FILE}: `kind`: is {of}, but a worker has kind {other}; {PREPARE}"
            ));
        }
        if measured.slo_us != app.slo {
            let (of, slo) = (measured.slo_us, app.slo);
            return Err(format!(
                "{FILE}: `slo_us`: is {of}, but the SLO of app {name} is {slo}; {PREPARE}"
            ));
        }
        let mut models = Vec::new();
        for variant in &measured.variants {
            let found = catalog
                .variants_of(app.id)
                .find(|v| v.name == variant.variant);
            let found = found.ok_or_else(|| {
                format!(
                    "{FILE}: `variants`: unknown variant {} of app {name}; {PREPARE}",
                    variant.variant
                )
            })?;
            models.push((found.id, found.quality()));
        }
        let choices = (0..).zip(&measured.loads_rps);
        let steps = choices.filter_map(|(at, &load)| {
            let below = most_accurate(measured, &models, at);
            Some((load, below.or(menu.fastest)?))
        });
        Ok(Self {
            steps: steps.collect(),
        })
    }

    /// The model for a load: that of the lowest measured load that covers it, otherwise of the
    /// highest.
    pub(crate) fn at(&self, load_rps: f64) -> Option<ModelChoice> {
        let covering = self.steps.partition_point(|&(load, _)| load < load_rps);
        let at = covering.min(self.steps.len().checked_sub(1)?);
        self.steps.get(at).map(|&(_, choice)| choice)
    }
}

fn most_accurate(
    measured: &Measured,
    models: &[(VariantId, f64)],
    at: usize,
) -> Option<ModelChoice> {
    let below = models
        .iter()
        .zip(&measured.variants)
        .filter(|(_, variant)| {
            let response = variant.response_us.get(at).copied().flatten();
            response.is_some_and(|us| us < measured.slo_us)
        });
    let best = below.max_by(|((_, a), _), ((_, b), _)| a.total_cmp(b));
    let (&(variant, _), responses) = best?;
    let &batch_max = responses.batch_max.get(at)?;
    Some(ModelChoice {
        variant,
        batch_max: batch_max as usize,
    })
}

/// Reads the file from a folder among the policy's artifacts.
///
/// # Errors
/// The file is missing, with the command that writes it; or the field at fault.
pub(crate) fn read(folder: &str) -> Result<Responses, String> {
    let file = match folder.trim_end_matches('/') {
        "" => FILE.to_owned(),
        folder => format!("{folder}/{FILE}"),
    };
    let bytes = host::read_artifact(&file).map_err(|error| match error {
        ArtifactError::NotFound => format!("settings: responses: no artifact {file}; {PREPARE}"),
        error => format!("settings: responses: {file}: {error:?}"),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{file}: is not UTF-8; {PREPARE}"))?;
    Responses::parse(&text).map_err(|error| error.to_string())
}
