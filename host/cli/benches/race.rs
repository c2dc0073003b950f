//! The HTTP path against a lower bound and a handwritten server, in one run: a hyper server with a
//! canned answer, an axum server that runs the same model inline, and this server with a wasm policy,
//! with a larger one, and with none.
//!
//! ```text
//! cargo xtask plugins
//! cargo bench -p switchyard --bench race
//! cargo bench -p switchyard --bench race -- --quick --only axum --only furnace
//! ```
//!
//! A multi-layer perceptron of 187-128-7, batch-1 requests from `wrk` on one thread. Contenders
//! alternate; the table has medians over the rounds and ratios of medians, because the machines are
//! shared. The peers of `tests/peers` that have been built take part, started and
//! stopped here; `--peer NAME=URL` races another server that serves `mlp` already. Before the start
//! every contender but the canned answer must give the model's own probabilities.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "race/answer.rs"]
mod answer;
#[path = "race/bare.rs"]
mod bare;
#[path = "race/contender.rs"]
#[allow(dead_code)] // Shared with the other benches, so too below.
mod contender;
#[path = "race/load.rs"]
#[allow(dead_code)]
mod load;
#[path = "race/model.rs"]
mod model;
#[path = "race/peers.rs"]
mod peers;
#[path = "race/stolen.rs"]
mod stolen;
#[path = "race/table.rs"]
mod table;

use std::time::Duration;

use contender::Contender;
use load::{Body, Load, Run};
use stolen::Stolen;
use table::Entry;

/// Connections kept busy at once.
const CONCURRENCIES: [usize; 2] = [16, 64];

/// Most steal time of a run, as a share.
const STOLEN_MAX: f64 = 0.05;
/// Times that a run is tried before the least disturbed one counts.
const ATTEMPTS: usize = 3;

/// How long, how often, and who else.
struct Options {
    seconds: u64,
    rounds: usize,
    peers: Vec<(String, String)>,
    only: Vec<String>,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // The bare servers are this program again, so that each has a process and its times.
    if let [serve, what, port, zoo] = args.as_slice()
        && serve == "bare"
    {
        return bare::serve(what, port.parse().unwrap(), zoo.as_ref());
    }
    if let [zoo, folder] = args.as_slice()
        && zoo == "zoo"
    {
        return model::write_zoo(folder.as_ref());
    }
    let options = Options::of(&args);
    let folder = tempfile::tempdir().unwrap();
    let zoo = folder.path().join("zoo");
    model::write_zoo(&zoo);
    let is_wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|o| o == name);
    let mut contenders = contender::own(folder.path(), is_wanted);
    contenders.extend(peers::built(&zoo, is_wanted));
    let elsewhere = options.peers.iter().filter(|(name, _)| is_wanted(name));
    contenders.extend(elsewhere.map(|(name, url)| Contender::elsewhere(name, url)));
    answer::compare(&contenders, &zoo);
    let load = Load::new(folder.path(), Duration::from_secs(options.seconds));
    for contender in &contenders {
        load.warm(contender);
    }
    let mut entries = Vec::new();
    for body in [Body::Json, Body::Binary] {
        for concurrency in CONCURRENCIES {
            let raced = race(&contenders, &load, body, concurrency, options.rounds);
            entries.extend(raced);
        }
    }
    table::print(&entries);
}

fn race(
    contenders: &[Contender],
    load: &Load,
    body: Body,
    concurrency: usize,
    rounds: usize,
) -> Vec<Entry> {
    let takes = |one: &&Contender| body == Body::Json || one.takes_binary;
    let contenders: Vec<&Contender> = contenders.iter().filter(takes).collect();
    let mut runs: Vec<Vec<Run>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (contender, runs) in contenders.iter().zip(&mut runs) {
            eprintln!("round {round}: {} {body:?} {concurrency}", contender.name);
            runs.push(undisturbed(|| load.run(contender, body, concurrency)));
        }
    }
    let named = contenders.iter().zip(runs);
    named
        .map(|(contender, runs)| Entry::new(&contender.name, body, concurrency, &runs))
        .collect()
}

/// A run during which the host of this virtual machine left it alone, or the least disturbed of a
/// few: a machine from which a fifth of the time is taken says nothing about servers.
fn undisturbed(run: impl Fn() -> Run) -> Run {
    let mut best: Option<Run> = None;
    for _ in 0..ATTEMPTS {
        let before = Stolen::now();
        let mut found = run();
        let stolen = Stolen::now().zip(before).map(|(now, then)| now.since(then));
        found.stolen = stolen.unwrap_or_default();
        if best.is_none_or(|best| found.stolen < best.stolen) {
            best = Some(found);
        }
        if found.stolen < STOLEN_MAX {
            break;
        }
        eprintln!("{:.0} % of the time was stolen", found.stolen * 100.0);
    }
    best.unwrap()
}

// === impl Options ===

impl Options {
    fn of(args: &[String]) -> Self {
        let quick = args.iter().any(|arg| arg == "--quick");
        let after = |name: &str| {
            let pairs = args.windows(2).filter(|pair| pair[0] == name);
            pairs.map(|pair| pair[1].clone()).collect::<Vec<_>>()
        };
        let peers = after("--peer").into_iter().map(|peer| {
            let (name, url) = peer.split_once('=').expect("--peer NAME=URL");
            (name.to_owned(), url.to_owned())
        });
        Self {
            seconds: if quick { 2 } else { 4 },
            rounds: if quick { 3 } else { 7 },
            peers: peers.collect(),
            only: after("--only"),
        }
    }
}
