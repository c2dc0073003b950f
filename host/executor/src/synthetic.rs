//! An executor without models: it takes the time of the profile and answers deterministically.
//!
//! For tests, and for measuring the host without the cost of inference.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{ExitId, KindId, RequestId, VariantId};
use switchyard_core::residents::{Need, Residents};
use switchyard_core::time::Micros;

use crate::error::{CacheError, ExecuteError, LoadError};
use crate::executor::{Executor, JobOutcome};
use crate::job::{BatchOutput, CacheCounts, Job, Residency};
use crate::parked::StageProgress;

/// Probability of the class that a synthetic answer names; the other classes share the rest.
const CONFIDENCE: f32 = 0.9;

/// How the thread waits for profiled time to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitMode {
    /// It sleeps: costs no CPU, overshoots by the system's timer slack.
    Sleep,
    /// It spins: exact to a microsecond, costs a core.
    Spin,
    /// It does not wait: for measuring the host alone.
    Skip,
}

/// An injected failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The batch fails with this reason.
    Error(String),
    /// The batch panics with this message.
    Panic(String),
    /// The device is lost with this reason, and the worker with it.
    Lost(String),
}

type FaultOf = Box<dyn FnMut(&Job) -> Option<InjectedFault> + Send>;

/// Takes the time of a profile and answers deterministically.
pub struct SyntheticExecutor {
    catalog: Arc<Catalog>,
    kind: KindId,
    wait: WaitMode,
    residents: Residents<()>,
    counts: CacheCounts,
    parked: HashMap<RequestId, StageProgress>,
    fault: FaultOf,
}

// === impl SyntheticExecutor ===

impl SyntheticExecutor {
    /// An executor of this kind with a memory budget for models, without failures.
    pub fn new(catalog: Arc<Catalog>, kind: KindId, wait: WaitMode, budget_bytes: u64) -> Self {
        Self {
            catalog,
            kind,
            wait,
            residents: Residents::new(budget_bytes),
            counts: CacheCounts::default(),
            parked: HashMap::new(),
            fault: Box::new(|_| None),
        }
    }

    /// Asks `fault` before each batch for a failure.
    #[must_use]
    pub fn with_faults(
        mut self,
        fault: impl FnMut(&Job) -> Option<InjectedFault> + Send + 'static,
    ) -> Self {
        self.fault = Box::new(fault);
        self
    }

    fn make_resident(
        &mut self,
        variant: VariantId,
        soon: &[VariantId],
    ) -> Result<Micros, CacheError> {
        if self.residents.touch(variant).is_some() {
            self.counts.hits += 1;
            return Ok(Micros::ZERO);
        }
        let start = Instant::now();
        let Some(known) = self.catalog.variant(variant) else {
            let name = format!("variant {}", variant.0);
            return Err(LoadError::new(name, "not in the catalog").into());
        };
        let bytes = known.memory_bytes;
        let budget_bytes = self.residents.budget_bytes();
        // No variant is pinned or in use between batches, so only the budget itself can be too small.
        self.counts.misses += 1;
        let need = Need {
            variant,
            bytes,
            parked_bytes: 0,
            soon,
        };
        let evicted = self
            .residents
            .make_room(need)
            .map_err(|_| CacheError::TooLarge {
                variant: known.name.clone(),
                bytes,
                budget_bytes,
            })?;
        let load = self.catalog.profile.load_time(self.kind, variant);
        self.wait.until(start, load);
        self.residents.insert(variant, bytes, load, Arc::new(()));
        self.counts.evictions += evicted.len() as u64;
        self.counts.loads += 1;
        Ok(Micros::from(start.elapsed()))
    }

