//! The time of a link: the same model on a worker of the server's process, and on one behind a socket.
//!
//! ```text
//! cargo bench -p switchyard --bench link
//! ```
//!
//! A tensor of 150 KB goes into a perceptron with one hidden neuron, whose time is small. One connection of
//! `h2load` sends binary requests; rounds alternate between a local worker, one over TCP on loopback and one
//! over a Unix socket.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "race/contender.rs"]
#[allow(dead_code)]
mod contender;
#[path = "race/h2load.rs"]
mod h2load;
#[path = "race/model.rs"]
#[allow(dead_code)]
mod model;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use contender::{Contender, ServerOptions, free_ports};
use h2load::{Figures, H2load, Requests};
use model::NAMES;

/// Numbers of a tensor of 150 KB.
const SAMPLES: usize = 37_500;

/// For a profile to be measured.
const READY_MAX: Duration = Duration::from_secs(60);

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (seconds, rounds) = if quick { (2, 7) } else { (4, 15) };
    let folder = tempfile::tempdir().unwrap();
    model::write_sized(&folder.path().join("zoo"), SAMPLES, 1);
    let tcp = format!("127.0.0.1:{}", free_ports(1));
    let unix = format!("unix:{}", folder.path().join("far.sock").display());
    let tcp_url = format!("grpc://{tcp}");
    let workers = [
        worker("tcp", folder.path(), &tcp, &tcp_url),
        worker("unix", folder.path(), &unix, &unix),
    ];
    let servers = [
        ("local", ServerOptions::fallback()),
        ("TCP on loopback", ServerOptions::remote(&tcp_url)),
        ("Unix socket", ServerOptions::remote(&unix)),
    ]
    .map(|(name, options)| contender::ours(name, folder.path(), options));
    let (json, body) = body();
    let client = H2load::new(folder.path());
    let run = |server: &Contender, seconds| {
        let requests = Requests {
            url: &server.url,
            is_http1: true,
            headers: &[format!("inference-header-content-length: {json}")],
            body: &body,
        };
        client.run(&requests, 1, seconds)
    };
    // Of the server and its worker, per request.
    let cpu_us = |at: usize| {
        let far = at.checked_sub(1).map(|at| &workers[at]);
        let processes = std::iter::once(&servers[at]).chain(far);
        let taken: Duration = processes.filter_map(Contender::cpu).sum();
        taken.as_secs_f64() * 1e6
    };
    let mut runs: Vec<Vec<Run>> = servers.iter().map(|_| Vec::new()).collect();
    for server in &servers {
        ready(server);
        run(server, 1);
    }
    for round in 0..rounds {
        eprintln!("round {round}");
        // Each server is first in turn.
        for turn in 0..servers.len() {
            let at = (turn + round) % servers.len();
            let before = cpu_us(at);
            let figures = run(&servers[at], seconds);
            let requests = figures.per_s * seconds as f64;
            runs[at].push(Run {
                figures,
                cpu_us: (cpu_us(at) - before) / requests,
            });
        }
    }
    println!("| worker | p50 ms | more than local, us | p99 ms | requests/s | CPU us a request |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (server, own) in servers.iter().zip(&runs) {
        let figures: Vec<_> = own.iter().map(|run| run.figures).collect();
        let Figures {
            p50_ms,
            p99_ms,
            per_s,
        } = Figures::median(&figures);
        let rounds = own.iter().zip(&runs[0]);
        let more = rounds.map(|(own, local)| (own.figures.p50_ms - local.figures.p50_ms) * 1e3);
        let (more, cpu_us) = (median(more), median(own.iter().map(|run| run.cpu_us)));
        println!(
            "| {} | {p50_ms:.3} | {more:.0} | {p99_ms:.3} | {per_s:.0} | {cpu_us:.0} |",
            server.name
        );
    }
}

/// One run of the client.
struct Run {
    figures: Figures,
    cpu_us: f64,
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Waits until the server has its profile and its worker.
fn ready(server: &Contender) {
    let is_ready = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(server.address())?;
        stream.write_all(b"GET /v2/health/ready HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.split(' ').nth(1) == Some("200"))
    };
    let began = Instant::now();
    while !is_ready().unwrap_or(false) {
        assert!(began.elapsed() < READY_MAX, "{} is not ready", server.name);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A worker's process, with the configuration of its scheduler.
fn worker(name: &str, folder: &Path, at: &str, url: &str) -> Contender {
    let config = format!(
        r#"[[app]]
name = "{app}"
zoo = "{zoo}"
[[worker]]
name = "cpu"
threads = 1
memory_mb = 64
remote = {{ url = "{url}" }}
[[pool]]
name = "main"
apps = ["{app}"]
workers = ["cpu"]
policy = "edf-fallback"
"#,
        app = model::APP,
        zoo = folder.join("zoo").display(),
    );
    let file = folder.join(format!("worker-{name}.toml"));
    std::fs::write(&file, config).unwrap();
    let probes = free_ports(1);
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchyard"));
    command.args(["worker", "cpu", "--grpc", at, "--config"]);
    command.arg(&file);
    command.args(["--http", &format!("127.0.0.1:{probes}")]);
    Contender::start(name, probes, &mut command)
}

/// The length of the JSON, and a binary request.
fn body() -> (usize, Vec<u8>) {
    let bytes = SAMPLES * 4;
    let json = format!(
        r#"{{"inputs":[{{"name":"{}","shape":[1,{SAMPLES}],"datatype":"FP32","parameters":{{"binary_data_size":{bytes}}}}}],"outputs":[{{"name":"{}","parameters":{{"binary_data":true}}}}]}}"#,
        NAMES.input, NAMES.output
    );
    let mut body = json.clone().into_bytes();
    body.extend((0..SAMPLES).flat_map(|i| ((i as f32 * 0.37).sin() * 0.8).to_le_bytes()));
    (json.len(), body)
}
