//! The cost of traces: servers that send none, one of a hundred and all of them, in turns.
//!
//! ```text
//! cargo bench -p switchyard --bench traces
//! ```
//!
//! The model and the load of the race, under the native fallback. Ratios are medians over the rounds of each
//! server to the one without traces.

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

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use contender::{Contender, ServerOptions};
use load::{Body, Load, Run};

const SHARES: [f64; 2] = [0.01, 1.0];

const CONCURRENCIES: [usize; 2] = [16, 64];

fn main() {
    let quick = std::env::args().any(|arg| arg == "--quick");
    let (seconds, rounds) = if quick { (2, 5) } else { (4, 9) };
    let folder = tempfile::tempdir().unwrap();
    model::write_zoo(&folder.path().join("zoo"));
    let collector = collector();
    // The second one shows the noise.
    let mut servers = Vec::new();
    for name in ["none", "none, again"] {
        servers.push(contender::ours(
            name,
            folder.path(),
            ServerOptions::fallback(),
        ));
    }
    for share in SHARES {
        let options = ServerOptions::traced(collector, share);
        servers.push(contender::ours(&format!("{share}"), folder.path(), options));
    }
    let load = Load::new(folder.path(), Duration::from_secs(seconds));
    servers.iter().for_each(|server| load.warm(server));
    println!(
        "| connections | share of requests | requests/s | of none | CPU us a request | of none |"
    );
    println!("|---:|---:|---:|---:|---:|---:|");
    for connections in CONCURRENCIES {
        let mut runs: Vec<Vec<Run>> = servers.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            eprintln!("round {round}: {connections} connections");
            // Each server is first in turn.
            for turn in 0..servers.len() {
                let at = (turn + round) % servers.len();
                runs[at].push(load.run(&servers[at], Body::Binary, connections));
            }
        }
        print(connections, &servers, &runs);
    }
}

fn print(connections: usize, servers: &[Contender], runs: &[Vec<Run>]) {
    let cpu = |run: &Run| run.cpu_us.unwrap();
    for (server, own) in servers.iter().zip(runs) {
        let ratio = |of: fn(&Run) -> f64| {
            let rounds = own.iter().zip(&runs[0]);
            median(rounds.map(|(own, none)| of(own) / of(none)))
        };
        println!(
            "| {connections} | {} | {:.0} | {:.3} | {:.1} | {:.3} |",
            server.name,
            median(own.iter().map(|run| run.per_s)),
            ratio(|run| run.per_s),
            median(own.iter().map(cpu)),
            ratio(|run| run.cpu_us.unwrap()),
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A collector that takes everything, in the bench's own process.
fn collector() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || take(stream));
        }
    });
    address
}

/// Answers requests of a connection until it ends.
fn take(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut writer = stream;
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(bytes) = line.strip_prefix("content-length:") {
                length = bytes.trim().parse().ok()?;
            }
            if line.is_empty() {
                break;
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).ok()?;
        writer
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .ok()?;
    }
}
