//! The load: `wrk`, which posts one body repeatedly.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::contender::Contender;
use super::model::{NAMES, Names, SAMPLES, beat};

/// How the tensor travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// As a list of numbers.
    Json,
    /// As bytes after the JSON, the answer too.
    Binary,
}

/// `wrk` and the scripts it runs.
pub(crate) struct Load {
    folder: PathBuf,
    took: Duration,
}

/// Results of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) per_s: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// The server's own CPU time per request; nothing for a peer whose process is not ours.
    pub(crate) cpu_us: Option<f64>,
    /// Answers other than 200.
    pub(crate) refused: u64,
    /// Steal time as a share of the machine's time, 0 to 1; 0 if it was not measured.
    pub(crate) stolen: f64,
}

// === impl Body ===

impl Body {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Binary => "binary",
        }
    }

    /// The length of the JSON where bytes follow it, and the body.
    pub(crate) fn bytes(self) -> (Option<usize>, Vec<u8>) {
        self.bytes_for(NAMES)
    }

    /// As [`bytes`](Self::bytes), for a server with other names.
    pub(crate) fn bytes_for(self, names: Names) -> (Option<usize>, Vec<u8>) {
        let input = |rest: serde_json::Value| {
            let mut input = json!({"name": names.input, "shape": [1, SAMPLES], "datatype": "FP32"});
            let fields = input.as_object_mut().unwrap();
            fields.extend(rest.as_object().unwrap().clone());
            input
        };
        match self {
            Self::Json => {
                let head = json!({"inputs": [input(json!({}))]}).to_string();
                // Numbers as short as an f32 needs; `json!` would write all digits of an f64.
                let numbers = serde_json::to_string(&beat()).unwrap();
                let body = head.replace("}]}", &format!(",\"data\":{numbers}}}]}}"));
                (None, body.into_bytes())
            }
            Self::Binary => {
                let blob: Vec<u8> = beat().into_iter().flat_map(f32::to_le_bytes).collect();
                let size = json!({"parameters": {"binary_data_size": blob.len()}});
                let head = json!({
                    "inputs": [input(size)],
                    "outputs": [{"name": names.output, "parameters": {"binary_data": true}}],
                });
                let head = head.to_string().into_bytes();
                (Some(head.len()), [head, blob].concat())
            }
        }
    }
}

// === impl Load ===

impl Load {
    pub(crate) fn new(folder: &Path, took: Duration) -> Self {
        let folder = folder.to_path_buf();
        Self { folder, took }
    }

    /// Writes the body that a server of these names takes, and the script that posts it.
    fn script(&self, body: Body, names: Names) -> PathBuf {
        let (json_bytes, bytes) = body.bytes_for(names);
        let file = self.folder.join(body.label());
        std::fs::write(&file, bytes).unwrap();
        let header = json_bytes.map_or(String::new(), |bytes| {
            format!(
                "wrk.headers[\"Content-Type\"] = \"application/octet-stream\"\n\
                 wrk.headers[\"Inference-Header-Content-Length\"] = \"{bytes}\"\n"
            )
        });
        let text = format!(
            "wrk.method = \"POST\"\n\
             wrk.headers[\"Content-Type\"] = \"application/json\"\n\
             {header}\
             local file = io.open(\"{}\", \"rb\")\n\
             wrk.body = file:read(\"*a\")\n\
             file:close()\n",
            file.display()
        );
        let script = file.with_extension("lua");
        std::fs::write(&script, text).unwrap();
        script
    }

    /// Until caches are warm and profiles settled.
    pub(crate) fn warm(&self, contender: &Contender) {
        let run = self.wrk(contender, Body::Json, 4, Duration::from_secs(1));
        assert_eq!(run.refused, 0, "{} refuses the body", contender.name);
        assert!(run.per_s > 0.0, "{} answers nothing", contender.name);
    }

    pub(crate) fn run(&self, contender: &Contender, body: Body, concurrency: usize) -> Run {
        let before = contender.cpu();
        let run = self.wrk(contender, body, concurrency, self.took);
        let spent = contender
            .cpu()
            .zip(before)
            .map(|(after, before)| after - before);
        let requests = run.per_s * self.took.as_secs_f64();
        Run {
            cpu_us: spent.map(|spent| spent.as_secs_f64() * 1e6 / requests),
            ..run
        }
    }

    fn wrk(&self, contender: &Contender, body: Body, concurrency: usize, took: Duration) -> Run {
        let output = Command::new("wrk")
            .args(["--threads", "1", "--latency"])
            .args(["--connections", &concurrency.to_string()])
            .args(["--duration", &format!("{}s", took.as_secs())])
            .arg("--script")
            .arg(self.script(body, contender.names))
            .arg(&contender.url)
            .output()
            .expect("wrk, Debian's package of that name");
        let text = String::from_utf8_lossy(&output.stdout);
        parse(&text).unwrap_or_else(|| {
            panic!(
                "wrk said: {text}{}",
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }
}

/// Reads wrk's report.
fn parse(report: &str) -> Option<Run> {
    let after = |label: &str| {
        let line = report
            .lines()
            .find(|line| line.trim_start().starts_with(label))?;
        line.split_whitespace().last()
    };
    Some(Run {
        per_s: after("Requests/sec:")?.parse().ok()?,
        p50_ms: milliseconds(after("50%")?)?,
        p99_ms: milliseconds(after("99%")?)?,
        cpu_us: None,
        refused: after("Non-2xx").map_or(Some(0), |count| count.parse().ok())?,
        stolen: 0.0,
    })
}

/// `1.23ms`, `45.00us` or `1.20s`.
fn milliseconds(text: &str) -> Option<f64> {
    let (number, scale) = if let Some(number) = text.strip_suffix("us") {
        (number, 1e-3)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 1.0)
    } else {
        (text.strip_suffix('s')?, 1e3)
    };
    Some(number.parse::<f64>().ok()? * scale)
}
