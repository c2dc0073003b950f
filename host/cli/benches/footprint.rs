//! The server's overhead: time to start, memory, and CPU time while idle.
//!
//! ```text
//! cargo xtask plugins --with-guests
//! cargo bench -p switchyard --bench footprint -- --soak 600
//! ```
//!
//! `--soak` is how many seconds of steady load memory is watched under; by default 30.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "race/contender.rs"]
#[allow(dead_code)]
mod contender;
#[path = "race/load.rs"]
#[allow(dead_code)]
mod load;
#[path = "race/model.rs"]
#[allow(dead_code)]
mod model;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use contender::{Contender, ServerOptions};
use load::{Body, Load};

/// Connections and pending requests whose cost is taken.
const MANY: usize = 1_000;
/// The optimised code of a policy is compiled and kept by then: it serves in baseline code before.
const OPTIMIZED: Duration = Duration::from_secs(3);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let quick = args.iter().any(|arg| arg == "--quick");
    let soak = args.windows(2).find(|pair| pair[0] == "--soak");
    let soak_s = soak.map_or(if quick { 10 } else { 30 }, |pair| pair[1].parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    model::write_zoo(&folder.path().join("zoo"));
    println!("| what | figure |");
    println!("| --- | ---: |");
    start(folder.path());
    at_rest(folder.path());
    connections(folder.path());
    pending(folder.path());
    soaked(folder.path(), soak_s);
}

fn row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

fn server(folder: &Path, more: ServerOptions<'_>) -> Contender {
    contender::ours("footprint", folder, more)
}

/// Until it is ready: the first time, when policy and profile are made, and again.
fn start(folder: &Path) {
    for what in [
        "ready, first start (component compiled, profile measured)",
        "ready, second start (both kept)",
    ] {
        let began = Instant::now();
        let server = server(folder, ServerOptions::policy("sneakpeek"));
        wait_until_ready(&server);
        row(
            what,
            &format!("{:.0} ms", began.elapsed().as_secs_f64() * 1e3),
        );
        std::thread::sleep(OPTIMIZED);
    }
}

fn wait_until_ready(server: &Contender) {
    loop {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let ask = "GET /v2/health/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(ask.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        if answer.starts_with("HTTP/1.1 200") {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn at_rest(folder: &Path) {
    let server = server(folder, ServerOptions::policy("sneakpeek"));
    wait_until_ready(&server);
    std::thread::sleep(OPTIMIZED);
    row(
        "resident, idle, one model",
        &mebibytes(server.resident_bytes()),
    );
    let (before, watched) = (server.cpu().unwrap(), Duration::from_secs(5));
    std::thread::sleep(watched);
    let spent = server.cpu().unwrap() - before;
    let share = spent.as_secs_f64() / watched.as_secs_f64();
    row(
        "CPU while idle",
        &format!("{:.2} % of a core", share * 100.0),
    );
}

/// Kept-alive connections that have each had an answer.
fn connections(folder: &Path) {
    let server = server(folder, ServerOptions::policy("fcfs"));
    wait_until_ready(&server);
    let mut open = ask_on(&server, 50);
    open.iter_mut().for_each(answered);
    let before = server.resident_bytes();
    let mut more = ask_on(&server, MANY);
    more.iter_mut().for_each(answered);
    let grown = server.resident_bytes().saturating_sub(before);
    row("a kept-alive connection", &kibibytes(grown, MANY));
}

/// Requests that a policy leaves pending: each has its connection too.
fn pending(folder: &Path) {
    let server = server(folder, ServerOptions::guest("chatters"));
    wait_until_ready(&server);
    let _first = ask_on(&server, 50);
    std::thread::sleep(Duration::from_millis(500));
    let before = server.resident_bytes();
    let _asked = ask_on(&server, MANY);
    std::thread::sleep(Duration::from_secs(1));
    let grown = server.resident_bytes().saturating_sub(before);
    row(
        "a pending request of 187 numbers, with its connection",
        &kibibytes(grown, MANY),
    );
}

/// One request on each of `count` new connections.
fn ask_on(server: &Contender, count: usize) -> Vec<TcpStream> {
    let (_, body) = Body::Json.bytes();
    let head = format!(
        "POST /v2/models/{}/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
        model::APP,
        body.len()
    );
    let request = [head.into_bytes(), body].concat();
    let ask = |_| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(&request).unwrap();
        stream
    };
    (0..count).map(ask).collect()
}

fn answered(stream: &mut TcpStream) {
    let mut buffer = [0; 4_096];
    let read = stream.read(&mut buffer).unwrap();
    assert!(buffer[..read].starts_with(b"HTTP/1.1 200"), "no answer");
}

/// Steady load, with the resident memory in each tenth of it.
fn soaked(folder: &Path, seconds: u64) {
    let server = server(folder, ServerOptions::policy("sneakpeek"));
    wait_until_ready(&server);
    let load = Load::new(folder, Duration::from_secs((seconds / 10).max(1)));
    load.warm(&server);
    let mut requests = 0.0;
    let resident: Vec<u64> = (0..10)
        .map(|_| {
            let run = load.run(&server, Body::Json, 16);
            assert_eq!(run.refused, 0, "requests were refused");
            requests += run.per_s * (seconds / 10).max(1) as f64;
            server.resident_bytes()
        })
        .collect();
    let all: Vec<String> = resident.iter().map(|&bytes| mebibytes(bytes)).collect();
    let million = requests / 1e6;
    row(
        &format!("resident after each tenth of {million:.2} million requests, 16 at once"),
        &all.join(", "),
    );
    let (second, last) = (resident[1] as f64, resident[9] as f64);
    row(
        "grown since the second tenth, per million requests",
        &format!("{:.2} MiB", (last - second) / million / f64::from(1 << 20)),
    );
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn kibibytes(bytes: u64, of: usize) -> String {
    format!("{:.1} KiB", bytes as f64 / of as f64 / 1_024.0)
}
