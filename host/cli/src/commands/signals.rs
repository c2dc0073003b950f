//! SIGINT and SIGTERM in commands other than `serve`.

use std::io;

use switchyard_server::shutdown;

/// Calls `act` with the name of each signal, on a thread of its own, as long as the process runs.
/// The signals then no longer end the process.
///
/// # Errors
/// The system does not let the process listen for signals, or has no thread left.
pub(super) fn for_each(mut act: impl FnMut(&'static str) + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut next = {
        let _inside = runtime.enter();
        Box::pin(shutdown::signalled()?)
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async move {
                loop {
                    let signal = next.await;
                    let Ok(following) = shutdown::signalled() else {
                        exit(signal);
                    };
                    next = Box::pin(following);
                    act(signal);
                }
            });
        })?;
    Ok(())
}

/// Ends the process with the exit code that shells report for the signal.
pub(super) fn exit(signal: &str) -> ! {
    let number = if signal == "SIGTERM" { 15 } else { 2 };
    std::process::exit(128 + number)
}
