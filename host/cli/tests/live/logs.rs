//! The log of this process, kept for tests to look into.

use std::io::{self, Write};
use std::sync::{Mutex, OnceLock};

use serde_json::Value;

static LINES: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Sink;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts capturing log lines.
pub(crate) fn capture() {
    static CAPTURING: OnceLock<()> = OnceLock::new();
    CAPTURING.get_or_init(|| {
        tracing_subscriber::fmt()
            .json()
            .with_max_level(tracing::Level::INFO)
            .with_writer(|| Sink)
            .init();
    });
}

/// The fields of lines about a pool with a message, oldest first.
pub(crate) fn lines(pool: &str, message: &str) -> Vec<Value> {
    let text = String::from_utf8(LINES.lock().unwrap().clone()).unwrap();
    let lines = text.lines().filter(|line| line.contains(pool));
    lines
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["fields"].take())
        .filter(|fields| fields["pool"] == pool && fields["message"] == message)
        .collect()
}
