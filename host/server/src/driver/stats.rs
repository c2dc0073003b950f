//! Counters per variant, as Triton's statistics want them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use switchyard_core::ids::VariantId;
use switchyard_core::time::Micros;
use switchyard_protocol::{Timing, VariantStats};

/// Written by the driver, read by requests for statistics: the locks are rarely contended.
pub struct VariantCounters {
    variants: Vec<Arc<Mutex<VariantStats>>>,
}

/// A call whose last row has been answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweredCall {
    /// The variant that ran its last row.
    pub(super) variant: VariantId,
    /// The time of that row in queues.
    pub(super) queue: Micros,
    /// The time of that row in batches.
    pub(super) compute: Micros,
}

// === impl VariantCounters ===

impl VariantCounters {
    /// Zeros for each of the `variants`.
    pub fn new(variants: usize) -> Self {
        Self {
            variants: (0..variants).map(|_| Arc::default()).collect(),
        }
    }

    /// As [`new`](Self::new); those that `same` names count on where an earlier variant is.
    pub fn continuing(
        &self,
        variants: usize,
        same: impl Fn(VariantId) -> Option<VariantId>,
    ) -> Self {
        let of = |id: VariantId| {
            let earlier = same(id).and_then(|earlier| self.variants.get(earlier.index()));
            earlier.cloned().unwrap_or_default()
        };
        Self {
            variants: (0..variants as u32).map(|id| of(VariantId(id))).collect(),
        }
    }

    /// The counters of one variant; zeros for one that does not exist.
    pub fn get(&self, variant: VariantId) -> VariantStats {
        self.lock(variant)
            .map(|stats| stats.clone())
            .unwrap_or_default()
    }

    /// A batch of this many rows ran.
    pub(super) fn ran(&self, variant: VariantId, rows: usize, compute: Micros) {
        let Some(mut stats) = self.lock(variant) else {
            return;
        };
        stats.execution_count += 1;
        let batches = stats.batches_of(rows as u64);
        // The worker measures the assembly of a batch and the split of its output with the computation.
        batches.compute_input += timing(Micros::ZERO);
        batches.compute_infer += timing(compute);
        batches.compute_output += timing(Micros::ZERO);
    }

    /// A row was answered.
    pub(super) fn answered_row(&self, variant: VariantId) {
        if let Some(mut stats) = self.lock(variant) {
            stats.inference_count += 1;
            stats.last_inference_ms = unix_ms();
        }
    }

    /// A call was answered: all of its rows.
    pub(super) fn answered(&self, call: &AnsweredCall, latency: Micros) {
        let Some(mut stats) = self.lock(call.variant) else {
            return;
        };
        let AnsweredCall { queue, compute, .. } = *call;
        stats.success += timing(latency);
        stats.queue += timing(queue);
        stats.compute_input += timing(Micros::ZERO);
        stats.compute_infer += timing(compute);
        let rest = latency.0.saturating_sub(queue.0.saturating_add(compute.0));
        stats.compute_output += timing(Micros(rest));
    }

    /// A call failed on a variant.
    pub(super) fn failed(&self, variant: VariantId, latency: Micros) {
        if let Some(mut stats) = self.lock(variant) {
            stats.fail += timing(latency);
        }
    }

    fn lock(&self, variant: VariantId) -> Option<MutexGuard<'_, VariantStats>> {
        let stats = self.variants.get(variant.index())?;
        // Counters are whole at every point where a panic could strike.
        Some(stats.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn timing(time: Micros) -> Timing {
    Timing {
        count: 1,
        ns: time.0.saturating_mul(1_000),
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As perf_analyzer checks them: requests in all of these, rows and batches apart from them.
    #[test]
    fn durations_count_requests_and_not_rows_or_batches() {
        let counters = VariantCounters::new(1);
        let variant = VariantId(0);
        // Requests of 1, 3 and 64 rows in two batches.
        counters.ran(variant, 4, Micros(100));
        counters.ran(variant, 64, Micros(900));
        for rows in [1, 3, 64] {
            (0..rows).for_each(|_| counters.answered_row(variant));
            let call = AnsweredCall {
                variant,
                queue: Micros(50),
                compute: Micros(100),
            };
            counters.answered(&call, Micros(170));
        }
        let stats = counters.get(variant);
        assert_eq!((stats.inference_count, stats.execution_count), (68, 2));
        let (three, whole) = (3, 3 * 170_000);
        assert_eq!(
            stats.success,
            Timing {
                count: three,
                ns: whole
            }
        );
        let parts = [
            stats.queue,
            stats.compute_input,
            stats.compute_infer,
            stats.compute_output,
        ];
        assert!(parts.iter().all(|part| part.count == three), "{parts:?}");
        assert_eq!(parts.iter().map(|part| part.ns).sum::<u64>(), whole);
        for batch in &stats.batches {
            let counts = [
                batch.compute_input,
                batch.compute_infer,
                batch.compute_output,
            ];
            assert!(counts.iter().all(|part| part.count == 1), "{batch:?}");
        }
    }
}
