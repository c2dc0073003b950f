//! ModelSwitching: the model for each load, decided when the policy is configured.

use switchyard_sdk::catalog::App;
use switchyard_sdk::host::{self, ArtifactError};
use switchyard_sdk::{Catalog, VariantId};

use crate::menu::{Choice, Menu};
use crate::responses::{FILE, Measured, Responses};

/// The model of each profiled load.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switching {
    /// By ascending load in requests per second.
    steps: Vec<(f64, Choice)>,
}

// === impl Switching ===

impl Switching {
    /// For each load the most accurate model whose response latency is below the app's SLO; where
    /// none's is, the fastest.
    ///
    /// # Errors
    /// The file has nothing for the app on these workers, or for another SLO or other variants.
    pub(crate) fn new(
        catalog: &Catalog,
        app: App<'_>,
        menu: &Menu,
        responses: &Responses,
    ) -> Result<Self, String> {
        let workers = catalog.workers().len() as u32;
        let name = &app.name;
        let measured = responses.of(name, workers).ok_or_else(|| {
            format!("{FILE}: `measured`: has nothing for app {name} on {workers} workers")
        })?;
        let kinds = catalog.workers().map(|worker| worker.kind().index());
        let mut names = kinds.filter_map(|kind| catalog.raw().kinds.get(kind));
        if let Some(other) = names.find(|kind| **kind != measured.kind) {
            let of = &measured.kind;
            return Err(format!(
                "{FILE}: `kind`: is for {of}, there is a worker of kind {other}"
            ));
        }
        if measured.slo_us != app.slo {
            let (of, slo) = (measured.slo_us, app.slo);
            return Err(format!(
                "{FILE}: `slo_us`: is for {of}, the SLO of app {name} is {slo}"
            ));
        }
        let mut models = Vec::new();
        for variant in &measured.variants {
            let found = catalog
                .variants_of(app.id)
                .find(|v| v.name == variant.variant);
            let found = found.ok_or_else(|| {
                format!(
                    "{FILE}: `variants`: app {name} has no variant {}",
                    variant.variant
                )
            })?;
            models.push((found.id, found.accuracy()));
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

    /// The model for a load: that of the lowest profiled load which covers it, else that of the
    /// highest.
    pub(crate) fn at(&self, load_rps: f64) -> Option<Choice> {
        let covering = self.steps.partition_point(|&(load, _)| load < load_rps);
        let at = covering.min(self.steps.len().checked_sub(1)?);
        self.steps.get(at).map(|&(_, choice)| choice)
    }
}

fn most_accurate(measured: &Measured, models: &[(VariantId, f64)], at: usize) -> Option<Choice> {
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
    Some(Choice {
        variant,
        batch_max: batch_max as usize,
    })
}

/// Reads the file from a folder among the policy's artifacts.
///
/// # Errors
/// It is not there, and how it is made; or what in it is at fault.
pub(crate) fn read(folder: &str) -> Result<Responses, String> {
    let file = match folder.trim_end_matches('/') {
        "" => FILE.to_owned(),
        folder => format!("{folder}/{FILE}"),
    };
    let bytes = host::read_artifact(&file).map_err(|error| match error {
        ArtifactError::NotFound => format!(
            "settings: responses: there is no artifact {file}; `switchyard prepare selection` \
             makes it"
        ),
        error => format!("settings: responses: {file}: {error:?}"),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{file}: is no text"))?;
    Responses::parse(&text).map_err(|error| error.to_string())
}
