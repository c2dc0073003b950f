//! Work without the interpreter's lock that Ctrl-C ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pyo3::prelude::*;
use switchyard_core::policy::{FaultKind, PolicyFault};
use switchyard_sim::Contender;

/// Time between two looks at Python's signals.
const LOOK: Duration = Duration::from_millis(50);

/// Is set once the runs that have not begun are not wanted any more.
pub(crate) type Cancelled = Arc<AtomicBool>;

/// Runs `work` on another thread, without the interpreter's lock.
///
/// # Errors
/// That of the work, or of a signal's handler, such as `KeyboardInterrupt`.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    cancelled: &Cancelled,
    work: impl FnOnce() -> PyResult<T> + Send,
) -> PyResult<T> {
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
                    interrupted = Python::attach(look);
                    cancelled.store(interrupted.is_err(), Ordering::Relaxed);
                }
            }
            let result = working
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            interrupted.and(result)
        })
    })
}

fn look(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
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
