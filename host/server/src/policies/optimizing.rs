//! A compilation of optimised code under way, for a policy that serves in baseline code.

use std::{io, thread};

use crossbeam_channel::{Receiver, bounded};
use switchyard_policy::PolicyVersion;
use switchyard_policy::loader::{LoadError, Loader};

pub(super) struct Optimizing {
    pub(super) version: PolicyVersion,
    /// Disconnected without a result if the compiler panicked.
    pub(super) ended: Receiver<Result<(), LoadError>>,
}

// === impl Optimizing ===

impl Optimizing {
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(loader: Loader, version: &PolicyVersion) -> io::Result<Self> {
        let (end, ended) = bounded(1);
        let of = version.clone();
        // Not joined: a stop of the loader ends it.
        thread::Builder::new()
            .name("policy-optimize".to_owned())
            .spawn(move || {
                // An error means that another policy serves.
                let _ = end.send(loader.optimize(&of));
            })?;
        Ok(Self {
            version: version.clone(),
            ended,
        })
    }
}
