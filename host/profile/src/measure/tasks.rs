//! Tasks that sample cells.
//!
//! All stages to an exit in one go are one task. The way to the same exit stage by stage, with
//! requests parked between the stages, is another: it samples every single stage, the last stage
//! with the exit's head, and the sum, which is the price of the cuts.

use std::time::{Duration, Instant};

use switchyard_core::catalog::Variant;
use switchyard_core::ids::VariantId;
use switchyard_core::time::Micros;

use super::bench::{BenchError, KindBench, StageRange};
use super::cell::MeasuredCell;
use super::options::MeasureOptions;
use super::ranges::{batches_of, ranges_of};
use crate::measurement::MeteredEnergy;

/// One visit samples for this long, and at least once: fast cells get many samples, slow ones do
/// not hold the others up.
const VISIT: Duration = Duration::from_millis(2);

/// Cells, and the tasks that sample them.
pub(super) struct SamplingTasks {
    cells: Vec<MeasuredCell>,
    tasks: Vec<SamplingTask>,
}

/// Stage ranges that run one after another, for one batch size.
struct SamplingTask {
    variant: VariantId,
    batch: u32,
    ranges: Vec<StageRange>,
    /// Positions of the cells of `ranges`.
    range_cells: Vec<usize>,
    /// Position of the cell of their sum.
    sum_cell: Option<usize>,
}

// === impl SamplingTasks ===

impl SamplingTasks {
    /// For each variant all stages to each exit, then, if the kind `cuts`, stage by stage; batches in
    /// ascending order.
    pub(super) fn new(variants: &[Variant], batches: &[u32], cuts: bool) -> Self {
        let mut tasks = Self {
            cells: Vec::new(),
            tasks: Vec::new(),
        };
        for (id, variant) in (0u32..).map(VariantId).zip(variants) {
            tasks.add(id, variant, &batches_of(variant, batches), cuts);
        }
        tasks
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn variant(&self, task: usize) -> VariantId {
        self.tasks[task].variant
    }

    pub(super) fn cells(&self) -> &[MeasuredCell] {
        &self.cells
    }

    pub(super) fn cells_mut(&mut self) -> &mut [MeasuredCell] {
        &mut self.cells
    }

    /// Whether no task needs more samples.
    pub(super) fn all_done(&self, options: &MeasureOptions) -> bool {
        (0..self.len()).all(|task| self.is_done(task, options))
    }

    /// Runs a task once and records the times as warm-ups, unless it is done.
    pub(super) fn warm_up(
        &mut self,
        task: usize,
        bench: &mut dyn KindBench,
        options: &MeasureOptions,
    ) -> Result<(), BenchError> {
        if self.is_done(task, options) {
            return Ok(());
        }
        self.run(task, bench, |cell, took| cell.cold_us = took.0.max(1))
    }

    /// Takes the samples of one visit, unless the task is done.
    pub(super) fn visit(
        &mut self,
        task: usize,
        bench: &mut dyn KindBench,
        options: &MeasureOptions,
    ) -> Result<(), BenchError> {
        let start = Instant::now();
        let before_uj = bench.energy_uj();
        while !self.is_done(task, options) {
            self.run(task, bench, |cell, took| cell.add(took, options))?;
            if start.elapsed() >= VISIT {
                break;
            }
        }
        if let (Some(before_uj), Some(after_uj)) = (before_uj, bench.energy_uj()) {
            let metered = MeteredEnergy {
                uj: after_uj.saturating_sub(before_uj),
                us: u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX),
            };
            let SamplingTask {
                range_cells,
                sum_cell,
                ..
            } = &self.tasks[task];
            for &cell in range_cells.iter().chain(sum_cell) {
                self.cells[cell].metered.add(metered);
            }
        }
        Ok(())
    }

    /// The cell of the last range, which runs to the exit, decides for the task.
    fn is_done(&self, task: usize, options: &MeasureOptions) -> bool {
        let last = self.tasks[task].range_cells.last();
        last.is_none_or(|&cell| self.cells[cell].is_done(options))
    }

