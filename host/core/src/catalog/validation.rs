//! Checks that a catalog holds together: references, lengths, shares, and a profile without gaps.

use thiserror::Error;

use super::{App, Catalog, Confusion, Variant};
use crate::ids::{ExitId, KindId, VariantId};
use crate::time::Micros;

/// Longest latency of a batch or a load in a profile. A longer one is a mistake of its maker, and
/// sums of latencies must stay far from the end of the clock.
pub const LATENCY_MAX: Micros = Micros::from_millis(3_600_000);

/// Why a catalog is refused: the first field at fault.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("catalog: {field}: {reason}")]
pub struct CatalogError {
    /// The entry, such as `variants[2].exits[0].recall`.
    pub field: String,
    /// The violated rule.
    pub reason: String,
}

// === impl Catalog ===

impl Catalog {
    /// Checks that every reference and every number makes sense.
    ///
    /// # Errors
    /// The first field that does not, by name.
    pub fn validate(&self) -> Result<(), CatalogError> {
        for (i, app) in self.apps.iter().enumerate() {
            app.validate()
                .map_err(|e| e.inside(&format!("apps[{i}]")))?;
        }
        for (i, variant) in self.variants.iter().enumerate() {
            let at = format!("variants[{i}]");
            let app = self
                .app(variant.app)
                .ok_or_else(|| CatalogError::new("app", "no such app").inside(&at))?;
            variant.validate(app).map_err(|e| e.inside(&at))?;
        }
        for (i, worker) in self.workers.iter().enumerate() {
            if worker.kind.index() >= self.kinds.len() {
                return Err(
                    CatalogError::new("kind", "no such kind").inside(&format!("workers[{i}]"))
                );
            }
        }
        self.validate_profile()
    }

    /// Every exit of every variant is measured on the kind of every worker, from the first stage
    /// on, with the smallest and the largest batch.
    fn validate_profile(&self) -> Result<(), CatalogError> {
        self.validate_latencies()?;
        for worker in &self.workers {
            for (v, variant) in (0..).map(VariantId).zip(&self.variants) {
                for (e, exit) in (0..).map(ExitId).zip(&variant.exits) {
                    let (kind, to_stage) = (worker.kind, exit.after_stage);
                    let latency =
                        |&batch: &u32| self.profile.latency(kind, v, 0, to_stage, Some(e), batch);
                    let mut needed = [1, variant.max_batch].into_iter();
                    if let Some(batch) = needed.find(|batch| latency(batch).is_none()) {
                        let app = self.app(variant.app).map_or("", |app| &app.name);
                        let kind = &self.kinds[kind.index()];
                        let (variant, exit) = (&variant.name, &exit.name);
                        let field = format!(
                            "profile[kind {kind}, variant {app}/{variant}, exit {exit}, batch {batch}]"
                        );
                        return Err(CatalogError::new(&field, "not measured"));
                    }
                }
            }
        }
        Ok(())
    }

    /// No latency is beyond [`LATENCY_MAX`].
    fn validate_latencies(&self) -> Result<(), CatalogError> {
        let error = |kind: KindId, variant: VariantId, which: String, latency: Micros| {
            let kind = self.kinds.get(kind.index()).map_or("?", String::as_str);
            let found = self.variant(variant);
            let app = found.and_then(|variant| self.app(variant.app));
            let app = app.map_or("?", |app| &app.name);
            let variant = found.map_or("?", |variant| &variant.name);
            let field = format!("profile[kind {kind}, variant {app}/{variant}, {which}]");
            let (us, most) = (latency.0, LATENCY_MAX.0);
            let reason = format!("{us} us is above {most} us, one hour; measure the profile again");
            CatalogError::new(&field, &reason)
        };
        for row in self.profile.rows() {
            if row.latency > LATENCY_MAX {
                let which = format!("batch {}", row.batch);
                return Err(error(row.kind, row.variant, which, row.latency));
            }
        }
        for load in self.profile.loads() {
            if load.latency > LATENCY_MAX {
                return Err(error(
                    load.kind,
                    load.variant,
                    "load".to_owned(),
                    load.latency,
                ));
            }
        }
        Ok(())
    }
}

// === impl App ===

impl App {
    fn validate(&self) -> Result<(), CatalogError> {
        let classes = self.classes.len();
        if self.slo == Micros::ZERO {
            return Err(CatalogError::new("slo", "must be positive"));
        }
        if self.prior.len() != classes || !self.prior.iter().all(|a| a.is_finite() && *a > 0.0) {
            return Err(CatalogError::new(
                "prior",
                "needs one positive number per class",
            ));
        }
        check_shares("frequencies", &self.frequencies, classes)?;
        if let Some(model) = &self.sneakpeek {
            check_shares("sneakpeek.recall", &model.recall, classes)?;
            check_shares("sneakpeek.accuracy", &[model.accuracy], 1)?;
            let confusion = model.confusion.as_ref();
            self.check_confusion("SneakPeek model", confusion, &model.recall)?;
        }
        Ok(())
    }

    /// `of` names the owner of the matrix in the error, next to the app and the class.
    fn check_confusion(
        &self,
        of: &str,
        confusion: Option<&Confusion>,
        recall: &[f64],
    ) -> Result<(), CatalogError> {
        let checked = confusion.map_or(Ok(()), |confusion| confusion.validate(recall));
        checked.map_err(|error| CatalogError {
            field: format!(
                "confusion of app {}, {of}, {}",
                self.name,
                self.class(error.class)
            ),
            reason: error.reason,
        })
    }
}

// === impl Variant ===

impl Variant {
    fn validate(&self, app: &App) -> Result<(), CatalogError> {
        if self.stages == 0 {
            return Err(CatalogError::new("stages", "must be at least 1"));
        }
        if self.max_batch == 0 {
            return Err(CatalogError::new("max_batch", "must be at least 1"));
        }
        if self.exits.last().map(|e| e.after_stage) != Some(self.stages) {
            return Err(CatalogError::new(
                "exits",
                "the last exit must follow the last stage",
            ));
        }
        for (i, exit) in self.exits.iter().enumerate() {
            let at = format!("exits[{i}]");
            if exit.after_stage == 0 || i > 0 && exit.after_stage <= self.exits[i - 1].after_stage {
                return Err(
                    CatalogError::new("after_stage", "must grow from exit to exit").inside(&at),
                );
            }
            check_shares("recall", &exit.recall, app.classes.len()).map_err(|e| e.inside(&at))?;
            check_shares("accuracy", &[exit.accuracy], 1).map_err(|e| e.inside(&at))?;
            let of = format!("variant {}, exit {}", self.name, exit.name);
            app.check_confusion(&of, exit.confusion.as_ref(), &exit.recall)
                .map_err(|e| e.inside(&at))?;
        }
        Ok(())
    }
}

// === impl CatalogError ===

impl CatalogError {
    fn new(field: &str, reason: &str) -> Self {
        Self {
            field: field.to_owned(),
            reason: reason.to_owned(),
        }
    }

    fn inside(mut self, at: &str) -> Self {
        self.field = format!("{at}.{}", self.field);
        self
    }
}

fn check_shares(field: &str, values: &[f64], len: usize) -> Result<(), CatalogError> {
    if values.len() == len && values.iter().all(|v| (0.0..=1.0).contains(v)) {
        return Ok(());
    }
    Err(CatalogError::new(
        field,
        &format!("needs {len} numbers between 0 and 1"),
    ))
}
