//! Hostile components under the watched name of a real server, one after the other, while clients send
//! requests: every request is answered, the reason is logged and counted, and the good policy serves again.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use switchyard_server::admin::PoolReport;
use switchyard_server::policies::{Swap, SwapResult};

use super::binary::Process;
use super::client::get;
use super::fixture::policy;
use super::load::Load;
use super::metrics::Metrics;
use super::test_bed::{PATIENCE, Setup};
use crate::hostile_parts::{Ends, PARTS, hostile};

const BUDGET: Duration = Duration::from_millis(250);

/// Memory that the process may keep: compiled code that is dropped late, and the allocator's pages.
const KEPT_MIB: u64 = 128;

/// Rewrites of the policy's file, and the time between them.
const REWRITES: u32 = 600;
const REWRITE_EVERY: Duration = Duration::from_millis(5);

async fn started(pool: &'static str) -> Process {
    let lines = "window_budget_ms = 250\npatience_ms = 30";
    let setup = Setup::new(pool).policy(policy("fcfs")).lines(lines);
    let setup = setup.app("slo_ms = 20\nlate = \"serve\"");
    let start = tokio::task::spawn_blocking(move || {
        let process = Process::serve(&setup);
        process.wait_for_line("policy switched");
        process
    });
    start.await.unwrap()
}

async fn pool(process: &Process) -> PoolReport {
    let status = get(process.admin, "/admin/v1/status").await.json();
    serde_json::from_value(status["pools"][0].clone()).unwrap()
}

async fn swaps(process: &Process) -> i64 {
    let text = get(process.admin, "/metrics").await.text;
    Metrics::parse(&text).sum("switchyard_policy_swaps_total", &[])
}

/// Puts a file under the policy's name, in one step.
fn put(process: &Process, component: &[u8]) {
    let part = process.policy().with_extension("part");
    fs::write(&part, component).unwrap();
    fs::rename(&part, process.policy()).unwrap();
}

