//! What tables are made for.

use std::collections::BTreeMap;

use ramsis_tables::{Arrivals, Balancing, Batching, Objective};

use crate::error::PrepareError;

/// The longest queue with states of its own, as in the paper's evaluation (section 6).
pub const QUEUE_MAX: u32 = 32;

/// Steps of the slack grid, as in the paper's evaluation (section 6).
pub const SLACK_STEPS: u32 = 100;

/// What tables are made for. All but the load, which tables differ in.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The app, where the tables are for one of several.
    pub app: Option<String>,
    /// Kind of the workers that the latencies belong to.
    pub kind: String,
    /// Which percentile the latencies are, such as `p95`.
    pub percentile: String,
    /// K: workers that share the load.
    pub workers: u32,
    /// Deadline of a request from its arrival, in microseconds.
    pub slo_us: u64,
    /// N: the longest queue with states of its own; shorter where no variant takes so large a
    /// batch.
    pub queue_max: u32,
    /// Which slacks are told apart.
    pub grid: Grid,
    /// How requests are given to the workers.
    pub balancing: Balancing,
    /// What is made as large as can be.
    pub objective: Objective,
    /// Which batches are considered.
    pub batching: Batching,
    /// Law of the arrivals, all workers together.
    pub arrivals: Arrivals,
    /// What can be run.
    pub models: Vec<Model>,
    /// Whether variants that are off the front of accuracy and latency are left out
    /// (section 4.3.3).
    pub prune: bool,
}

/// Which slacks are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// FLD: so many equal steps from 0 to the deadline (section 4.2.2).
    Fixed(u32),
    /// MD: the latencies that meet the deadline (section 4.2.1).
    Models,
}

/// A variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Share of right answers, 0 to 1.
    pub accuracy: f64,
    /// Latency in microseconds of batches of 1, 2, ... requests, never decreasing.
    pub latency_us: Vec<u64>,
}

// === impl Spec ===

impl Spec {
    /// The paper's evaluation (section 6) of these models, but for the objective.
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

    pub(crate) fn check(&self) -> Result<(), PrepareError> {
        let require = |field: &str, holds: bool, reason: &str| match holds {
            true => Ok(()),
            false => Err(PrepareError::spec(field, reason)),
        };
        require("workers", self.workers > 0, "must be above 0")?;
        // Sums of a latency and a slack stay far from overflow, and doubles count microseconds.
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
                "must have a shape above 0 and no larger than 1000",
            )?;
        }
        if self.balancing == Balancing::ShortestQueue {
            require(
                "arrivals",
                self.arrivals == Arrivals::Poisson,
                "must be poisson for shortest-queue balancing: its law is derived for that",
            )?;
            require(
                "batching",
                self.batching == Batching::Maximal,
                "must be maximal for shortest-queue balancing: its law is derived for that",
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
                "is there twice",
            )?;
        }
        Ok(())
    }
}

// === impl Model ===

impl Model {
    /// A variant of which some batches were measured. Between two of them latencies are
    /// interpolated, as the host does; then no batch takes longer than a larger one.
    ///
    /// # Errors
    /// The batch of 1 was not measured.
    pub fn measured(
        name: &str,
        accuracy: f64,
        latency_us: &BTreeMap<u32, u64>,
    ) -> Result<Self, PrepareError> {
        let between = |batch: u32| {
            let (from, from_us) = latency_us.range(..=batch).next_back()?;
            let (to, to_us) = latency_us.range(batch..).next()?;
            let share = f64::from(batch - from) / f64::from((to - from).max(1));
            let (from_us, to_us) = (*from_us as f64, *to_us as f64);
            Some((from_us + share * (to_us - from_us)).round() as u64)
        };
        Self::filled(name, accuracy, latency_us, 1, between)
    }

    /// A variant of which some batches were measured; the others up to `largest` are filled in
    /// by a straight line through the measured ones, by least squares, as in the public
    /// artifact. Then no batch takes longer than a larger one.
    ///
    /// # Errors
    /// A batch is missing and fewer than two were measured.
    pub fn fitted(
        name: &str,
        accuracy: f64,
        latency_us: &BTreeMap<u32, u64>,
        largest: u32,
    ) -> Result<Self, PrepareError> {
        let line = line(latency_us);
        let fitted = |batch: u32| {
            let measured = latency_us.get(&batch).copied();
            measured.or_else(|| {
                let (slope, start) = line?;
                Some(slope.mul_add(f64::from(batch), start).round().max(1.0) as u64)
            })
        };
        Self::filled(name, accuracy, latency_us, largest, fitted)
    }

