//! One scheduler over three real Triton servers and two `switchyard worker`s: `cargo xtask tritons`.

mod servers;
mod setup;
mod traffic;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use switchyard_server::admin::{PoolReport, ServerStatus};

use crate::free_address::free_address;

use super::binary::Process;
use super::client::get;
use super::metrics::Metrics;
use super::remote::{blocking, ready};
use super::test_bed::PATIENCE;

use servers::{BATCH_MAX, FAST, SLOW, SleepingModel, Triton};
use setup::{SLO, Scheduling, Servers, Shared};
use traffic::{Load, Tally, Target, capacity, run};

/// Offered load, in times of the servers' capacity.
const OVERLOAD: f64 = 1.5;

/// Least goodput of a policy, in times of round-robin's.
const GOODPUT_MIN: f64 = 1.3;

const ROUNDS: u64 = 3;
const ROUND: Duration = Duration::from_secs(6);

const POLICIES: [Scheduling; 2] = [Scheduling::Ramsis, Scheduling::SneakPeek];

/// One way of serving in one round.
struct Measured {
    name: &'static str,
    tally: Tally,
}

async fn three_tritons() -> [Triton; 3] {
    let tritons = blocking(|| [0; 3].map(|_| Triton::start())).await;
    for triton in &tritons {
        triton.ready().await;
    }
    tritons
}

/// A scheduler that is ready, and its address for gRPC.
fn scheduler(shared: &Shared, servers: Servers<'_>, of: Scheduling) -> (Process, SocketAddr) {
    let process = shared.scheduler(servers, of);
    let unused = process.messages();
    let unused: Vec<_> = unused
        .iter()
        .filter(|line| line.contains("tables"))
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
    let listening = process.wait_for_line("listening");
    let grpc = listening["grpc"].as_str().unwrap().parse().unwrap();
    (process, grpc)
}

async fn pool(scheduler: &Process) -> PoolReport {
    let status = get(scheduler.admin, "/admin/v1/status").await;
    let status: ServerStatus = serde_json::from_str(&status.text).unwrap();
    status.pools.into_iter().next().unwrap()
}

