//! `h2load` (Debian's nghttp2-client): connections that have one request at a time, over HTTP/1.1 or HTTP/2.

use std::path::{Path, PathBuf};
use std::process::Command;

/// `h2load` and its files.
pub(crate) struct H2load {
    folder: PathBuf,
}

/// The requests of a run.
pub(crate) struct Requests<'a> {
    pub(crate) url: &'a str,
    /// Over HTTP/1.1 instead of HTTP/2.
    pub(crate) is_http1: bool,
    pub(crate) headers: &'a [String],
    pub(crate) body: &'a [u8],
}

/// Medians in milliseconds, and answers per second.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) per_s: f64,
}

// === impl H2load ===

impl H2load {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
        }
    }

    /// Every answer must have status 200.
    pub(crate) fn run(&self, requests: &Requests<'_>, connections: usize, seconds: u64) -> Figures {
        let (log, body) = (self.folder.join("log"), self.folder.join("body"));
        // h2load appends.
        let _ = std::fs::remove_file(&log);
        std::fs::write(&body, requests.body).unwrap();
        let mut command = Command::new("h2load");
        command.args(["--threads", "1", "--max-concurrent-streams", "1"]);
        command.args(["--clients", &connections.to_string()]);
        command.args(["--duration", &seconds.to_string()]);
        command.arg("--log-file").arg(&log).arg("--data").arg(body);
        if requests.is_http1 {
            command.arg("--h1");
        }
        for header in requests.headers {
            command.args(["--header", header]);
        }
        let output = command
            .arg(requests.url)
            .output()
            .expect("h2load, of Debian's package nghttp2-client");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
        Figures::read(&log, seconds)
    }
}

impl Figures {
    /// Lines of a start, a status and a duration in microseconds.
    fn read(log: &Path, seconds: u64) -> Self {
        let text = std::fs::read_to_string(log).unwrap();
        let mut taken: Vec<f64> = text
            .lines()
            .map(|line| {
                let fields: Vec<&str> = line.split('\t').collect();
                assert_eq!(fields[1], "200", "{line}");
                fields[2].parse::<f64>().unwrap() / 1_000.0
            })
            .collect();
        taken.sort_by(f64::total_cmp);
        Self {
            p50_ms: taken[taken.len() / 2],
            p99_ms: taken[taken.len() * 99 / 100],
            per_s: taken.len() as f64 / seconds as f64,
        }
    }

    pub(crate) fn median(runs: &[Self]) -> Self {
        let of = |value: fn(&Self) -> f64| {
            let mut values: Vec<f64> = runs.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self {
            p50_ms: of(|run| run.p50_ms),
            p99_ms: of(|run| run.p99_ms),
            per_s: of(|run| run.per_s),
        }
    }
}
