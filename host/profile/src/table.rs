//! From a profile to the core's table, whose rows are numbered as a catalog is.

use std::collections::BTreeSet;

use switchyard_core::catalog::{App, Exit, Variant};
use switchyard_core::ids::{ExitId, KindId, VariantId};
use switchyard_core::profile::{LoadRow, Profile, ProfileRow};
use switchyard_core::time::Micros;

use crate::error::{ProfileError, ProfileMismatch};
use crate::percentile::Percentile;
use crate::schema::{LatencyCell, ProfileFile};

/// Names of a catalog: positions in these lists are the core's ids.
#[derive(Clone, Copy, Debug)]
pub struct CatalogNames<'a> {
    /// Worker kinds.
    pub kinds: &'a [String],
    /// Apps.
    pub apps: &'a [App],
    /// Variants of all apps.
    pub variants: &'a [Variant],
}

// === impl CatalogNames ===

impl<'a> CatalogNames<'a> {
    pub(crate) fn kind(self, name: &str) -> Option<KindId> {
        let at = self.kinds.iter().position(|kind| kind == name)?;
        Some(KindId(at as u32))
    }

    pub(crate) fn variant(self, app: &str, name: &str) -> Option<(VariantId, &'a Variant)> {
        let at = self.variants.iter().position(|variant| {
            let owner = self.apps.get(variant.app.index());
            variant.name == name && owner.is_some_and(|owner| owner.name == app)
        })?;
        Some((VariantId(at as u32), &self.variants[at]))
    }

    fn app_of(self, variant: &Variant) -> &'a str {
        let app = self.apps.get(variant.app.index());
        app.map_or("", |app| app.name.as_str())
    }
}

// === impl ProfileFile ===

impl ProfileFile {
    /// The core's table for a catalog. Cells of kinds, variants and exits that the catalog lacks
    /// are left out.
    ///
    /// # Errors
    /// An exit of a variant was not measured from the first stage, from batch 1 to the variant's
    /// largest; or the variant has changed since.
    pub fn to_core(
        &self,
        names: CatalogNames<'_>,
        percentile: Percentile,
    ) -> Result<Profile, ProfileError> {
        let rows = self.latencies.iter();
        let rows = rows.filter_map(|cell| row(cell, names, percentile));
        let loads = self.models.iter().filter_map(|cell| {
            Some(LoadRow {
                kind: names.kind(&cell.kind)?,
                variant: names.variant(&cell.app, &cell.variant)?.0,
                latency: Micros(cell.load_us),
            })
        });
        let mut profile = Profile::new(percentile.share(), rows, loads);
        if !self.lengths.is_empty() {
            let rows = self.latencies.iter();
            let rows = rows.filter_map(|cell| row(cell, names, Percentile::P50));
            let medians = Profile::new(Percentile::P50.share(), rows, []);
            for (app, curve) in self.cost_curves(names, &medians) {
                profile = profile.with_costs(app, curve);
            }
        }
        for kind in names.kinds {
            for variant in names.variants {
                self.check_covers(kind, names.app_of(variant), variant)?;
            }
        }
        Ok(profile)
    }

    /// Every exit from the first stage on must be known for every batch that a plan may launch.
    fn check_covers(&self, kind: &str, app: &str, variant: &Variant) -> Result<(), ProfileError> {
        let missing = |cell: &str| ProfileError::Missing {
            cell: format!("kind {kind}, variant {app}/{}, {cell}", variant.name),
        };
        let model = self
            .models
            .iter()
            .find(|cell| cell.kind == kind && cell.app == app && cell.variant == variant.name)
            .ok_or_else(|| missing("load time"))?;
        if model.memory_bytes != variant.memory_bytes {
            let mismatch = ProfileMismatch {
                field: format!("models[{kind}, {app}/{}].memory_bytes", variant.name),
                theirs: model.memory_bytes.to_string(),
                ours: variant.memory_bytes.to_string(),
            };
            return Err(mismatch.into());
        }
        for exit in &variant.exits {
            let batches = self.batches(kind, app, &variant.name, exit);
            let at = |batch: u32| {
                let (stages, exit) = (exit.after_stage, &exit.name);
                missing(&format!("stages 0 to {stages}, exit {exit}, batch {batch}"))
            };
            if !batches.contains(&1) {
                return Err(at(1));
            }
            if batches.last() < Some(&variant.max_batch) {
                return Err(at(variant.max_batch));
            }
        }
        Ok(())
    }

    /// The batch sizes for which an exit was measured from the first stage.
    fn batches(&self, kind: &str, app: &str, variant: &str, exit: &Exit) -> BTreeSet<u32> {
        let cells = self.latencies.iter().filter(|cell| {
            cell.is_of(kind, app, variant)
                && (cell.from_stage, cell.to_stage) == (0, exit.after_stage)
                && cell.exit.as_ref() == Some(&exit.name)
        });
        cells.map(|cell| cell.batch).collect()
    }
}

fn row(cell: &LatencyCell, names: CatalogNames<'_>, percentile: Percentile) -> Option<ProfileRow> {
    let (variant, known) = names.variant(&cell.app, &cell.variant)?;
    let exit = match &cell.exit {
        None => None,
        Some(name) => {
            let at = known.exits.iter().position(|exit| exit.name == *name)?;
            Some(ExitId(at as u32))
        }
    };
    Some(ProfileRow {
        kind: names.kind(&cell.kind)?,
        variant,
        from_stage: cell.from_stage,
        to_stage: cell.to_stage,
        exit,
        batch: cell.batch,
        latency: percentile.of(cell),
        energy_uj: cell.energy_uj,
    })
}
