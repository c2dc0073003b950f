//! A variant's accuracy and latencies.

use std::collections::BTreeMap;

use crate::error::PrepareError;

/// A variant with its accuracy and latencies.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Share of right answers, 0 to 1.
    pub accuracy: f64,
    /// Latency by batch from 1, in microseconds, non-decreasing.
    pub latency_us: Vec<u64>,
}

// === impl Model ===

impl Model {
    /// A variant from measured batches. Batches between are interpolated linearly, as the host
    /// does; then latencies are made non-decreasing.
    ///
    /// # Errors
    /// Batch 1 was not measured.
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

    /// A variant from measured batches. Other batches up to `largest` are on the least-squares line
    /// of the measured ones, as in the public artifact; then latencies are made non-decreasing.
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

    /// Latency of a batch; none beyond the largest.
    pub(crate) fn latency_of(&self, batch: usize) -> Option<u64> {
        self.latency_us.get(batch.checked_sub(1)?).copied()
    }
}

/// The Pareto front of accuracy and latency of one request (section 4.3.3). Of equal variants the
/// first stays.
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

/// Slope and intercept of the least-squares line of latency over batch.
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
    fn missing_batches_are_interpolated_and_latencies_never_decrease() {
        let measured = BTreeMap::from([(1, 100), (2, 190), (4, 400), (5, 380)]);
        let between = Model::measured("m", 0.5, &measured).unwrap();
        assert_eq!(between.latency_us, [100, 190, 295, 380, 380]);
        // The least-squares line is 77 b + 36.5.
        let fitted = Model::fitted("m", 0.5, &measured, 6).unwrap();
        assert_eq!(fitted.latency_us, [100, 190, 268, 380, 380, 499]);
    }

    #[test]
    fn a_batch_that_cannot_be_interpolated_is_named() {
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
    fn the_front_keeps_undominated_variants() {
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
