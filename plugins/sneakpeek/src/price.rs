//! The price of a worker's time: its utility for requests that have not arrived yet. Not in the
//! paper.
//!
//! The paper's schedule is the best for the pending requests only. With loose deadlines it spends
//! all time on accuracy, and later arrivals find a queue. The price is the dual of
//!
//! ```text
//! maximise   sum over apps of rate * accuracy of its model
//! subject to sum over apps of rate * time of its model <= workers
//! ```
//!
//! A placement counts with its utility less the price of its time. While the most accurate models
//! fit, the price is 0 and the schedule is the paper's.

use crate::model::AppModels;

/// Share of the workers' time that the rates may fill; the rest absorbs uneven arrivals.
const FILLED: f64 = 0.95;

/// An app's candidates that are best at some price, cheapest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AccuracyFront(Vec<FrontPoint>);

/// One candidate of a front.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FrontPoint {
    accuracy: f64,
    /// Least time per request over all batches and kinds of workers.
    time_us: f64,
    /// Accuracy per microsecond below which it is preferred to the point before.
    price: f64,
}

// === impl AccuracyFront ===

impl AccuracyFront {
    /// The upper hull of accuracy over time.
    pub(crate) fn of(app: &AppModels) -> Self {
        let mut all: Vec<(f64, f64)> = Vec::new();
        for (model, &accuracy) in app.models.iter().zip(&app.unseen) {
            let per_request = |latencies_us: &[u64]| {
                let each = latencies_us.iter().zip(1u32..);
                each.map(|(&us, size)| us as f64 / f64::from(size))
                    .fold(f64::INFINITY, f64::min)
            };
            let kinds = model
                .by_kind
                .iter()
                .map(|cost| per_request(&cost.latencies_us));
            let time_us = match model.run {
                None => 0.0,
                Some(_) => kinds.fold(f64::INFINITY, f64::min),
            };
            if time_us.is_finite() {
                all.push((time_us, accuracy));
            }
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut hull: Vec<FrontPoint> = Vec::new();
        for (time_us, accuracy) in all {
            let mut price = f64::INFINITY;
            while let Some(last) = hull.last() {
                if accuracy <= last.accuracy {
                    price = 0.0;
                    break;
                }
                price =
                    (accuracy - last.accuracy) / (time_us - last.time_us).max(f64::MIN_POSITIVE);
                // A better price than the point before has: that point is never the best.
                if price < last.price {
                    break;
                }
                hull.pop();
                price = f64::INFINITY;
            }
            if price > 0.0 {
                hull.push(FrontPoint {
                    accuracy,
                    time_us,
                    price,
                });
            }
        }
        Self(hull)
    }

    /// Time of a request at this price.
    fn time_us(&self, price: f64) -> f64 {
        let best = self.0.iter().rev().find(|choice| choice.price > price);
        best.or(self.0.first()).map_or(0.0, |choice| choice.time_us)
    }
}

/// The price of a microsecond of a worker, in utility; `apps` are arrivals per second and fronts. 0
/// while the most accurate models fit.
pub(crate) fn price(apps: &[(f64, &AccuracyFront)], workers: usize) -> f64 {
    let room_us = workers as f64 * 1e6 * FILLED;
    let fits = |price: f64| {
        let used = apps.iter().map(|(rate, front)| rate * front.time_us(price));
        used.sum::<f64>() <= room_us
    };
    if fits(0.0) {
        return 0.0;
    }
    let steps = apps.iter().flat_map(|(_, front)| &front.0);
    let mut prices: Vec<f64> = steps
        .map(|choice| choice.price)
        .filter(|price| price.is_finite())
        .collect();
    prices.sort_by(f64::total_cmp);
    let at = prices.partition_point(|&price| !fits(price));
    prices.get(at).or(prices.last()).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cheapest first: 0.6 in 10 us, 0.8 in 30 us (0.01 per us), 0.9 in 80 us (0.002 per us).
    fn front() -> AccuracyFront {
        let choice = |accuracy, time_us, price| FrontPoint {
            accuracy,
            time_us,
            price,
        };
        AccuracyFront(vec![
            choice(0.6, 10.0, f64::INFINITY),
            choice(0.8, 30.0, 0.01),
            choice(0.9, 80.0, 0.002),
        ])
    }

    #[test]
    fn the_price_is_0_while_the_most_accurate_models_fit() {
        // 10,000 requests/s of 80 us fill 0.8 of a worker.
        assert_eq!(price(&[(10_000.0, &front())], 1), 0.0);
        assert_eq!(price(&[], 1), 0.0);
    }

    #[test]
    fn the_price_is_that_of_the_last_improvement() {
        // 20,000/s: 80 us do not fit (1.6), 30 us do (0.6): the price is the gain of 0.9 over 0.8.
        assert_eq!(price(&[(20_000.0, &front())], 1), 0.002);
        // 60,000/s: only 10 us fit.
        assert_eq!(price(&[(60_000.0, &front())], 1), 0.01);
        // On two workers 30 us fit; beyond all capacity the price is the highest of the front.
        assert_eq!(price(&[(60_000.0, &front())], 2), 0.002);
        assert_eq!(price(&[(1e6, &front())], 1), 0.01);
    }
}
