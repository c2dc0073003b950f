//! Latency and energy of batches by the profile, looked up in advance for whole variants.

use std::collections::BTreeMap;

use switchyard_core::catalog::Catalog;
use switchyard_core::cost::Cost;
use switchyard_core::event::Launch;
use switchyard_core::ids::{ExitId, KindId, VariantId};
use switchyard_core::time::Micros;

/// Latency and energy of one batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProfiledBatch {
    pub(super) latency: Micros,
    pub(super) energy_uj: Option<u64>,
}

/// All batches that the profile knows: from the first stage in a flat table, other stage ranges by a
/// lookup in the profile.
#[derive(Debug)]
pub(super) struct ProfiledBatches {
    /// By kind and exit (of all variants, one after the other), then by batch size from 1.
    whole: Vec<Vec<Option<ProfiledBatch>>>,
    /// Number of each variant's first exit.
    first_exit: Vec<usize>,
    exits: usize,
    energy: EnergyTable,
}

/// A range of stages of a variant on a kind of worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StageRange {
    kind: KindId,
    variant: VariantId,
    from_stage: u32,
    to_stage: u32,
    exit: Option<ExitId>,
}

/// Energies in microjoules by ascending batch size.
#[derive(Debug, Default)]
struct EnergyTable(BTreeMap<StageRange, Vec<(u32, u64)>>);

// === impl ProfiledBatches ===

impl ProfiledBatches {
    pub(super) fn new(catalog: &Catalog) -> Self {
        let mut first_exit = Vec::new();
        let mut exits = 0;
        for variant in &catalog.variants {
            first_exit.push(exits);
            exits += variant.exits.len();
        }
        let mut profiled = Self {
            whole: Vec::new(),
            first_exit,
            exits,
            energy: EnergyTable::of(catalog),
        };
        for kind in (0..catalog.kinds.len() as u32).map(KindId) {
            for (id, variant) in (0..).map(VariantId).zip(&catalog.variants) {
                for (exit_id, exit) in (0..).map(ExitId).zip(&variant.exits) {
                    let range = StageRange {
                        kind,
                        variant: id,
                        from_stage: 0,
                        to_stage: exit.after_stage,
                        exit: Some(exit_id),
                    };
                    let sizes = 1..=variant.max_batch;
                    let by_size =
                        sizes.map(|size| profiled.look_up(range, Cost::whole(size), catalog));
                    let by_size = by_size.collect();
                    profiled.whole.push(by_size);
                }
            }
        }
        profiled
    }

    pub(super) fn get(
        &self,
        kind: KindId,
        launch: &Launch,
        catalog: &Catalog,
    ) -> Option<ProfiledBatch> {
        if let (0, Some(exit), Some(size)) = (launch.from_stage, launch.exit, rows_of(launch)) {
            let exit = self.first_exit[launch.variant.index()] + exit.index();
            let by_size = self.whole.get(kind.index() * self.exits + exit)?;
            return *by_size.get(size.checked_sub(1)?)?;
        }
        let range = StageRange {
            kind,
            variant: launch.variant,
            from_stage: launch.from_stage,
            to_stage: launch.to_stage,
            exit: launch.exit,
        };
        self.look_up(range, launch.cost, catalog)
    }

    fn look_up(&self, range: StageRange, cost: Cost, catalog: &Catalog) -> Option<ProfiledBatch> {
        let StageRange {
            kind,
            variant,
            from_stage,
            to_stage,
            exit,
        } = range;
        let profile = &catalog.profile;
        let latency = profile.latency_of(kind, variant, from_stage, to_stage, exit, cost)?;
        Some(ProfiledBatch {
            latency,
            energy_uj: self.energy.of_batch(range, cost.ceil()),
        })
    }
}

/// The requests of a batch that all cost 1.
fn rows_of(launch: &Launch) -> Option<usize> {
    let rows = launch.requests.len();
    (launch.cost == Cost::rows(rows)).then_some(rows)
}

// === impl EnergyTable ===

impl EnergyTable {
    fn of(catalog: &Catalog) -> Self {
        let mut table: BTreeMap<StageRange, Vec<(u32, u64)>> = BTreeMap::new();
        for row in catalog.profile.rows() {
            if let Some(energy_uj) = row.energy_uj {
                let range = StageRange {
                    kind: row.kind,
                    variant: row.variant,
                    from_stage: row.from_stage,
                    to_stage: row.to_stage,
                    exit: row.exit,
                };
                table.entry(range).or_default().push((row.batch, energy_uj));
            }
        }
        Self(table)
    }

    /// By the rules of `Profile::latency`: linear between sizes, none above the largest, and the sum
    /// of its stages for a range that was not measured.
    fn of_batch(&self, range: StageRange, size: u32) -> Option<u64> {
        if let Some(points) = self.0.get(&range) {
            let at = points.partition_point(|&(measured, _)| measured < size);
            let &(above, high) = points.get(at)?;
            if above == size || at == 0 {
                return Some(high);
            }
            let (below, low) = points[at - 1];
            let (span, into) = (u64::from(above - below), u64::from(size - below));
            let rise = high.abs_diff(low) * into / span;
            return Some(if high >= low { low + rise } else { low - rise });
        }
        let last = range
            .to_stage
            .checked_sub(1)
            .filter(|&last| last > range.from_stage)?;
        let head = StageRange {
            to_stage: last,
            exit: None,
            ..range
        };
        let tail = StageRange {
            from_stage: last,
            ..range
        };
        Some(self.of_batch(head, size)? + self.of_batch(tail, size)?)
    }
}