    fn execute(&mut self, job: &mut Job) -> Result<BatchOutput, ExecuteError> {
        let start = Instant::now();
        match (self.fault)(job) {
            None => {}
            Some(InjectedFault::Error(reason)) => return Err(ExecuteError::Injected(reason)),
            Some(InjectedFault::Panic(message)) => panic!("{message}"),
            Some(InjectedFault::Lost(reason)) => return Err(ExecuteError::DeviceLost { reason }),
        }
        self.take_parked(job)?;
        let name = self.name(job.variant);
        let latency = self
            .catalog
            .profile
            .latency(
                self.kind,
                job.variant,
                job.from_stage,
                job.to_stage,
                job.exit,
                job.rows.len() as u32,
            )
            .ok_or_else(|| ExecuteError::job(&name, "the profile has no latency for this batch"))?;
        self.wait.until(start, latency);
        let Some(exit) = job.exit else {
            let progress = StageProgress {
                variant: job.variant,
                stages_run: job.to_stage,
            };
            let requests = job.rows.iter().map(|row| (row.request, progress));
            self.parked.extend(requests);
            return Ok(BatchOutput::Parked);
        };
        let classes = self.catalog.app(job.app).map_or(0, |app| app.classes.len());
        Ok(answer(job, exit, classes))
    }

    fn take_parked(&mut self, job: &mut Job) -> Result<(), ExecuteError> {
        let wanted = StageProgress {
            variant: job.variant,
            stages_run: job.from_stage,
        };
        for row in &mut job.rows {
            row.input = None;
            if job.from_stage > 0 && self.parked.remove(&row.request) != Some(wanted) {
                return Err(ExecuteError::not_parked(
                    row.request,
                    "not parked at this stage",
                ));
            }
        }
        Ok(())
    }

    fn name(&self, variant: VariantId) -> String {
        match self.catalog.variant(variant) {
            Some(known) => known.name.clone(),
            None => format!("variant {}", variant.0),
        }
    }
}

impl Executor for SyntheticExecutor {
    fn run(&mut self, job: &mut Job) -> JobOutcome {
        let loaded = self.make_resident(job.variant, &job.soon);
        let start = Instant::now();
        let (result, load) = match loaded {
            Ok(load) => (self.execute(job), load),
            Err(error) => (Err(error.into()), Micros::ZERO),
        };
        if !matches!(result, Ok(BatchOutput::Parked)) {
            for row in &job.rows {
                self.parked.remove(&row.request);
            }
        }
        JobOutcome {
            result,
            compute: Micros::from(start.elapsed()),
            load,
        }
    }

    fn release(&mut self, request: RequestId) {
        self.parked.remove(&request);
    }

    fn preload(&mut self, variant: VariantId) -> Result<Micros, CacheError> {
        self.make_resident(variant, &[])
    }

    fn unload(&mut self, variant: VariantId) {
        self.residents.remove(variant);
    }

    fn residency(&self) -> Residency {
        Residency {
            resident: self.residents.variants(),
            free_bytes: self.residents.free_bytes(),
            // One thread reports, so every report is the newest.
            version: 0,
            counts: self.counts,
        }
    }
}

// === impl WaitMode ===

impl WaitMode {
    /// Returns once `length` has passed since `start`.
    fn until(self, start: Instant, length: Micros) {
        let end = start + Duration::from(length);
        match self {
            Self::Sleep => std::thread::sleep(end.saturating_duration_since(Instant::now())),
            Self::Spin => {
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            Self::Skip => {}
        }
    }
}

// === answers ===

/// The class that a synthetic answer names: a function of the request, the variant and the exit
/// alone, so that a test knows the answer of each request.
pub fn class_of(request: RequestId, variant: VariantId, exit: ExitId, classes: usize) -> usize {
    let lane = u64::from(variant.0) << 32 | u64::from(exit.0);
    let mixed = split_mix(request.0 ^ split_mix(lane));
    (mixed % classes.max(1) as u64) as usize
}

fn answer(job: &Job, exit: ExitId, classes: usize) -> BatchOutput {
    let rest = (1.0 - CONFIDENCE) / classes.saturating_sub(1).max(1) as f32;
    let mut probabilities = vec![rest; classes * job.rows.len()];
    for (row, chunk) in job
        .rows
        .iter()
        .zip(probabilities.chunks_mut(classes.max(1)))
    {
        chunk[class_of(row.request, job.variant, exit, classes)] = CONFIDENCE;
    }
    BatchOutput::Answered {
        classes,
        probabilities,
    }
}

/// `SplitMix64`'s output function (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014).
fn split_mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
