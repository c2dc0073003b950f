//! A batch of some of a variant's stages, between a scheduler and a worker. Triton's protocol has whole
//! models only: this travels as parameters of an inference (`grpc::stages`).

/// Extension that a server with stage ranges announces in its metadata.
pub const STAGE_RANGES: &str = "stage_ranges";

/// A batch of some stages of a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCall {
    /// The scheduler's connection in its present life; another one has other rows.
    pub session: u64,
    /// The scheduler's number of each row. It uses each number for one request.
    pub rows: Vec<u64>,
    /// The work.
    pub work: StageWork,
}

/// The treatment of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageWork {
    /// Run stages and keep the activations. The answer has no outputs.
    Park {
        /// First stage; 0 starts from the inputs, a later one from activations that are kept.
        from_stage: u32,
        /// One past the last stage.
        to_stage: u32,
    },
    /// Run from the activations that are kept to the exit that the version names.
    Answer {
        /// First stage, at least 1.
        from_stage: u32,
    },
    /// Forget the activations. The answer has no outputs.
    Release,
}

// === impl StageCall ===

impl StageCall {
    /// Whether the request has inputs.
    pub fn takes_inputs(&self) -> bool {
        matches!(self.work, StageWork::Park { from_stage: 0, .. })
    }

    /// Whether the answer has outputs.
    pub fn gives_outputs(&self) -> bool {
        matches!(self.work, StageWork::Answer { .. })
    }
}
