//! Generates tables.

use std::fmt;
use std::sync::atomic::AtomicBool;

use ramsis_tables::{Action, Arrivals, Balancing, FORMAT, Set, Table, TableEntry};
use rustix::time::{ClockId, clock_gettime};

use crate::cancel::CancelFlag;
use crate::error::PrepareError;
use crate::guarantee::Guarantee;
use crate::law::Poisson;
use crate::model::{Model, front};
use crate::problem::{DecisionProcess, Offer, ProcessInputs};
use crate::robin::RoundRobin;
use crate::shortest;
use crate::solve::{Solution, Solver};
use crate::space::StateSpace;
use crate::spec::Spec;

/// Part of every hash: tables of an older method are generated again.
const METHOD: u32 = 1;

/// Loads are rounded to a millionth of a request per second.
const LOAD_PARTS: f64 = 1e6;

/// Largest relative difference of the used from the requested shape.
const SHAPE_TOLERANCE: f64 = 0.05;

/// Generates tables of one specification, each for one load.
#[derive(Clone, Debug)]
pub struct Generator {
    spec: Spec,
    space: StateSpace,
    /// Events of a Poisson process per request of a worker, under round robin.
    cycle: usize,
    profile: String,
}

/// A generated table.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedTable {
    /// Its entry in the set's index.
    pub entry: TableEntry,
    /// Its guarantee.
    pub guarantee: Guarantee,
    /// Its actions, in the order of the table's file.
    pub actions: Box<[Action]>,
}

/// A warning; tables are generated anyway.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// No variant meets the SLO with one request: the fastest always runs.
    SloUnmet {
        /// The fastest variant.
        variant: String,
        /// Its latency for one request, in microseconds.
        latency_us: u64,
        /// The deadline, in microseconds.
        slo_us: u64,
    },
    /// The load is beyond the capacity with any variant and batch.
    BeyondCapacity {
        /// The load in requests per second.
        load_rps: f64,
        /// Requests per second that all workers can serve.
        capacity_rps: f64,
    },
}

// === impl Generator ===

impl Generator {
    /// Checks a specification and prunes its variants.
    ///
    /// # Errors
    /// The field out of range.
    pub fn new(mut spec: Spec) -> Result<Self, PrepareError> {
        spec.check()?;
        if spec.prune {
            spec.models = front(&spec.models);
        }
        // The fastest first; stable.
        spec.models
            .sort_by_key(|model| model.latency_us.first().copied());
        let batch_max = spec.models.iter().map(|model| model.latency_us.len()).max();
        let queue_max = (spec.queue_max as usize).min(batch_max.unwrap_or(1));
        let space = StateSpace {
            slo_us: spec.slo_us,
            slack_us: spec.slacks(queue_max),
            queue_max,
        };
        Ok(Self {
            cycle: cycle(&spec)?,
            profile: profile_hash(&spec.models),
            space,
            spec,
        })
    }

    /// The specification with pruned variants.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Number of states: each queue length and slack, the empty and the full queue.
    pub fn states(&self) -> u64 {
        self.space.len() as u64 + 1
    }

    /// Requests per second that all workers can serve, with batches up to N.
    pub fn capacity_rps(&self) -> f64 {
        let rates = self.spec.models.iter().flat_map(|model| {
            let batches = model.latency_us.iter().take(self.space.queue_max);
            batches
                .enumerate()
                .map(|(b, &us)| (b + 1) as f64 / us as f64)
        });
        rates.fold(0.0, f64::max) * 1e6 * f64::from(self.spec.workers)
    }

    /// Warnings about tables for these loads.
    pub fn notes(&self, loads_rps: &[f64]) -> Vec<Note> {
        let mut notes = Vec::new();
        let of_one = |model: &&Model| model.latency_us.first().copied();
        if let Some(fastest) = self.spec.models.iter().min_by_key(of_one)
            && let Some(latency_us) = of_one(&fastest)
            && latency_us > self.spec.slo_us
        {
            notes.push(Note::SloUnmet {
                variant: fastest.name.clone(),
                latency_us,
                slo_us: self.spec.slo_us,
            });
        }
        let capacity_rps = self.capacity_rps();
        let beyond = loads_rps.iter().filter(|load| **load > capacity_rps);
        notes.extend(beyond.map(|&load_rps| Note::BeyondCapacity {
            load_rps,
            capacity_rps,
        }));
        notes
    }