    fn filled(
        name: &str,
        accuracy: f64,
        measured: &BTreeMap<u32, u64>,
        largest: u32,
        at: impl Fn(u32) -> Option<u64>,
    ) -> Result<Self, PrepareError> {
        let last = measured.keys().next_back().copied().unwrap_or_default();
        let filled = (1..=largest.max(last)).map(|batch| {
            at(batch).ok_or_else(|| PrepareError::Hole {
                variant: name.to_owned(),
                batch,
            })
        });
        let mut filled: Vec<u64> = filled.collect::<Result<_, _>>()?;
        let mut next = u64::MAX;
        for us in filled.iter_mut().rev() {
            next = next.min(*us);
            *us = next;
        }
        Ok(Self {
            name: name.to_owned(),
            accuracy,
            latency_us: filled,
        })
    }

    /// Latency of a batch; none where it is larger than the variant takes.
    pub(crate) fn latency_of(&self, batch: usize) -> Option<u64> {
        self.latency_us.get(batch.checked_sub(1)?).copied()
    }
}

/// The variants on the front of accuracy and latency of one request: no other is as accurate and
/// as fast, and better in one of them (section 4.3.3). Of equal ones the first stays.
pub fn front(models: &[Model]) -> Vec<Model> {
    let of_one = |model: &Model| model.latency_us.first().copied().unwrap_or(u64::MAX);
    let beats = |(o, other): (usize, &Model), (m, model): (usize, &Model)| {
        let no_worse = other.accuracy >= model.accuracy && of_one(other) <= of_one(model);
        let better = other.accuracy > model.accuracy || of_one(other) < of_one(model);
        no_worse && (better || o < m)
    };
    let all = || models.iter().enumerate();
    let kept = all().filter(|&model| !all().any(|other| beats(other, model)));
    kept.map(|(_, model)| model.clone()).collect()
}

/// Slope and start of the least-squares line of latency over batch size.
fn line(latency_us: &BTreeMap<u32, u64>) -> Option<(f64, f64)> {
    let points = || latency_us.iter().map(|(&b, &us)| (f64::from(b), us as f64));
    let count = latency_us.len() as f64;
    let (x, y) = points().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    let (x, y) = (x / count, y / count);
    let (above, below) = points().fold((0.0, 0.0), |(above, below), point| {
        let dx = point.0 - x;
        (above + dx * (point.1 - y), below + dx * dx)
    });
    (below > 0.0).then(|| (above / below, y - above / below * x))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_was_not_measured_is_filled_in_and_nothing_decreases() {
        let measured = BTreeMap::from([(1, 100), (2, 190), (4, 400), (5, 380)]);
        let between = Model::measured("m", 0.5, &measured).unwrap();
        assert_eq!(between.latency_us, [100, 190, 295, 380, 380]);
        // The least-squares line through the four is 77 b + 36.5.
        let fitted = Model::fitted("m", 0.5, &measured, 6).unwrap();
        assert_eq!(fitted.latency_us, [100, 190, 268, 380, 380, 499]);
    }

    #[test]
    fn a_hole_that_cannot_be_filled_is_named() {
        let measured = BTreeMap::from([(2, 100)]);
        let hole = "variant `m`: batch 1 was not measured";
        for model in [
            Model::measured("m", 0.5, &measured),
            Model::fitted("m", 0.5, &measured, 2),
        ] {
            let error = model.unwrap_err().to_string();
            assert!(error.starts_with(hole), "{error}");
        }
    }

    #[test]
    fn the_front_keeps_what_nothing_beats() {
        let model = |name: &str, accuracy, us| Model {
            name: name.to_owned(),
            accuracy,
            latency_us: vec![us],
        };
        let models = [
            model("fast", 0.5, 10),
            model("slower and worse", 0.4, 20),
            model("as good but slower", 0.5, 11),
            model("twin", 0.5, 10),
            model("good", 0.9, 50),
        ];
        let names: Vec<_> = front(&models).into_iter().map(|model| model.name).collect();
        assert_eq!(names, ["fast", "good"]);
    }
}
