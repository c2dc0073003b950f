//! When to stop: SIGTERM or SIGINT.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells long work on another thread to stop. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

// === impl Cancel ===

impl Cancel {
    /// It should stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it should.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Completes when the process is asked to stop.
///
/// # Errors
/// The system does not let the process listen for signals.
#[cfg(unix)]
pub fn signalled() -> std::io::Result<impl Future<Output = &'static str> + Send> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    })
}

/// Completes when the process is asked to stop.
///
/// # Errors
/// Never here; signals are listened for when first polled.
#[cfg(not(unix))]
pub fn signalled() -> std::io::Result<impl Future<Output = &'static str> + Send> {
    Ok(async {
        // An error means that no signal can ever come.
        match tokio::signal::ctrl_c().await {
            Ok(()) => "ctrl-c",
            Err(_) => std::future::pending().await,
        }
    })
}