/// Every request that the client sent has ended once, there and here.
async fn conserved(scheduler: &Process, tally: &Tally) {
    assert_eq!(tally.lost, Vec::<String>::new());
    assert_eq!(tally.ended(), tally.sent);
    let driver = pool(scheduler).await.driver;
    assert_eq!((driver.imbalance, driver.live), (0, 0));
    assert_eq!(driver.accepted, driver.ended);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Triton: cargo xtask tritons"]
async fn past_their_capacity_three_tritons_answer_more_in_time_than_in_turn() {
    let tritons = three_tritons().await;
    let at = [0, 1, 2].map(|nth: usize| tritons[nth].grpc);
    let servers = Servers {
        tritons: &at,
        workers: &[],
    };
    let shared = Shared::new();
    let began = Instant::now();
    tokio::task::block_in_place(|| shared.measure(servers));
    println!(
        "profile through the wire, and tables: {:?}",
        began.elapsed()
    );
    let mut ratios = Vec::new();
    for model in [SLOW, FAST] {
        let reaches = capacity(&at, model, 4 * BATCH_MAX).await;
        let nominal = 3.0 * model.capacity();
        println!(
            "\nmodel {}, accuracy {}: three servers answer {reaches:.0}/s, by their times {nominal:.0}/s; \
             offered {:.0}/s, deadline {SLO:?}",
            model.name,
            model.accuracy,
            OVERLOAD * reaches
        );
        ratios.extend(compare(&shared, servers, model, OVERLOAD * reaches).await);
    }
    for (name, model, ratio) in &ratios {
        println!(
            "{name} at {OVERLOAD} times the capacity of `{model}`: {ratio:.2} times round-robin"
        );
    }
    assert!(
        ratios.iter().all(|(.., ratio)| *ratio >= GOODPUT_MIN),
        "below {GOODPUT_MIN} times the goodput of round-robin"
    );
}

/// Prints a table; for each policy the median over the rounds of its goodput over round-robin's.
async fn compare(
    shared: &Shared,
    servers: Servers<'_>,
    model: SleepingModel,
    per_s: f64,
) -> Vec<(&'static str, &'static str, f64)> {
    println!(
        "round | served by | sent | in time/s | of sent | accuracy | late | refused | lost | longest"
    );
    println!(
        "----- | --------- | ---- | --------- | ------- | -------- | ---- | ------- | ---- | -------"
    );
    let mut ratios = vec![Vec::new(); POLICIES.len()];
    let mut stricter = vec![Vec::new(); POLICIES.len()];
    for seed in 0..ROUNDS {
        let load = || Load {
            per_s,
            length: ROUND,
            seed,
            has_marks: true,
        };
        let in_turn = async |waits_at_most| {
            let target = Target::InTurn {
                servers: servers.tritons,
                model,
                waits_at_most,
            };
            run(target, load()).await
        };
        let plain = Measured::new("round-robin", in_turn(None).await);
        plain.print(seed);
        // Triton's own remedy: a request that cannot be in time any more leaves its queue.
        let waits = SLO - model.full_batch();
        let strict = Measured::new("the same, refusing", in_turn(Some(waits)).await);
        strict.print(seed);
        for (nth, policy) in POLICIES.into_iter().enumerate() {
            let (process, grpc) =
                tokio::task::block_in_place(|| scheduler(shared, servers, policy));
            ready(process.http).await;
            let tally = run(Target::Scheduler(grpc), load()).await;
            conserved(&process, &tally).await;
            let measured = Measured::new(policy.name(), tally);
            measured.print(seed);
            ratios[nth].push(measured.times(&plain));
            stricter[nth].push(measured.times(&strict));
        }
        assert!(plain.tally.lost.is_empty() && plain.tally.ended() == plain.tally.sent);
        assert!(strict.tally.lost.is_empty() && strict.tally.ended() == strict.tally.sent);
    }
    let medians = POLICIES.iter().zip(ratios.iter_mut().zip(&mut stricter));
    medians
        .map(|(policy, (ratios, stricter))| {
            let (ratio, stricter) = (median(ratios), median(stricter));
            println!(
                "{}: {ratio:.2} times round-robin, {stricter:.2} times round-robin that refuses (medians)",
                policy.name()
            );
            (policy.name(), model.name, ratio)
        })
        .collect()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Triton: cargo xtask tritons"]
async fn three_tritons_and_two_workers_lose_nothing_when_they_are_killed() {
    let mut tritons = three_tritons().await;
    let at = [0, 1, 2].map(|nth: usize| tritons[nth].grpc);
    let workers = [("far-a", free_address()), ("far-b", free_address())];
    let servers = Servers {
        tritons: &at,
        workers: &workers,
    };
    let shared = Shared::new();
    let start = |name| tokio::task::block_in_place(|| shared.worker(servers, name));
    let [mut far_a, mut far_b] = ["far-a", "far-b"].map(start);
    ready(far_a.http).await;
    ready(far_b.http).await;
    tokio::task::block_in_place(|| shared.measure(servers));
    // Alone the Tritons do not keep up with it.
    let per_s = OVERLOAD * 3.0 * SLOW.capacity();
    for policy in POLICIES {
        let (process, grpc) = tokio::task::block_in_place(|| scheduler(&shared, servers, policy));
        ready(process.http).await;
        let load = |length, seed| Load {
            per_s,
            length,
            seed,
            has_marks: false,
        };
        let calm = run(Target::Scheduler(grpc), load(ROUND, 7)).await;
        conserved(&process, &calm).await;
        Measured::new(policy.name(), calm).print(0);
        println!("seconds of work: {}", shares(&process, servers).await);

        let killing = async {
            tokio::time::sleep(ROUND / 3).await;
            tritons[0].kill();
            far_a.kill();
            // The rest is for two Tritons.
            tokio::time::sleep(ROUND / 3).await;
            far_b.kill();
        };
        let (torn, ()) = tokio::join!(run(Target::Scheduler(grpc), load(ROUND, 8)), killing);
        conserved(&process, &torn).await;
        assert_eq!(torn.failed.len(), 0, "{:?}", torn.failed);
        assert!(torn.longest < Duration::from_secs(2), "{:?}", torn.longest);
        println!(
            "{}, a Triton and both workers killed: {} sent, {} in time, {} late, {} refused before their \
             deadlines, 0 lost, 0 answered twice; the longest after {:?}",
            policy.name(),
            torn.sent,
            torn.in_time,
            torn.late,
            torn.refused,
            torn.longest
        );

        println!("seconds of work: {}", shares(&process, servers).await);

        tritons[0] = tritons[0].again();
        tritons[0].ready().await;
        let triton_back = back(&process, 0).await;
        far_a = start("far-a");
        ready(far_a.http).await;
        let worker_back = back(&process, 3).await;
        println!(
            "Triton takes batches {triton_back:?} after it was ready, the worker {worker_back:?}"
        );
        far_b = start("far-b");
        ready(far_b.http).await;
        back(&process, 4).await;
        let again = run(Target::Scheduler(grpc), load(ROUND / 2, 9)).await;
        conserved(&process, &again).await;
        assert_eq!(again.failed.len(), 0, "{:?}", again.failed);
        assert!(triton_back.max(worker_back) <= Duration::from_secs(1));
    }
}

/// The time until a worker takes batches.
async fn back(scheduler: &Process, worker: usize) -> Duration {
    let began = Instant::now();
    while !pool(scheduler).await.driver.workers[worker].up {
        assert!(began.elapsed() < PATIENCE, "worker {worker} is not back");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    began.elapsed()
}

/// The time that each worker computed.
async fn shares(scheduler: &Process, servers: Servers<'_>) -> String {
    let metrics = Metrics::parse(&get(scheduler.admin, "/metrics").await.text);
    let tritons = (0..servers.tritons.len()).map(|nth| format!("triton-{nth}"));
    let names = tritons.chain(servers.workers.iter().map(|(name, _)| (*name).to_owned()));
    let shares = names.map(|name| {
        let busy = metrics.total("switchyard_worker_busy_seconds_total", &[("worker", &name)]);
        format!("{name} {busy:.2}")
    });
    shares.collect::<Vec<_>>().join(", ")
}

// === impl Measured ===

impl Measured {
    fn new(name: &'static str, tally: Tally) -> Self {
        Self { name, tally }
    }

    /// The goodput, in times of another one's.
    fn times(&self, other: &Self) -> f64 {
        self.tally.in_time as f64 / other.tally.in_time.max(1) as f64
    }

    fn print(&self, round: u64) {
        let Tally {
            sent,
            in_time,
            late,
            refused,
            ..
        } = self.tally;
        let accuracy = [FAST, SLOW]
            .map(|model| model.accuracy * self.tally.share(model))
            .iter()
            .sum::<f64>();
        println!(
            "{round} | {} | {sent} | {:.1} | {:.1}% | {accuracy:.3} | {late} | {refused} | {} | {:?}",
            self.name,
            in_time as f64 / ROUND.as_secs_f64(),
            100.0 * in_time as f64 / sent as f64,
            self.tally.lost.len(),
            self.tally.longest
        );
    }
}
