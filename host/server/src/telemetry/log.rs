//! Logs: to stderr, filtered by `RUST_LOG`, as text or JSON.

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One line of words.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging. `RUST_LOG` is the filter; `default` is the filter if it is not set.
///
/// Does nothing if the process has a logger already.
pub fn init_log(format: LogFormat, default: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error means that there is a subscriber already.
    let _ = match format {
        LogFormat::Text => builder
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}