/// Puts a file there, and waits until the server has tried it.
async fn tried(process: &Process, component: &[u8]) -> Swap {
    let before = swaps(process).await;
    put(process, component);
    let give_up = Instant::now() + PATIENCE;
    while swaps(process).await == before {
        assert!(Instant::now() < give_up, "it is not tried");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    pool(process).await.policies.swaps.back().unwrap().clone()
}

fn faults(pool: &PoolReport) -> u64 {
    pool.driver.faults.values().sum()
}

fn check_turns(pool: &PoolReport) {
    let slowest = Duration::from_micros(pool.driver.slowest_turn_us);
    // A busy machine stops the thread for some of it.
    assert!(slowest <= 4 * BUDGET, "a turn of {slowest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hostile_component_is_contained_while_requests_are_answered() {
    let process = started("hostile").await;
    let load = Load::start(process.http, 3);
    load.answered_by("fcfs@", 50).await;
    let before = process.resident_mib();
    let (mut refused, mut taken_off) = (0, 0);
    for (name, part, text, ends) in &PARTS {
        let before = faults(&pool(&process).await);
        let swap = tried(&process, &hostile(part, text)).await;
        match (swap.result, ends) {
            (SwapResult::Refused, Ends::Refused(words) | Ends::Faults(_, words)) => {
                let reason = swap.error.unwrap();
                assert!(reason.contains(words), "{name}: {reason}");
                refused += 1;
            }
            // Its plans are empty: requests starve until it is taken off.
            (SwapResult::Switched, Ends::Serves | Ends::KeepsState(_) | Ends::TakesNoState(_)) => {
                load.answered_by("fcfs@", 5).await;
                let faults = faults(&pool(&process).await) - before;
                assert!(faults >= 5, "{name}: {faults} faults");
                taken_off += 1;
            }
            (result, _) => panic!("{name}: {result:?}: {:?}", swap.error),
        }
        load.answered_by("fcfs@", 5).await;
    }
    let tally = load.stop().await;
    let last = pool(&process).await;
    assert_eq!(
        (last.driver.imbalance, last.driver.accepted),
        (0, tally.sent)
    );
    check_turns(&last);
    let logged = process.lines("policy refused: the old one serves on");
    assert_eq!(logged.len(), refused, "{logged:?}");
    assert!(logged.iter().all(|line| line["error"].is_string()));
    let faulted = process.lines("policy fault");
    let off = faulted.iter().filter(|line| line["taken_off"] == true);
    assert_eq!(off.count(), taken_off, "{faulted:?}");
    let text = get(process.admin, "/metrics").await.text;
    let counted = Metrics::parse(&text);
    let counted = counted.sum("switchyard_policy_swaps_total", &[("result", "refused")]);
    assert_eq!(counted, refused as i64);
    let kept = process.resident_mib().saturating_sub(before);
    println!(
        "{} hostile components: {refused} refused, {taken_off} taken off; slowest turn {} us, {kept} MiB kept",
        PARTS.len(),
        last.driver.slowest_turn_us
    );
    assert!(kept < KEPT_MIB, "{kept} MiB are kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_rewrites_a_second_change_nothing_for_clients() {
    let process = started("rewrites").await;
    let load = Load::start(process.http, 2);
    load.answered_by("fcfs@", 20).await;
    let before = process.resident_mib();
    let (fcfs, sneakpeek) = (policy("fcfs"), policy("sneakpeek"));
    let versions = [
        &fcfs[..],
        &sneakpeek,
        &fcfs[..fcfs.len() / 2],
        b"no component",
    ];
    let mut ticks = tokio::time::interval(REWRITE_EVERY);
    for rewrite in 0..REWRITES {
        ticks.tick().await;
        let version = versions[rewrite as usize % versions.len()];
        fs::write(process.policy(), version).unwrap();
    }
    // Every look at the files found other ones: few of them held still.
    let tries = swaps(&process).await;
    assert!(tries < i64::from(REWRITES) / 4, "{tries} loads");
    let seen = load.tally().sent;
    put(&process, &sneakpeek);
    load.answered_by("sneakpeek@", 20).await;
    let tally = load.stop().await;
    assert!(seen > 50, "{tally:?}");
    let last = pool(&process).await;
    assert_eq!(
        (last.driver.imbalance, last.driver.accepted),
        (0, tally.sent)
    );
    check_turns(&last);
    let kept = process.resident_mib().saturating_sub(before);
    assert!(kept < KEPT_MIB, "{kept} MiB are kept");
}

/// A name, and the function that makes it.
type OddName = (&'static str, fn(&Path));

/// Removes the policy's file and makes something else under its name.
fn replaced(policy: &Path, make: impl FnOnce(&Path)) {
    fs::remove_file(policy).unwrap();
    make(policy);
}

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

fn link_to_itself(path: &Path) {
    symlink(path, path).unwrap();
}

fn endless(path: &Path) {
    symlink("/dev/zero", path).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_are_no_files_change_nothing_for_clients() {
    let process = started("odd-names").await;
    let load = Load::start(process.http, 2);
    load.answered_by("fcfs@", 20).await;
    let kinds: [OddName; 4] = [
        ("folder", |path| fs::create_dir(path).unwrap()),
        ("a link to itself", link_to_itself),
        ("a device", endless),
        ("FIFO", fifo),
    ];
    for (name, make) in kinds {
        replaced(&process.policy(), make);
        // Longer than a poll of the watcher.
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        let file = process.policy();
        match file.is_dir() {
            true => fs::remove_dir(&file).unwrap(),
            false => fs::remove_file(&file).unwrap(),
        }
        put(&process, &policy("sneakpeek"));
        load.answered_by("sneakpeek@", 5).await;
        put(&process, &policy("fcfs"));
        load.answered_by("fcfs@", 5).await;
        let last = pool(&process).await;
        assert_eq!(last.driver.imbalance, 0, "{name}");
        check_turns(&last);
    }
    load.stop().await;
}
