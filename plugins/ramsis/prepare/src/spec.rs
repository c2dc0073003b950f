//! The inputs of tables.

use ramsis_tables::{Arrivals, Balancing, Batching, Objective, Set};

use crate::error::PrepareError;
use crate::grid::{Grid, slacks};
use crate::model::Model;

/// N: the longest queue with its own states, as in section 6.
pub const QUEUE_MAX: u32 = 32;

/// D: steps of the slack grid, as in section 6.
pub const SLACK_STEPS: u32 = 100;

/// The inputs of tables, except the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The app, if the pool has several.
    pub app: Option<String>,
    /// Kind of the workers.
    pub kind: String,
    /// Percentile of the latencies, such as `p95`.
    pub percentile: String,
    /// K: number of workers that share the load.
    pub workers: u32,
    /// Deadline of a request from its arrival, in microseconds.
    pub slo_us: u64,
    /// N: the longest queue with its own states; at most the largest batch of any variant.
    pub queue_max: u32,
    /// The slack grid.
    pub grid: Grid,
    /// The rule that assigns requests to workers.
    pub balancing: Balancing,
    /// The maximised objective.
    pub objective: Objective,
    /// The allowed batches.
    pub batching: Batching,
    /// Law of the arrivals of all workers together.
    pub arrivals: Arrivals,
    /// The variants.
    pub models: Vec<Model>,
    /// Whether only variants on the Pareto front are used (section 4.3.3).
    pub prune: bool,
}

// === impl Spec ===

impl Spec {
    /// The paper's evaluation (section 6) of these models, except for the objective.
    pub fn new(models: Vec<Model>, slo_us: u64, workers: u32) -> Self {
        Self {
            app: None,
            kind: String::new(),
            percentile: "p95".to_owned(),
            workers,
            slo_us,
            queue_max: QUEUE_MAX,
            grid: Grid::Fixed(SLACK_STEPS),
            balancing: Balancing::default(),
            objective: Objective::default(),
            batching: Batching::default(),
            arrivals: Arrivals::default(),
            models,
            prune: true,
        }
    }

    /// The inputs of a set, to make more tables for it. `models` are its variants as profiled now.
    pub fn of_set(set: &Set, models: Vec<Model>) -> Self {
        let mut spec = Self {
            app: set.app.clone(),
            kind: set.kind.clone(),
            percentile: set.percentile.clone(),
            queue_max: set.queue_max,
            balancing: set.balancing,
            objective: set.objective,
            batching: set.batching,
            arrivals: set.arrivals,
            // The set was pruned; all its variants stay.
            prune: false,
            ..Self::new(models, set.slo_us, set.workers)
        };
        let steps = u32::try_from(set.slack_us.len().saturating_sub(1)).unwrap_or(u32::MAX);
        spec.grid = Grid::Fixed(steps.max(1));
        if spec.slacks(set.queue_max as usize) != set.slack_us {
            spec.grid = Grid::Models;
        }
        spec
    }

    /// The slack grid for queues up to `queue_max`, in microseconds.
    pub(crate) fn slacks(&self, queue_max: usize) -> Vec<u64> {
        slacks(self.grid, self.slo_us, &self.models, queue_max)
    }

    pub(crate) fn check(&self) -> Result<(), PrepareError> {
        let require = |field: &str, holds: bool, reason: &str| match holds {
            true => Ok(()),
            false => Err(PrepareError::spec(field, reason)),
        };
        require("workers", self.workers > 0, "must be above 0")?;
        // Keeps sums of latency and slack from overflowing, and microseconds exact in f64.
        let times = 1..=1 << 50;
        require(
            "slo_us",
            times.contains(&self.slo_us),
            "must be above 0 and below 36 years",
        )?;
        require(
            "queue_max",
            (1..=255).contains(&self.queue_max),
            "must be 1 to 255",
        )?;
        if let Grid::Fixed(steps) = self.grid {
            let steps_max = self.slo_us.min(65_535);
            require(
                "grid",
                (1..=steps_max).contains(&u64::from(steps)),
                "must have 1 to 65535 steps of at least a microsecond",
            )?;
        }
        if let Arrivals::Gamma { shape } = self.arrivals {
            require(
                "arrivals",
                shape > 0.0 && shape <= 1e3,
                "must have a shape above 0 and at most 1000",
            )?;
        }
        if self.balancing == Balancing::ShortestQueue {
            require(
                "arrivals",
                self.arrivals == Arrivals::Poisson,
                "must be poisson for shortest-queue balancing",
            )?;
            require(
                "batching",
                self.batching == Batching::Maximal,
                "must be maximal for shortest-queue balancing",
            )?;
        }
        require(
            "models",
            (1..=256).contains(&self.models.len()),
            "must be 1 to 256",
        )?;
        for (m, model) in self.models.iter().enumerate() {
            let at = |field: &str| format!("models[{m}].{field} ({})", model.name);
            require(
                &at("accuracy"),
                (0.0..=1.0).contains(&model.accuracy),
                "must be 0 to 1",
            )?;
            require(
                &at("latency_us"),
                !model.latency_us.is_empty()
                    && model.latency_us.is_sorted()
                    && model.latency_us.iter().all(|us| times.contains(us)),
                "must be one or more times above 0 that do not decrease",
            )?;
            let before = self.models[..m].iter();
            require(
                &at("name"),
                before.clone().all(|other| other.name != model.name),
                "must be unique",
            )?;
        }
        Ok(())
    }
}
