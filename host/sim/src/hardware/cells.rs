//! The profile's cells, looked up beforehand where a run will ask for them most.

use std::collections::BTreeMap;

use switchyard_core::catalog::Catalog;
use switchyard_core::event::Run;
use switchyard_core::ids::{ExitId, KindId, VariantId};
use switchyard_core::time::Micros;

/// Latency and energy of one run of one batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) latency: Micros,
    pub(super) energy_uj: Option<u64>,
}

/// All whole runs in a flat table; stage ranges are asked of the profile.
#[derive(Debug)]
pub(super) struct Cells {
    /// By kind and exit (of all variants, one after the other), then by batch from 1.
    whole: Vec<Vec<Option<Cell>>>,
    /// Number of each variant's first exit.
    first_exit: Vec<usize>,
    exits: usize,
    energy: Energy,
}

/// Kind, variant, stages, exit.
type Key = (KindId, VariantId, u32, u32, Option<ExitId>);

/// Energies by ascending batch.
#[derive(Debug, Default)]
struct Energy(BTreeMap<Key, Vec<(u32, u64)>>);

// === impl Cells ===

impl Cells {
    pub(super) fn new(catalog: &Catalog) -> Self {
        let mut first_exit = Vec::new();
        let mut exits = 0;
        for variant in &catalog.variants {
            first_exit.push(exits);
            exits += variant.exits.len();
        }
        let mut cells = Self {
            whole: Vec::new(),
            first_exit,
            exits,
            energy: Energy::of(catalog),
        };
        for kind in (0..catalog.kinds.len() as u32).map(KindId) {
            for (v, variant) in (0..).map(VariantId).zip(&catalog.variants) {
                for (e, exit) in (0..).map(ExitId).zip(&variant.exits) {
                    let key = (kind, v, 0, exit.after_stage, Some(e));
                    let batches = 1..=variant.max_batch;
                    let row = batches.map(|batch| cells.look_up(key, batch, catalog));
                    let row = row.collect();
                    cells.whole.push(row);
                }
            }
        }
        cells
    }

    pub(super) fn get(&self, kind: KindId, run: &Run, catalog: &Catalog) -> Option<Cell> {
        let batch = run.requests.len();
        if let (0, Some(exit)) = (run.from_stage, run.exit) {
            let exit = self.first_exit[run.variant.index()] + exit.index();
            let row = self.whole.get(kind.index() * self.exits + exit)?;
            return *row.get(batch.checked_sub(1)?)?;
        }
        let key = (kind, run.variant, run.from_stage, run.to_stage, run.exit);
        self.look_up(key, batch as u32, catalog)
    }

    fn look_up(&self, key: Key, batch: u32, catalog: &Catalog) -> Option<Cell> {
        let (kind, variant, from, to, exit) = key;
        let latency = catalog
            .profile
            .latency(kind, variant, from, to, exit, batch)?;
        Some(Cell {
            latency,
            energy_uj: self.energy.of_run(key, batch),
        })
    }
}

// === impl Energy ===

impl Energy {
    fn of(catalog: &Catalog) -> Self {
        let mut table: BTreeMap<Key, Vec<(u32, u64)>> = BTreeMap::new();
        for row in catalog.profile.rows() {
            if let Some(energy_uj) = row.energy_uj {
                let key = (
                    row.kind,
                    row.variant,
                    row.from_stage,
                    row.to_stage,
                    row.exit,
                );
                table.entry(key).or_default().push((row.batch, energy_uj));
            }
        }
        Self(table)
    }

    /// By the rules of `Profile::latency`: linear between batches, none above the largest, a
    /// range that was not measured is the sum of its stages.
    fn of_run(&self, key: Key, batch: u32) -> Option<u64> {
        if let Some(points) = self.0.get(&key) {
            let at = points.partition_point(|&(measured, _)| measured < batch);
            let &(above, high) = points.get(at)?;
            if above == batch || at == 0 {
                return Some(high);
            }
            let (below, low) = points[at - 1];
            let (span, into) = (u64::from(above - below), u64::from(batch - below));
            let rise = high.abs_diff(low) * into / span;
            return Some(if high >= low { low + rise } else { low - rise });
        }
        let (kind, variant, from, to, exit) = key;
        if to <= from + 1 {
            return None;
        }
        let head = self.of_run((kind, variant, from, to - 1, None), batch)?;
        Some(head + self.of_run((kind, variant, to - 1, to, exit), batch)?)
    }
}
