//! Which runs and batches of a variant are measured.

use std::time::{Duration, Instant};

use switchyard_core::catalog::Variant;
use switchyard_core::ids::ExitId;

use super::bench::{Bench, Run};
use crate::error::ExecuteError;

/// One visit measures for this long, and once at least: short runs get many samples, long ones
/// do not hold the others up.
const VISIT: Duration = Duration::from_millis(2);

/// One run of one batch, and how long it took each time.
pub(super) struct Cell {
    /// Position of its variant.
    pub(super) variant: usize,
    pub(super) run: Run,
    pub(super) batch: u32,
    /// The first run, in which buffers grow and caches fill.
    cold_us: u64,
    samples_us: Vec<u64>,
}

// === impl Cell ===

impl Cell {
    /// The cells of a variant: for each run, its batches in ascending order.
    pub(super) fn of(position: usize, variant: &Variant, batches: &[u32]) -> Vec<Self> {
        let mut cells = Vec::new();
        for run in runs_of(variant) {
            let cell = |batch| Self {
                variant: position,
                run,
                batch,
                cold_us: 0,
                samples_us: Vec::new(),
            };
            cells.extend(batches_of(variant, batches).into_iter().map(cell));
        }
        cells
    }

    pub(super) fn warm_up(&mut self, bench: &mut Bench) -> Result<(), ExecuteError> {
        self.cold_us = bench.time(self.run, self.batch)?.0;
        Ok(())
    }

    /// Takes a visit's worth of samples, unless there are enough.
    pub(super) fn visit(
        &mut self,
        bench: &mut Bench,
        samples_max: usize,
    ) -> Result<(), ExecuteError> {
        let end = Instant::now() + VISIT;
        while self.samples_us.len() < samples_max {
            self.samples_us.push(bench.time(self.run, self.batch)?.0);
            if Instant::now() >= end {
                break;
            }
        }
        Ok(())
    }

    /// Whether there is nothing left to do.
    pub(super) fn is_full(&self, samples_max: usize) -> bool {
        self.samples_us.len() >= samples_max
    }

    /// What was measured; the first run alone when there was time for no other.
    pub(super) fn into_samples_us(self) -> Vec<u64> {
        if self.samples_us.is_empty() {
            vec![self.cold_us]
        } else {
            self.samples_us
        }
    }
}

/// Whole runs first: they are what every policy needs. Then what prices a run that is cut into
/// stages: each stage after which requests can be parked, and each last stage with its head.
fn runs_of(variant: &Variant) -> Vec<Run> {
    let exits = (0u32..).map(ExitId).zip(&variant.exits);
    let mut runs: Vec<Run> = exits
        .clone()
        .map(|(id, exit)| Run {
            from: 0,
            to: exit.after_stage,
            exit: Some(id),
        })
        .collect();
    runs.extend((0..variant.stages.saturating_sub(1)).map(|from| Run {
        from,
        to: from + 1,
        exit: None,
    }));
    // After the first stage alone the whole run is the same as the last stage.
    runs.extend(
        exits
            .filter(|(_, exit)| exit.after_stage > 1)
            .map(|(id, exit)| Run {
                from: exit.after_stage - 1,
                to: exit.after_stage,
                exit: Some(id),
            }),
    );
    runs
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
    use switchyard_core::catalog::Exit;
    use switchyard_core::ids::AppId;

    use super::*;

    const BATCHES: [u32; 6] = [1, 2, 4, 8, 16, 32];

    fn variant(stages: u32, exits_after: &[u32], max_batch: u32) -> Variant {
        let exits = exits_after.iter().map(|&after_stage| Exit {
            name: format!("exit{after_stage}"),
            after_stage,
            accuracy: 0.9,
            recall: vec![0.9; 2],
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
    fn whole_runs_come_first_then_stages() {
        assert_eq!(runs_of(&variant(1, &[1], 8)), [run(0, 1, Some(0))]);
        assert_eq!(
            runs_of(&variant(3, &[1, 3], 8)),
            [
                run(0, 1, Some(0)),
                run(0, 3, Some(1)),
                run(0, 1, None),
                run(1, 2, None),
                run(2, 3, Some(1)),
            ]
        );
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
