//! Counters per variant, as Triton's statistics want them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use switchyard_core::ids::VariantId;
use switchyard_core::time::Micros;
use switchyard_protocol::{BatchStats, Timing, VariantStats};

/// Written by the driver, read by requests for statistics: the locks are rarely contended.
pub struct VariantCounters {
    variants: Vec<Arc<Mutex<VariantStats>>>,
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

    /// A batch of this many requests ran.
    pub(super) fn ran(&self, variant: VariantId, requests: usize, compute: Micros) {
        let Some(mut stats) = self.lock(variant) else {
            return;
        };
        stats.execution_count += 1;
        add(&mut stats.compute_infer, compute);
        let batch_size = requests as u64;
        let batches = &mut stats.batches;
        let at = batches.partition_point(|batch| batch.batch_size < batch_size);
        if batches
            .get(at)
            .is_none_or(|batch| batch.batch_size != batch_size)
        {
            let fresh = BatchStats {
                batch_size,
                ..BatchStats::default()
            };
            batches.insert(at, fresh);
        }
        add(&mut batches[at].compute_infer, compute);
    }

    /// A request was answered.
    pub(super) fn answered(&self, variant: VariantId, latency: Micros, queue: Micros) {
        let Some(mut stats) = self.lock(variant) else {
            return;
        };
        stats.inference_count += 1;
        stats.last_inference_ms = unix_ms();
        add(&mut stats.success, latency);
        add(&mut stats.queue, queue);
    }

    /// A request failed on a variant.
    pub(super) fn failed(&self, variant: VariantId, latency: Micros) {
        if let Some(mut stats) = self.lock(variant) {
            add(&mut stats.fail, latency);
        }
    }

    fn lock(&self, variant: VariantId) -> Option<MutexGuard<'_, VariantStats>> {
        let stats = self.variants.get(variant.index())?;
        // Counters are whole at every point where a panic could strike.
        Some(stats.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn add(timing: &mut Timing, time: Micros) {
    timing.count += 1;
    timing.ns += time.0.saturating_mul(1_000);
}

fn unix_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
