//! Logs: to stderr, filtered by `RUST_LOG`, as text or JSON.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::log_queue::LogQueue;

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line of words.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging. `RUST_LOG` is the filter; `default` is the filter if it is not set. Each line is
/// written by the thread that logs it.
///
/// Does nothing if the process has a logger already.
pub fn init_log(format: LogFormat, default: &str) {
    init(format, default, std::io::stderr);
}

/// As [`init_log`], for a server: a reader of stderr that stalls does not stop the threads that log.
/// Lines wait in a queue; lines past its end are dropped and counted in
/// `switchyard_log_lines_dropped_total`.
///
/// Keep the result until the end of the process: dropping it writes the lines that wait, for a
/// limited time.
///
/// # Errors
/// The system gives no thread for the writer.
pub fn init_server_log(format: LogFormat, default: &str) -> std::io::Result<LogQueue> {
    let queue = LogQueue::start(std::io::stderr())?;
    init(format, default, queue.lines());
    Ok(queue)
}

fn init<W>(format: LogFormat, default: &str, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer);
    // An error means that there is a subscriber already.
    let _ = match format {
        LogFormat::Text => builder
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}
