//! Which runs and batches of a variant are measured, and in which order.
//!
//! A whole run is one task. So is the way to an exit stage by stage, requests parked between
//! them: it gives a sample of every stage, of the last stage with the exit's head, and of what
//! cutting the run into stages costs.

use std::time::{Duration, Instant};

use switchyard_core::catalog::{Exit, Variant};
use switchyard_core::ids::ExitId;
use switchyard_core::time::Micros;

use super::MeasureOptions;
use super::bench::{Bench, Run};
use crate::energy::EnergyMeter;
use crate::error::ExecuteError;
use crate::profile::measurement::Metered;
use crate::profile::samples::is_settled;

/// One visit measures for this long, and once at least: short runs get many samples, long ones
/// do not hold the others up.
const VISIT: Duration = Duration::from_millis(2);

/// A cell with so many samples and no time left is done.
const SAMPLES_FEW: usize = 10;

/// A median that is known to within this share of itself has settled.
const SETTLED: f64 = 0.02;

/// One run of one batch, and how long it took each time.
pub(super) struct Cell {
    /// Position of its variant.
    pub(super) variant: usize,
    pub(super) run: Run,
    pub(super) batch: u32,
    /// The sum of a run's stages, in the place of the run in one go.
    pub(super) sliced: bool,
    /// The first run, in which buffers grow and caches fill.
    pub(super) cold_us: u64,
    pub(super) samples_us: Vec<u64>,
    /// Time that its samples took.
    pub(super) spent: Duration,
    pub(super) metered: Metered,
}

/// Cells, and the tasks that sample them.
pub(super) struct Tasks {
    cells: Vec<Cell>,
    tasks: Vec<(Task, Work)>,
}

/// Something that is run in one go.
#[derive(Clone, Copy)]
pub(super) struct Task {
    /// Position of its variant.
    pub(super) variant: usize,
    batch: u32,
    /// Position of the cell that says when it is done.
    decides: usize,
}

/// Positions of cells.
enum Work {
    /// One run.
    Whole,
    /// Stage after stage, and where the sum goes.
    Stages(Vec<usize>, Option<usize>),
}

// === impl Work ===

impl Work {
    /// Positions of all cells that it samples; `decides` is the cell of a whole run.
    fn cells(&self, decides: usize) -> Vec<usize> {
        match self {
            Self::Whole => vec![decides],
            Self::Stages(stages, sum) => stages.iter().chain(sum).copied().collect(),
        }
    }
}

// === impl Cell ===

impl Cell {
    /// Whether there is a figure at all.
    pub(super) fn is_measured(&self) -> bool {
        self.cold_us > 0 || !self.samples_us.is_empty()
    }

    fn add(&mut self, took: Micros, options: &MeasureOptions) {
        self.spent += Duration::from(took);
        if self.samples_us.len() < options.samples_max {
            self.samples_us.push(took.0);
        }
    }

    fn is_done(&self, options: &MeasureOptions) -> bool {
        let samples = self.samples_us.len();
        samples >= options.samples_max
            || samples >= SAMPLES_FEW && self.spent >= options.cell_max
            || samples >= options.samples_min && is_settled(&self.samples_us, SETTLED)
    }
}

// === impl Tasks ===

impl Tasks {
    /// For each variant its whole runs, then its stages; batches in ascending order.
    pub(super) fn new(variants: &[Variant], batches: &[u32]) -> Self {
        let mut tasks = Self {
            cells: Vec::new(),
            tasks: Vec::new(),
        };
        for (position, variant) in variants.iter().enumerate() {
            tasks.add(position, variant, &batches_of(variant, batches));
        }
        tasks
    }

    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(super) fn get(&self, task: usize) -> Task {
        self.tasks[task].0
    }

    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    pub(super) fn cells_mut(&mut self) -> &mut [Cell] {
        &mut self.cells
    }

    /// Whether there is nothing left to do.
    pub(super) fn all_done(&self, options: &MeasureOptions) -> bool {
        let mut tasks = self.tasks.iter();
        tasks.all(|(task, _)| self.cells[task.decides].is_done(options))
    }

    /// Runs a task once and keeps the times apart, unless it is done.
    pub(super) fn warm_up(
        &mut self,
        task: usize,
        bench: &mut Bench,
        options: &MeasureOptions,
    ) -> Result<(), ExecuteError> {
        if self.cells[self.tasks[task].0.decides].is_done(options) {
            return Ok(());
        }
        self.run(task, bench, |cell, took| cell.cold_us = took.0.max(1))
    }

