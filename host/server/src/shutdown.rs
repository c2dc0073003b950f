//! The signals that stop the process: SIGTERM and SIGINT.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells long work on another thread to stop. Clones share one flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

// === impl Cancel ===

impl Cancel {
    /// Asks the work to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work should stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Completes when the process is asked to stop. From then on a further signal ends the process at once,
/// with the code that shells give a process ended by it: 128 and its number.
///
/// # Errors
/// The system does not let the process listen for signals.
#[cfg(unix)]
pub fn signalled() -> std::io::Result<impl Future<Output = &'static str> + Send> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut either = async move || {
        tokio::select! {
            _ = terminate.recv() => ("SIGTERM", 15),
            _ = interrupt.recv() => ("SIGINT", 2),
        }
    };
    Ok(async move {
        let (first, _) = either().await;
        tokio::spawn(async move {
            let (signal, number) = either().await;
            tracing::warn!(signal, "second signal: ending at once");
            std::process::exit(128 + number);
        });
        first
    })
}

/// Completes when the process is asked to stop.
///
/// # Errors
/// Never on this system; the future listens for signals when it is first polled.
#[cfg(not(unix))]
pub fn signalled() -> std::io::Result<impl Future<Output = &'static str> + Send> {
    Ok(async {
        // An error means that no signal can come.
        match tokio::signal::ctrl_c().await {
            Ok(()) => "ctrl-c",
            Err(_) => std::future::pending().await,
        }
    })
}