    /// Generates the table for a load in requests per second, of all workers together.
    ///
    /// # Errors
    /// A load out of range, or no convergence.
    pub fn table(&self, load_rps: f64) -> Result<GeneratedTable, PrepareError> {
        self.make(load_rps, CancelFlag(None))
    }

    /// As [`table`](Self::table), until the flag is set.
    ///
    /// # Errors
    /// As [`table`](Self::table), and [`PrepareError::Cancelled`].
    pub fn table_unless(
        &self,
        load_rps: f64,
        cancelled: &AtomicBool,
    ) -> Result<GeneratedTable, PrepareError> {
        self.make(load_rps, CancelFlag(Some(cancelled)))
    }

    /// The guarantee of one variant that always runs on the whole queue, for comparison. The
    /// variant must take batches of N.
    ///
    /// # Errors
    /// As [`table`](Self::table), and a variant that is unknown or takes only smaller batches.
    pub fn fixed(&self, load_rps: f64, variant: &str) -> Result<Guarantee, PrepareError> {
        let models = self.spec.models.iter();
        let fits = |model: &Model| model.latency_us.len() >= self.space.queue_max;
        let found = models
            .enumerate()
            .find(|(_, model)| model.name == variant && fits(model));
        let Some((variant, _)) = found else {
            let reason = "must be a variant that takes batches of `queue_max`";
            return Err(PrepareError::spec("variant", reason));
        };
        let stop = CancelFlag(None);
        let (problem, solution) = self.solve(load_rps, Offer::Only(variant), stop)?;
        Ok(Guarantee::new(&problem, &solution))
    }

    /// Hash of the inputs of the table for a load: 64 hexadecimal digits.
    pub fn hash(&self, load_rps: f64) -> String {
        let load_rps = rounded(load_rps, LOAD_PARTS);
        let Spec {
            app,
            kind,
            percentile,
            workers,
            slo_us,
            queue_max: _,
            grid: _,
            balancing,
            objective,
            batching,
            arrivals,
            models: _,
            prune: _,
        } = &self.spec;
        let StateSpace {
            slack_us,
            queue_max,
            ..
        } = &self.space;
        // Debug output of numbers is exact. It contains type and variant names: renaming them
        // changes every hash.
        let text = format!(
            "{METHOD} {FORMAT} {app:?} {kind:?} {percentile:?} {workers} {slo_us} {queue_max} \
             {slack_us:?} {balancing:?} {objective:?} {batching:?} {arrivals:?} {} {load_rps:?}",
            self.profile
        );
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }

    /// The set with these tables.
    pub fn set(&self, tables: Vec<TableEntry>) -> Set {
        let spec = &self.spec;
        Set {
            format: FORMAT,
            app: spec.app.clone(),
            variants: spec.models.iter().map(|model| model.name.clone()).collect(),
            kind: spec.kind.clone(),
            workers: spec.workers,
            slo_us: spec.slo_us,
            percentile: spec.percentile.clone(),
            queue_max: self.space.queue_max as u32,
            slack_us: self.space.slack_us.clone(),
            balancing: spec.balancing,
            objective: spec.objective,
            batching: spec.batching,
            arrivals: spec.arrivals,
            profile: self.profile.clone(),
            tables,
        }
    }