    fn run(
        &mut self,
        task: usize,
        bench: &mut dyn KindBench,
        mut record: impl FnMut(&mut MeasuredCell, Micros),
    ) -> Result<(), BenchError> {
        let (task, cells) = (&self.tasks[task], &mut self.cells);
        let mut sum = Micros::ZERO;
        let mut range_cells = task.range_cells.iter();
        bench.run(task.variant, &task.ranges, task.batch, &mut |took| {
            sum += took;
            if let Some(&cell) = range_cells.next() {
                record(&mut cells[cell], took);
            }
        })?;
        if let Some(cell) = task.sum_cell {
            record(&mut cells[cell], sum);
        }
        Ok(())
    }

    fn add(&mut self, id: VariantId, variant: &Variant, batches: &[u32], cuts: bool) {
        let mut ranges = ranges_of(variant);
        ranges.retain(|(range, sliced)| {
            let is_whole = !sliced && range.from == 0 && range.exit.is_some();
            cuts || is_whole
        });
        let first = self.cells.len();
        let cell_at = |range: usize, batch: usize| first + range * batches.len() + batch;
        for &(range, sliced) in &ranges {
            let cells = batches
                .iter()
                .map(|&batch| MeasuredCell::new(id, range, batch, sliced));
            self.cells.extend(cells);
        }
        let find = |range, sliced| ranges.iter().position(|&known| known == (range, sliced));
        for (r, &(range, sliced)) in ranges.iter().enumerate() {
            if sliced || range.exit.is_none() {
                continue; // Sampled stage by stage, on the way to an exit.
            }
            let stages = (0..range.from).filter_map(|s| find(StageRange::single(s), false));
            let positions: Vec<usize> = stages.chain([r]).collect();
            let sum = match range.from {
                0 => None,
                _ => find(StageRange { from: 0, ..range }, true),
            };
            for (b, &batch) in batches.iter().enumerate() {
                self.tasks.push(SamplingTask {
                    variant: id,
                    batch,
                    ranges: positions.iter().map(|&at| ranges[at].0).collect(),
                    range_cells: positions.iter().map(|&at| cell_at(at, b)).collect(),
                    sum_cell: sum.map(|at| cell_at(at, b)),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::ranges::variant;

    #[test]
    fn every_cell_is_sampled_by_some_task() {
        let variants = [variant(&[1], 8), variant(&[1, 2, 4], 3)];
        let tasks = SamplingTasks::new(&variants, &[1, 2, 4, 8, 16, 32], true);
        let mut sampled = vec![false; tasks.cells.len()];
        for task in &tasks.tasks {
            for &at in task.range_cells.iter().chain(&task.sum_cell) {
                sampled[at] = true;
                assert_eq!(tasks.cells[at].batch, task.batch);
                assert_eq!(tasks.cells[at].variant, task.variant);
            }
            let cells = task.range_cells.iter().map(|&at| tasks.cells[at].range);
            assert!(cells.eq(task.ranges.iter().copied()));
            let mut reached = 0;
            for range in &task.ranges {
                assert_eq!(range.from, reached, "from the first stage on, without gaps");
                reached = range.to;
            }
            let last = task.ranges.last();
            assert!(last.is_some_and(|range| range.exit.is_some()));
        }
        assert!(sampled.iter().all(|&is| is));
        let sums = tasks.cells.iter().filter(|cell| cell.sliced).count();
        assert_eq!(sums, 3, "one per batch of the variant that can be cut");
        let whole = SamplingTasks::new(&variants, &[1], false);
        let mut cells = whole.cells.iter();
        assert!(cells.all(|cell| cell.range.from == 0 && cell.range.exit.is_some()));
        assert_eq!(
            whole.tasks.len(),
            2 + 3 * 2,
            "each exit, the smallest and largest batch"
        );
    }
}
