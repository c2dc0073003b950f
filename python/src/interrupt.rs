//! Work without the interpreter's lock that Ctrl-C ends, and that shows its progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pyo3::prelude::*;
use switchyard_core::policy::{FaultKind, PolicyFault};
use switchyard_sim::Contender;

/// Time between two looks at Python's signals, and two calls that show progress.
const LOOK: Duration = Duration::from_millis(50);

/// Is set once the runs that have not begun are not wanted any more.
pub(crate) type Cancelled = Arc<AtomicBool>;

/// Runs that are done, of all.
#[derive(Default)]
pub(crate) struct Progress {
    done: AtomicUsize,
    /// 0 while it is not known.
    all: AtomicUsize,
    /// Called with both numbers, if they are to be shown.
    show: Option<Py<PyAny>>,
}

/// Runs `work` on another thread, without the interpreter's lock. Clears `cancelled` of an earlier call.
///
/// # Errors
/// That of the work, of a signal's handler, such as `KeyboardInterrupt`, or of the call that shows progress.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    cancelled: &Cancelled,
    progress: &Progress,
    work: impl FnOnce() -> PyResult<T> + Send,
) -> PyResult<T> {
    cancelled.store(false, Ordering::Relaxed);
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, ended) = sync_channel::<()>(1);
            let working = scope.spawn(move || {
                let result = work();
                drop(done);
                result
            });
            let mut interrupted = Ok(());
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK) {
                if interrupted.is_ok() {
                    interrupted = Python::attach(|py| {
                        py.check_signals()?;
                        progress.show(py)
                    });
                    cancelled.store(interrupted.is_err(), Ordering::Relaxed);
                }
            }
            let result = working
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            interrupted?;
            let made = result?;
            Python::attach(|py| progress.show(py))?;
            Ok(made)
        })
    })
}

// === impl Progress ===

impl Progress {
    pub(crate) fn new(show: Option<Py<PyAny>>) -> Self {
        Self {
            show,
            ..Self::default()
        }
    }

    /// Sets the number of all runs.
    pub(crate) fn begin(&self, all: usize) {
        self.all.store(all, Ordering::Relaxed);
    }

    /// One more run is done.
    pub(crate) fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    fn show(&self, py: Python<'_>) -> PyResult<()> {
        let all = self.all.load(Ordering::Relaxed);
        if let Some(show) = self.show.as_ref().filter(|_| all > 0) {
            show.call1(py, (self.done.load(Ordering::Relaxed), all))?;
        }
        Ok(())
    }
}

/// The same policy, which no run can begin with after a cancellation.
pub(crate) fn cancellable(contender: &Contender, cancelled: &Cancelled) -> Contender {
    let (make, cancelled) = (Arc::clone(&contender.make), Arc::clone(cancelled));
    Contender {
        make: Arc::new(move |catalog| match cancelled.load(Ordering::Relaxed) {
            true => Err(PolicyFault::new(
                FaultKind::Failed,
                "interrupted".to_owned(),
            )),
            false => make(catalog),
        }),
        ..contender.clone()
    }
}
