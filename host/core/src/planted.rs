//! Defects that tests plant, to show that a soak run finds them. A build without debug assertions, such
//! as a release, contains none.

/// A defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A lost worker's queue is dropped instead of given back: its requests wait for ever.
    StrandedQueue,
    /// A cancelled request leaves its activations on the worker.
    KeptActivations,
    /// The other overdue batches of a worker that serves again take no places.
    ForgottenPlaces,
    /// Starving requests are no reason to wake up.
    ForgottenWakeup,
}

/// The defect of one scheduler.
#[derive(Debug, Default)]
pub(crate) struct PlantedDefect {
    #[cfg(debug_assertions)]
    defect: Option<Planted>,
}

// === impl PlantedDefect ===

impl PlantedDefect {
    #[cfg(debug_assertions)]
    pub(crate) fn plant(&mut self, defect: Planted) {
        self.defect = Some(defect);
    }

    /// Whether this defect is planted; `false` for the compiler without debug assertions.
    #[inline]
    pub(crate) fn is(&self, defect: Planted) -> bool {
        #[cfg(debug_assertions)]
        return self.defect == Some(defect);
        #[cfg(not(debug_assertions))]
        {
            let _ = defect;
            false
        }
    }
}
