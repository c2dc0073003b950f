//! Short texts next to long ones, over HTTP: seven clients of 8 to 15 words, without and with an
//! eighth client of 480 words, in turns.
//!
//! ```text
//! cargo bench -p switchyard --bench texts
//! cargo bench -p switchyard --bench texts -- --slo-ms 1000 --rounds 3 --seconds 5
//! cargo bench -p switchyard --bench texts -- --server ANOTHER_BUILD_OF_SWITCHYARD
//! ```
//!
//! The server has one worker of one thread, no policy, and an encoder of MiniLM's size with random
//! weights. Every client sends its next text when it has the answer to the last one. The table has
//! medians over the rounds. The bench fails if, with the long client, the p99 of the short texts is
//! more than [`P99_RATIO_MAX`] times or their rate less than [`RATE_RATIO_MIN`] of that without, or if
//! a text is not answered within the SLO.

#![allow(clippy::unwrap_used, missing_docs)]

#[path = "texts/client.rs"]
mod client;
#[path = "race/process.rs"]
#[allow(dead_code)] // Shared with the race.
mod process;
#[path = "texts/server.rs"]
mod server;
#[path = "../../../models/tests/common/text.rs"]
#[allow(dead_code)]
mod text_zoo;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use client::{Client, Finished};
use server::Server;

/// Most p99 of the short texts with the long client, in multiples of that without.
const P99_RATIO_MAX: f64 = 2.0;
/// Least rate of the short texts with the long client, as a share of that without.
const RATE_RATIO_MIN: f64 = 0.8;

const SHORT_CLIENTS: u64 = 7;
const SHORT_WORDS: [usize; 2] = [8, 15];
const LONG_WORDS: [usize; 2] = [480, 480];

/// The clients of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mix {
    Short,
    ShortAndLong,
}

/// One run of a mix.
#[derive(Clone, Copy, Debug)]
struct MixRun {
    short_per_s: f64,
    short_p50_ms: f64,
    short_p99_ms: f64,
    long_per_s: f64,
    long_max_ms: f64,
    late: usize,
}

struct Options {
    server: PathBuf,
    slo_ms: f64,
    rounds: usize,
    seconds: f64,
}

fn main() -> ExitCode {
    let options = Options::of(&std::env::args().skip(1).collect::<Vec<_>>());
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options.server, folder.path(), options.slo_ms);
    // Until caches are warm and the core knows the arrival rate.
    run(&server, Mix::ShortAndLong, &options);
    let mixes = [Mix::Short, Mix::ShortAndLong];
    let mut runs = [const { Vec::new() }; 2];
    for round in 0..options.rounds {
        for (mix, runs) in mixes.iter().zip(&mut runs) {
            let found = run(&server, *mix, &options);
            eprintln!("round {round}, {mix:?}: {found:.1?}");
            runs.push(found);
        }
    }
    println!(
        "{SHORT_CLIENTS} clients of {} to {} words, 1 of {}; SLO {} ms; medians of {} rounds of {} s\n",
        SHORT_WORDS[0],
        SHORT_WORDS[1],
        LONG_WORDS[0],
        options.slo_ms,
        options.rounds,
        options.seconds
    );
    println!("clients          | short/s | p50 ms | p99 ms | long/s | long max ms | late");
    println!("---------------- | ------- | ------ | ------ | ------ | ----------- | ----");
    let [alone, both] = runs.map(|runs| MixRun::medians(&runs));
    for (name, run) in [("short", alone), ("short and long", both)] {
        println!(
            "{name:16} | {:7.1} | {:6.1} | {:6.1} | {:6.2} | {:11.0} | {:4}",
            run.short_per_s,
            run.short_p50_ms,
            run.short_p99_ms,
            run.long_per_s,
            run.long_max_ms,
            run.late
        );
    }
    let rate = both.short_per_s / alone.short_per_s;
    let p99 = both.short_p99_ms / alone.short_p99_ms;
    println!(
        "\nwith over without: short/s {rate:.2} (at least {RATE_RATIO_MIN}), p99 {p99:.2} (at most {P99_RATIO_MAX})"
    );
    let late = alone.late + both.late;
    let is_good = rate >= RATE_RATIO_MIN && p99 <= P99_RATIO_MAX && late == 0;
    if is_good {
        return ExitCode::SUCCESS;
    }
    eprintln!("outside of the bounds; {late} texts without an answer within the SLO");
    // Not `exit`, which would leave the server running.
    ExitCode::FAILURE
}

