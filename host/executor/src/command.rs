//! The commands of a worker thread.

use std::fmt;
use std::sync::Arc;

use switchyard_core::ids::{RequestId, VariantId};

use crate::job::Job;
use crate::source::LoadedModel;

/// A message to a worker thread.
#[derive(Debug)]
pub(crate) enum WorkerCommand {
    Run(Job),
    Release(RequestId),
    Preload(VariantId),
    Unload(VariantId),
    Replace(VariantId, NewWeights),
}

/// The weights to run later batches on.
pub(crate) struct NewWeights(pub(crate) Arc<LoadedModel>);

impl fmt::Debug for NewWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}
