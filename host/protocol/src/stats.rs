//! Counters of a variant, as Triton's statistics extension groups them.

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
    /// Requests answered, from arrival to answer.
    pub success: Timing,
    /// Requests that failed, from arrival to failure.
    pub fail: Timing,
    /// Time in queues.
    pub queue: Timing,
    /// Time to assemble batches.
    pub compute_input: Timing,
    /// Time to compute batches.
    pub compute_infer: Timing,
    /// Time to split batches into answers.
    pub compute_output: Timing,
    /// The compute times by batch size, ascending.
    pub batches: Vec<BatchStats>,
}

/// Batches of one size.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchStats {
    /// Rows per batch.
    pub batch_size: u64,
    /// Time to assemble them.
    pub compute_input: Timing,
    /// Time to compute them.
    pub compute_infer: Timing,
    /// Time to split them into answers.
    pub compute_output: Timing,
}