    /// Takes a visit's worth of samples, unless there are enough.
    pub(super) fn visit(
        &mut self,
        task: usize,
        bench: &mut Bench,
        options: &MeasureOptions,
        meter: Option<&dyn EnergyMeter>,
    ) -> Result<(), ExecuteError> {
        let start = Instant::now();
        let before_uj = meter.and_then(EnergyMeter::total_uj);
        while !self.cells[self.tasks[task].0.decides].is_done(options) {
            self.run(task, bench, |cell, took| cell.add(took, options))?;
            if start.elapsed() >= VISIT {
                break;
            }
        }
        let after_uj = meter.and_then(EnergyMeter::total_uj);
        if let (Some(before_uj), Some(after_uj)) = (before_uj, after_uj) {
            let metered = Metered {
                uj: after_uj.saturating_sub(before_uj),
                us: u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX),
            };
            for cell in self.tasks[task].1.cells(self.tasks[task].0.decides) {
                self.cells[cell].metered.add(metered);
            }
        }
        Ok(())
    }

    fn run(
        &mut self,
        task: usize,
        bench: &mut Bench,
        mut tell: impl FnMut(&mut Cell, Micros),
    ) -> Result<(), ExecuteError> {
        let (Task { batch, decides, .. }, work) = &self.tasks[task];
        let cells = &mut self.cells;
        match work {
            Work::Whole => {
                let run = cells[*decides].run;
                bench.time([run].into_iter(), *batch, |took| {
                    tell(&mut cells[*decides], took);
                })
            }
            Work::Stages(stages, sum) => {
                let runs: Vec<Run> = stages.iter().map(|&stage| cells[stage].run).collect();
                let mut all = Micros::ZERO;
                let mut at = stages.iter();
                bench.time(runs.into_iter(), *batch, |took| {
                    all += took;
                    if let Some(&stage) = at.next() {
                        tell(&mut cells[stage], took);
                    }
                })?;
                if let Some(sum) = *sum {
                    tell(&mut cells[sum], all);
                }
                Ok(())
            }
        }
    }

    fn add(&mut self, variant: usize, known: &Variant, batches: &[u32]) {
        let runs = runs_of(known);
        let first = self.cells.len();
        let at = |run: usize, batch: usize| first + run * batches.len() + batch;
        for &(run, sliced) in &runs {
            self.cells.extend(batches.iter().map(|&batch| Cell {
                variant,
                run,
                batch,
                sliced,
                cold_us: 0,
                samples_us: Vec::new(),
                spent: Duration::ZERO,
                metered: Metered::default(),
            }));
        }
        let find = |run: Run, sliced: bool| runs.iter().position(|&one| one == (run, sliced));
        for (r, &(run, sliced)) in runs.iter().enumerate() {
            let is_tail = run.from > 0 && run.exit.is_some();
            if sliced || !(run.from == 0 && run.exit.is_some() || is_tail) {
                continue; // Sampled on the way to a tail.
            }
            let stages: Vec<usize> = (0..run.from)
                .filter_map(|from| find(Run::stage(from), false))
                .chain([r])
                .collect();
            let whole = Run { from: 0, ..run };
            let sum = find(whole, true);
            for (b, &batch) in batches.iter().enumerate() {
                let task = Task {
                    variant,
                    batch,
                    decides: at(r, b),
                };
                let work = if is_tail {
                    let stages = stages.iter().map(|&stage| at(stage, b)).collect();
                    Work::Stages(stages, sum.map(|sum| at(sum, b)))
                } else {
                    Work::Whole
                };
                self.tasks.push((task, work));
            }
        }
    }
}

/// Whole runs first: they are what every policy needs. Then what prices a run that is cut into
/// stages: each stage after which requests can be parked, and each last stage with its head. At
/// last what cutting all of it costs, marked.
fn runs_of(variant: &Variant) -> Vec<(Run, bool)> {
    let exits = (0u32..).map(ExitId).zip(&variant.exits);
    let whole = |(id, exit): (ExitId, &Exit)| Run {
        from: 0,
        to: exit.after_stage,
        exit: Some(id),
    };
    let mut runs: Vec<Run> = exits.clone().map(whole).collect();
    runs.extend((0..variant.stages.saturating_sub(1)).map(Run::stage));
    // After the first stage alone the whole run is the same as the last stage.
    let cut = exits.clone().filter(|(_, exit)| exit.after_stage > 1);
    runs.extend(cut.map(whole).map(|run| Run {
        from: run.to - 1,
        ..run
    }));
    let sliced = exits.last().map(whole).filter(|run| run.to > 1);
    let runs = runs.into_iter().map(|run| (run, false));
    runs.chain(sliced.map(|run| (run, true))).collect()
}

