//! The steps that every command with a server takes: its runtime, and its end on a signal.

use switchyard_server::server::ServeError;

use super::failure::Failure;
use super::notify::notify;

/// Runs a server on this many threads.
pub(super) fn run(
    threads: usize,
    serving: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(Failure::input)?;
    let served = runtime.block_on(serving);
    // A task that blocks, such as a read of a file that hangs, does not hold up the end.
    runtime.shutdown_background();
    served
}

/// Completes with a signal. The server is ready at the first poll.
pub(super) async fn stopping(signalled: impl Future<Output = &'static str>) {
    notify("READY=1");
    let signal = signalled.await;
    notify("STOPPING=1");
    tracing::info!(signal, "draining");
}

/// Completes with a server.
pub(super) async fn ended(
    serving: impl Future<Output = Result<(), ServeError>>,
) -> Result<(), Failure> {
    serving.await.map_err(Failure::check)?;
    tracing::info!("stopped");
    Ok(())
}
