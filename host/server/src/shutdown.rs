//! The end of the process: signals (SIGTERM and SIGINT), drivers that failed, threads that hang.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

/// How often drivers are looked at for a failure.
const FAILURE_CHECK: Duration = Duration::from_millis(250);

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

/// The name of the first pool whose driver panicked, a grace time after this was noticed.
pub(crate) async fn driver_failure(failed: impl Fn() -> Option<String>, grace: Duration) -> String {
    loop {
        if let Some(pool) = failed() {
            let grace_s = grace.as_secs();
            tracing::error!(
                pool,
                grace_s,
                "the scheduler has failed: the server will stop"
            );
            tokio::time::sleep(grace).await;
            return pool;
        }
        tokio::time::sleep(FAILURE_CHECK).await;
    }
}

/// Drops the parts of a server, which joins their threads, on a thread of its own. False: some had not
/// ended in time. They end with the process.
pub(crate) async fn end_within<T: Send + 'static>(limit: Duration, parts: T) -> bool {
    let (done, ended) = oneshot::channel::<()>();
    let spawned = std::thread::Builder::new()
        .name("server-end".to_owned())
        .spawn(move || {
            drop(parts);
            drop(done);
        });
    // The sender is dropped, also if there is no thread: then the parts were dropped here.
    spawned.is_ok() && tokio::time::timeout(limit, ended).await.is_ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Its thread never ends.
    struct Stuck;

    impl Drop for Stuck {
        fn drop(&mut self) {
            std::thread::sleep(Duration::from_secs(60));
        }
    }

    #[tokio::test]
    async fn a_driver_that_fails_stops_the_server_after_a_grace_time() {
        let failed = std::cell::Cell::new(None);
        let grace = Duration::from_millis(20);
        let noticed = driver_failure(|| failed.take(), grace);
        tokio::pin!(noticed);
        let early = tokio::time::timeout(Duration::from_millis(300), &mut noticed).await;
        assert!(early.is_err(), "no driver has failed");
        let began = Instant::now();
        failed.set(Some("main".to_owned()));
        assert_eq!(noticed.await, "main");
        assert!(began.elapsed() >= grace);
    }

    #[tokio::test]
    async fn threads_that_hang_do_not_delay_the_stop() {
        let began = Instant::now();
        assert!(!end_within(Duration::from_millis(50), (Stuck, 1)).await);
        assert!(began.elapsed() < Duration::from_secs(10));
        assert!(end_within(Duration::from_secs(10), ("ends", 1)).await);
    }
}