/// The batches up to the variant's largest, with 1 and the largest in any case.
fn batches_of(variant: &Variant, batches: &[u32]) -> Vec<u32> {
    let mut batches: Vec<u32> = batches
        .iter()
        .copied()
        .filter(|&batch| (1..variant.max_batch).contains(&batch))
        .chain([1, variant.max_batch])
        .collect();
    batches.sort_unstable();
    batches.dedup();
    batches
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use switchyard_core::ids::AppId;

    use super::*;

    const BATCHES: [u32; 6] = [1, 2, 4, 8, 16, 32];

    fn variant(stages: u32, exits_after: &[u32], max_batch: u32) -> Variant {
        let exits = exits_after.iter().map(|&after_stage| Exit {
            name: format!("exit{after_stage}"),
            after_stage,
            accuracy: 0.9,
            recall: vec![0.9; 2],
            confusion: None,
        });
        Variant {
            name: "v".to_owned(),
            app: AppId(0),
            stages,
            exits: exits.collect(),
            memory_bytes: 1,
            max_batch,
        }
    }

    fn run(from: u32, to: u32, exit: Option<u32>) -> Run {
        Run {
            from,
            to,
            exit: exit.map(ExitId),
        }
    }

    #[test]
    fn whole_runs_come_first_then_stages_then_the_sum() {
        assert_eq!(runs_of(&variant(1, &[1], 8)), [(run(0, 1, Some(0)), false)]);
        assert_eq!(
            runs_of(&variant(3, &[1, 3], 8)),
            [
                (run(0, 1, Some(0)), false),
                (run(0, 3, Some(1)), false),
                (run(0, 1, None), false),
                (run(1, 2, None), false),
                (run(2, 3, Some(1)), false),
                (run(0, 3, Some(1)), true),
            ]
        );
    }

    #[test]
    fn every_cell_is_sampled_by_some_task() {
        let variants = [variant(1, &[1], 8), variant(4, &[1, 2, 4], 3)];
        let tasks = Tasks::new(&variants, &BATCHES);
        let mut sampled = vec![false; tasks.cells.len()];
        for (task, work) in &tasks.tasks {
            sampled[task.decides] = true;
            assert_eq!(tasks.cells[task.decides].batch, task.batch);
            if let Work::Stages(stages, sum) = work {
                for &at in stages.iter().chain(sum) {
                    sampled[at] = true;
                    assert_eq!(tasks.cells[at].batch, task.batch);
                    assert_eq!(tasks.cells[at].variant, task.variant);
                }
                let follow: Vec<u32> = stages.iter().map(|&at| tasks.cells[at].run.from).collect();
                let all: Vec<u32> = (0..stages.len() as u32).collect();
                assert_eq!(follow, all, "from the first stage on");
            }
        }
        assert!(sampled.iter().all(|&is| is));
        let sums = tasks.cells.iter().filter(|cell| cell.sliced).count();
        assert_eq!(sums, 3, "one per batch of the variant that can be cut");
    }

    #[test]
    fn a_cell_is_done_by_samples_by_time_or_when_it_has_settled() {
        let options = MeasureOptions::thorough(Duration::ZERO);
        let cell = |samples_us: Vec<u64>| {
            let tasks = Tasks::new(&[variant(1, &[1], 1)], &BATCHES);
            let mut cell = tasks.cells.into_iter().next().unwrap();
            for us in samples_us {
                cell.add(Micros(us), &options);
            }
            cell.is_done(&options)
        };
        assert!(!cell(vec![100; 99]));
        assert!(cell(vec![100; 100]), "settled");
        let noisy = |count: u64| (0..count).map(|i| 100 + (i * 37) % 90).collect();
        assert!(!cell(noisy(399)));
        assert!(cell(noisy(400)), "enough");
        assert!(!cell(vec![2_000_000; 9]), "too few, whatever the time");
        assert!(cell(vec![2_000_000; 10]), "its time is up");
    }

    #[test]
    fn batches_end_with_the_largest() {
        assert_eq!(batches_of(&variant(1, &[1], 1), &BATCHES), [1]);
        assert_eq!(batches_of(&variant(1, &[1], 6), &BATCHES), [1, 2, 4, 6]);
        assert_eq!(
            batches_of(&variant(1, &[1], 64), &BATCHES),
            [1, 2, 4, 8, 16, 32, 64]
        );
    }
}