    fn make(&self, load_rps: f64, stop: CancelFlag<'_>) -> Result<GeneratedTable, PrepareError> {
        let start = cpu_seconds();
        let load_rps = rounded(load_rps, LOAD_PARTS);
        let offer = Offer::Feasible(self.spec.batching);
        let (problem, solution) = self.solve(load_rps, offer, stop)?;
        let guarantee = Guarantee::new(&problem, &solution);
        let policy = solution.policy.iter();
        Ok(GeneratedTable {
            entry: TableEntry {
                load_rps,
                file: format!("load-{load_rps}.tbl"),
                hash: self.hash(load_rps),
                expected_accuracy: rounded(guarantee.accuracy, 1e12),
                expected_violation_rate: rounded(guarantee.violation_rate, 1e12),
                states: self.states(),
                seconds: rounded(cpu_seconds() - start, 1e6),
            },
            guarantee,
            actions: policy.map(|&c| problem.choice(c).action).collect(),
        })
    }

    fn solve(
        &self,
        load_rps: f64,
        offer: Offer,
        stop: CancelFlag<'_>,
    ) -> Result<(DecisionProcess, Solution), PrepareError> {
        // Keeps all products finite.
        if !(load_rps > 0.0 && load_rps <= 1e9) {
            return Err(PrepareError::spec(
                "load_rps",
                "must be above 0 and at most 1e9",
            ));
        }
        let parts = ProcessInputs {
            space: &self.space,
            models: &self.spec.models,
            objective: self.spec.objective,
            offer,
        };
        match self.spec.balancing {
            Balancing::ShortestQueue => shortest::solve(&parts, load_rps, self.spec.workers, stop),
            Balancing::RoundRobin => {
                let events = self.cycle as f64 / f64::from(self.spec.workers);
                let law = Poisson {
                    rate_per_us: load_rps / 1e6 * events,
                };
                let robin = RoundRobin::new(law, self.cycle, &self.space);
                let problem = parts.build(&robin, stop)?;
                let solution = Solver::new(&problem, stop).solve(load_rps)?;
                Ok((problem, solution))
            }
        }
    }
}

/// Events of a Poisson process per request of a worker under round robin.
///
/// With Poisson arrivals the worker gets every K-th. With gamma gaps of shape a, K gaps are one of
/// shape aK, that is, aK exponential ones: the worker gets every aK-th event of a Poisson process
/// with a events per arrival. Exact for whole aK; otherwise the nearest whole number, if it is
/// close enough.
fn cycle(spec: &Spec) -> Result<usize, PrepareError> {
    let workers = f64::from(spec.workers);
    let Arrivals::Gamma { shape } = spec.arrivals else {
        return Ok(spec.workers as usize);
    };
    let cycle = (shape * workers).round().max(1.0);
    if (cycle / workers - shape).abs() > SHAPE_TOLERANCE * shape {
        return Err(PrepareError::spec(
            "arrivals",
            format!(
                "shape {shape} times {workers} workers must be close to a whole number, as with shape {}",
                cycle / workers
            ),
        ));
    }
    Ok(cycle as usize)
}

/// Rounds to multiples of 1 / `parts`: numbers with few digits are read from JSON exactly, others
/// may differ in the last bit.
fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}

/// CPU time of this thread, in seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Hash of the debug output, which contains the names of the type and its fields.
fn profile_hash(models: &[Model]) -> String {
    let text = format!("{models:?}");
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

// === impl GeneratedTable ===

impl GeneratedTable {
    /// The table for the policy.
    ///
    /// # Errors
    /// The set is of another generator.
    pub fn table(&self, set: &Set) -> Result<Table, PrepareError> {
        Ok(Table::new(&self.entry, set, self.actions.clone())?)
    }
}

// === impl Note ===

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SloUnmet {
                variant,
                latency_us,
                slo_us,
            } => write!(
                f,
                "no variant answers within {} ms: the fastest, {variant}, takes {} ms for one \
                 request and always runs",
                *slo_us as f64 / 1e3,
                *latency_us as f64 / 1e3
            ),
            Self::BeyondCapacity {
                load_rps,
                capacity_rps,
            } => write!(
                f,
                "{load_rps}/s is beyond the capacity of {capacity_rps:.0}/s: queues grow, and nearly \
                 every request is late"
            ),
        }
    }
}