fn run(server: &Server, mix: Mix, options: &Options) -> MixRun {
    let duration = Duration::from_secs_f64(options.seconds);
    let mut clients: Vec<_> = (0..SHORT_CLIENTS)
        .map(|seed| Client::new(server.port, seed, SHORT_WORDS))
        .collect();
    if mix == Mix::ShortAndLong {
        clients.push(Client::new(server.port, SHORT_CLIENTS, LONG_WORDS));
    }
    let threads: Vec<_> = clients
        .into_iter()
        .map(|mut client| std::thread::spawn(move || client.run(duration)))
        .collect();
    let mut finished = threads.into_iter().map(|thread| thread.join().unwrap());
    let short: Vec<Finished> = finished.by_ref().take(SHORT_CLIENTS as usize).collect();
    MixRun::of(&short, &finished.collect::<Vec<_>>(), options.slo_ms)
}

// === impl MixRun ===

impl MixRun {
    fn of(short: &[Finished], long: &[Finished], slo_ms: f64) -> Self {
        let latencies = |clients: &[Finished]| {
            let mut all: Vec<f64> = clients
                .iter()
                .flat_map(|c| c.latencies_ms.clone())
                .collect();
            all.sort_by(f64::total_cmp);
            all
        };
        // Clients end at different times, the last one after its last answer.
        let per_s = |clients: &[Finished]| {
            let rates = clients
                .iter()
                .map(|c| c.latencies_ms.len() as f64 / c.took.as_secs_f64());
            // An empty sum is -0.
            rates.sum::<f64>().abs()
        };
        let (of_short, of_long) = (latencies(short), latencies(long));
        let is_late = |ms: &&f64| **ms > slo_ms;
        let dropped: usize = short.iter().chain(long).map(|c| c.dropped).sum();
        Self {
            short_per_s: per_s(short),
            short_p50_ms: quantile(&of_short, 0.5),
            short_p99_ms: quantile(&of_short, 0.99),
            long_per_s: per_s(long),
            long_max_ms: of_long.last().copied().unwrap_or_default(),
            late: dropped + of_short.iter().chain(&of_long).filter(is_late).count(),
        }
    }

    /// Of each figure apart; of late answers, and of the longest latency, all runs together.
    fn medians(runs: &[Self]) -> Self {
        let median = |of: fn(&Self) -> f64| {
            let mut all: Vec<f64> = runs.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            quantile(&all, 0.5)
        };
        Self {
            short_per_s: median(|run| run.short_per_s),
            short_p50_ms: median(|run| run.short_p50_ms),
            short_p99_ms: median(|run| run.short_p99_ms),
            long_per_s: median(|run| run.long_per_s),
            long_max_ms: runs.iter().map(|run| run.long_max_ms).fold(0.0, f64::max),
            late: runs.iter().map(|run| run.late).sum(),
        }
    }
}

/// Of sorted values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted
        .get(at)
        .or(sorted.last())
        .copied()
        .unwrap_or_default()
}

// === impl Options ===

impl Options {
    fn of(args: &[String]) -> Self {
        let text = |name: &str| {
            let pair = args.windows(2).find(|pair| pair[0] == name);
            pair.map(|pair| pair[1].as_str())
        };
        let after =
            |name: &str, default: f64| text(name).map_or(default, |text| text.parse().expect(name));
        let [rounds, seconds] = match args.iter().any(|arg| arg == "--quick") {
            true => [3.0, 5.0],
            false => [5.0, 10.0],
        };
        Self {
            server: text("--server")
                .unwrap_or(env!("CARGO_BIN_EXE_switchyard"))
                .into(),
            slo_ms: after("--slo-ms", text_zoo::MINILM.slo_ms),
            rounds: after("--rounds", rounds) as usize,
            seconds: after("--seconds", seconds),
        }
    }
}
