//! Progress of a training run.

use indicatif::ProgressBar;

/// Watches a training run.
pub trait Progress: Sync {
    /// A phase of `steps` steps begins.
    fn begin(&self, phase: &str, steps: u64);
    /// One step is done; `note` describes its result.
    fn step(&self, note: &str);
    /// The phase is over.
    fn end(&self);
}

/// Reports nothing.
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _phase: &str, _steps: u64) {}
    fn step(&self, _note: &str) {}
    fn end(&self) {}
}

impl Progress for ProgressBar {
    fn begin(&self, phase: &str, steps: u64) {
        self.reset();
        self.set_length(steps);
        self.set_prefix(phase.to_owned());
    }

    fn step(&self, note: &str) {
        self.set_message(note.to_owned());
        self.inc(1);
    }

    fn end(&self) {
        self.finish();
    }
}
