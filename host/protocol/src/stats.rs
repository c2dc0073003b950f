//! Counters of a variant, as Triton's statistics extension groups them.

use std::ops::AddAssign;

/// A count and the time it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Number of occurrences.
    pub count: u64,
    /// Their total in nanoseconds.
    pub ns: u64,
}

/// Counters of one variant since the start of the server.
#[derive(Clone, Debug, Default)]
pub struct VariantStats {
    /// Unix milliseconds of the last inference; 0 for none.
    pub last_inference_ms: u64,
    /// Rows answered.
    pub inference_count: u64,
    /// Batches computed.
    pub execution_count: u64,
    /// Requests answered, from arrival to answer. A request of several rows counts once, for the
    /// variant that ran its last row.
    pub success: Timing,
    /// Requests that failed, from arrival to failure.
    pub fail: Timing,
    /// Time of answered requests in queues.
    pub queue: Timing,
    /// Time of answered requests until their batches were assembled; part of `compute_infer`.
    pub compute_input: Timing,
    /// Time of answered requests in batches.
    pub compute_infer: Timing,
    /// Time of answered requests between their batches and their answers.
    pub compute_output: Timing,
    /// The compute times by batch size, ascending.
    pub batches: Vec<BatchStats>,
}

/// Batches of one size. All three counts are the number of batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchStats {
    /// Rows per batch.
    pub batch_size: u64,
    /// Time to assemble them; part of `compute_infer`.
    pub compute_input: Timing,
    /// Time to compute them.
    pub compute_infer: Timing,
    /// Time to split them into answers; part of `compute_infer`.
    pub compute_output: Timing,
}

// === impl Timing ===

impl AddAssign for Timing {
    fn add_assign(&mut self, more: Self) {
        self.count += more.count;
        self.ns = self.ns.saturating_add(more.ns);
    }
}

// === impl VariantStats ===

impl VariantStats {
    /// The batches of one size.
    pub fn batches_of(&mut self, batch_size: u64) -> &mut BatchStats {
        let at = self
            .batches
            .partition_point(|batch| batch.batch_size < batch_size);
        let known = self.batches.get(at);
        if known.is_none_or(|batch| batch.batch_size != batch_size) {
            let fresh = BatchStats {
                batch_size,
                ..BatchStats::default()
            };
            self.batches.insert(at, fresh);
        }
        &mut self.batches[at]
    }
}

impl AddAssign<&Self> for VariantStats {
    fn add_assign(&mut self, more: &Self) {
        self.last_inference_ms = self.last_inference_ms.max(more.last_inference_ms);
        self.inference_count += more.inference_count;
        self.execution_count += more.execution_count;
        self.success += more.success;
        self.fail += more.fail;
        self.queue += more.queue;
        self.compute_input += more.compute_input;
        self.compute_infer += more.compute_infer;
        self.compute_output += more.compute_output;
        for batch in &more.batches {
            let own = self.batches_of(batch.batch_size);
            own.compute_input += batch.compute_input;
            own.compute_infer += batch.compute_infer;
            own.compute_output += batch.compute_output;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_variants_has_each_batch_size_once() {
        let timing = |count| Timing {
            count,
            ns: 10 * count,
        };
        let mut sum = VariantStats {
            success: timing(3),
            last_inference_ms: 7,
            ..VariantStats::default()
        };
        sum.batches_of(4).compute_infer += timing(1);
        let mut other = sum.clone();
        other.batches_of(2).compute_infer += timing(5);
        other.last_inference_ms = 5;
        sum += &other;
        assert_eq!((sum.success, sum.last_inference_ms), (timing(6), 7));
        let sizes = sum
            .batches
            .iter()
            .map(|batch| (batch.batch_size, batch.compute_infer));
        assert_eq!(sizes.collect::<Vec<_>>(), [(2, timing(5)), (4, timing(2))]);
    }
}
