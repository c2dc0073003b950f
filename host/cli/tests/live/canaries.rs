//! Canaries on the real server: a candidate gets its share, and the verdict is carried out.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use switchyard_server::admin::{PoolReport, ServerStatus};
use switchyard_server::policies::{Swap, SwapResult};

use super::binary::Process;
use super::ctl::{TOKEN, ctl, operators, put, refused, said};
use super::fixture::{fixture, guest, policy};
use super::load::Load;
use super::test_bed::PATIENCE;

/// Both variants answer every request in time, so that their qualities make the difference.
const SMALL: &str = "[variants]\nheart = \"cnn-small\"\n";
const LARGE: &str = "[variants]\nheart = \"resnet\"\n";

/// Much of the requests and short slots: tests have little time.
const QUICK: [&str; 4] = ["--share", "50%", "--slot", "20ms"];

/// The zoo of the tests, whose models are hardly trained, with other qualities on their cards.
fn graded(folder: &Path, qualities: [f64; 2]) -> PathBuf {
    let zoo = folder.join("zoo");
    copy(&fixture().zoo, &zoo);
    for (variant, quality) in ["cnn-small", "resnet"].into_iter().zip(qualities) {
        let card = zoo.join("heart").join(variant).join("model.toml");
        let text = fs::read_to_string(&card).unwrap();
        let changed = text.lines().map(|line| match line.split_once(" = ") {
            Some(("accuracy", _)) => format!("accuracy = {quality}"),
            Some(("confusion", _)) => String::new(),
            _ => line.to_owned(),
        });
        fs::write(&card, changed.collect::<Vec<_>>().join("\n")).unwrap();
    }
    zoo
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

fn pool(server: &Process) -> PoolReport {
    let status = said(&ctl(server, TOKEN, &["status", "--json"]));
    let status: ServerStatus = serde_json::from_str(&status).unwrap();
    status.pools.into_iter().next().unwrap()
}

fn quality(pool: &PoolReport, member: usize) -> f64 {
    let canary = pool.policies.canary.as_ref().unwrap();
    canary.report.members[member].quality.unwrap()
}

fn close(got: f64, wanted: f64) {
    assert!((got - wanted).abs() < 0.01, "{got} is not {wanted}");
}

/// The pool once its canary has ended.
async fn ended(server: &Process) -> PoolReport {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let pool = pool(server);
        let canary = pool.policies.canary.as_ref().unwrap();
        if !canary.runs {
            return pool;
        }
        assert!(Instant::now() < give_up, "{canary:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn canary(server: &Process, more: &[&str]) -> String {
    let arguments = [&["canary", "next"], &QUICK[..], more].concat();
    said(&ctl(server, TOKEN, &arguments))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_better_candidate_is_promoted_a_worse_one_rolled_back_and_no_request_is_lost() {
    let (folder, setup) = operators();
    let server = Process::serve(&setup.zoo(&graded(folder.path(), [0.60, 0.90])));
    server.wait_for_line("policy switched");
    let live = server.policy();
    let own_settings = live.with_extension("toml");
    fs::write(&own_settings, SMALL).unwrap();
    put(&live, "next", &policy("fcfs"), Some(LARGE));
    let give_up = Instant::now() + PATIENCE;
    while pool(&server).policies.swaps.len() < 2 {
        assert!(Instant::now() < give_up, "the settings are followed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let load = Load::start(server.http, 4);
    load.answered_by("fcfs@", 20).await;

    let began = canary(&server, &[]);
    assert!(began.contains("canary: fcfs@"), "{began}");
    // The same order a second time changes nothing.
    canary(&server, &[]);
    let better = ended(&server).await;
    let began = |swap: &&Swap| swap.result == SwapResult::CanaryBegan;
    assert_eq!(better.policies.swaps.iter().filter(began).count(), 1);
    close(quality(&better, 1), 0.6);
    close(quality(&better, 2), 0.9);
    let last = better.policies.swaps.back().unwrap();
    assert_eq!(
        (last.result, last.by.as_str()),
        (SwapResult::Promoted, "anna")
    );
    assert!(
        last.reason.contains("promoted: better; utility +0.3"),
        "{last:?}"
    );
    assert_eq!(fs::read_to_string(&own_settings).unwrap(), LARGE);

    put(&live, "next", &policy("fcfs"), Some(SMALL));
    canary(&server, &[]);
    let worse = ended(&server).await;
    let last = worse.policies.swaps.back().unwrap();
    assert_eq!(last.result, SwapResult::Kept, "{last:?}");
    assert!(
        last.reason.contains("rolled back: worse; utility -0.3"),
        "{last:?}"
    );
    assert_eq!(fs::read_to_string(&own_settings).unwrap(), LARGE);
    load.answered_by("fcfs@", 20).await;
    load.stop().await;
}

/// Ten trials of a tenth of the requests, for some four minutes: five candidates that are 5 % worse, and
/// five that equal the policy. `cargo test --workspace --test live -- --ignored trials --nocapture`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes, and a machine that does nothing else"]
async fn ten_trials() {
    let (folder, setup) = operators();
    let server = Process::serve(&setup.zoo(&graded(folder.path(), [0.855, 0.90])));
    server.wait_for_line("policy switched");
    let live = server.policy();
    put(&live, "live", &policy("fcfs"), Some(LARGE));
    said(&ctl(&server, TOKEN, &["swap", "live"]));
    let load = Load::start(server.http, 4);
    load.answered_by("fcfs@", 20).await;
    for (settings, wanted) in [
        (SMALL, "rolled back: worse"),
        (LARGE, "rolled back: no difference"),
    ] {
        for trial in 0..5 {
            put(&live, "next", &policy("fcfs"), Some(settings));
            let before = load.tally().sent;
            said(&ctl(&server, TOKEN, &["canary", "next", "--within", "30s"]));
            let pool = ended(&server).await;
            let canary = pool.policies.canary.as_ref().unwrap();
            let seconds = canary.report.ran_for.as_secs_f64();
            let rate = (load.tally().sent - before) as f64 / seconds;
            let reason = &pool.policies.swaps.back().unwrap().reason;
            println!("trial {trial}, {rate:.0} requests per second, {seconds:.1} s: {reason}");
            assert!(reason.contains(wanted), "{reason}");
        }
    }
    load.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_that_traps_is_rolled_back_and_every_request_is_answered() {
    let (_folder, setup) = operators();
    let server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    put(&server.policy(), "next", &guest("traps"), None);
    let load = Load::start(server.http, 4);
    load.answered_by("fcfs@", 20).await;
    // It passes the trial, whose windows it does not trap in, or is refused there.
    let output = ctl(&server, TOKEN, &["canary", "next", "--share", "0.5"]);
    if output.status.success() {
        let pool = ended(&server).await;
        let last = pool.policies.swaps.back().unwrap();
        assert!(last.reason.contains("rolled back: faults"), "{last:?}");
    } else {
        assert!(refused(&output).contains("trap"), "{output:?}");
    }
    load.answered_by("fcfs@", 20).await;
    load.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_ends_a_canary() {
    let (_folder, setup) = operators();
    let server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    put(&server.policy(), "next", &policy("stability"), None);
    let load = Load::start(server.http, 4);
    load.answered_by("fcfs@", 20).await;
    let rules = ["--promote-if", "never", "--rollback-if", "never"];

    canary(&server, &rules);
    // Both answer, under their own labels.
    load.answered_by("stability@", 20).await;
    load.answered_by("fcfs@", 20).await;
    let status = said(&ctl(&server, TOKEN, &["status"]));
    assert!(status.contains("canary of stability@"), "{status}");
    assert!(status.contains("baseline"), "{status}");
    let kept = said(&ctl(&server, TOKEN, &["rollback"]));
    assert!(kept.contains("kept: fcfs@"), "{kept}");
    assert!(!pool(&server).policies.canary.unwrap().runs);

    canary(&server, &rules);
    let promoted = said(&ctl(&server, TOKEN, &["promote"]));
    assert!(promoted.contains("promoted: stability@"), "{promoted}");
    assert_eq!(fs::read(server.policy()).unwrap(), policy("stability"));
    load.answered_by("stability@", 20).await;

    // A changed file ends a canary too.
    put(&server.policy(), "next", &policy("fcfs"), None);
    canary(&server, &rules);
    fs::write(server.policy(), policy("sneakpeek")).unwrap();
    load.answered_by("sneakpeek@", 20).await;
    assert!(!pool(&server).policies.canary.unwrap().runs);
    load.stop().await;
    let audit: Vec<Value> = server.lines("ordered");
    assert!(audit.iter().all(|line| line["by"] == "anna"), "{audit:?}");
    assert_eq!(audit.len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_begins_a_shadow_promotes_it_and_ends_it() {
    let (_folder, setup) = operators();
    let server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    put(&server.policy(), "next", &policy("stability"), None);
    let load = Load::start(server.http, 2);
    load.answered_by("fcfs@", 20).await;
    let none = refused(&ctl(&server, TOKEN, &["shadow", "nxet"]));
    assert!(
        none.contains("nxet.wasm: there is no such component"),
        "{none}"
    );

    let began = said(&ctl(&server, TOKEN, &["shadow", "next"]));
    assert!(began.contains("shadow: next is asked"), "{began}");
    let give_up = Instant::now() + PATIENCE;
    while pool(&server)
        .shadow
        .is_none_or(|shadow| shadow.windows < 20)
    {
        assert!(Instant::now() < give_up, "the shadow is asked");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let promoted = said(&ctl(&server, TOKEN, &["promote"]));
    assert!(promoted.contains("swapped: stability@"), "{promoted}");
    load.answered_by("stability@", 20).await;
    said(&ctl(&server, TOKEN, &["shadow", "--off"]));
    assert!(pool(&server).shadow.is_none());
    load.stop().await;
}

/// A promotion installs the version that was compared, or none.
#[test]
fn a_shadow_with_other_settings_is_not_promoted() {
    let (_folder, setup) = operators();
    let shadow = "[pool.shadow]\npolicy = \"next\"\nsettings = { policy = \"all-final\" }\n";
    let server = Process::serve(&setup.lines(shadow));
    server.wait_for_line("policy switched");
    put(&server.policy(), "next", &policy("stability"), None);
    server.wait_for_line("shadow loaded");
    let other = refused(&ctl(&server, TOKEN, &["promote"]));
    assert!(other.contains("a promotion would install"), "{other}");
    let settings = server.policy().with_file_name("next.toml");
    fs::write(settings, "policy = \"all-final\"\n").unwrap();
    let promoted = said(&ctl(&server, TOKEN, &["promote"]));
    assert!(promoted.contains("swapped: "), "{promoted}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_a_canary_out_of_range_are_refused() {
    let (_folder, setup) = operators();
    let server = Process::serve(&setup);
    server.wait_for_line("policy switched");
    put(&server.policy(), "next", &policy("stability"), None);
    let wrong = refused(&ctl(&server, TOKEN, &["canary", "next", "--share", "60%"]));
    assert!(
        wrong.contains("canary.share: 0.6 is not within 0 (exclusive) to 0.5"),
        "{wrong}"
    );
    let none = refused(&ctl(&server, TOKEN, &["canary", "nxet"]));
    assert!(none.contains("nxet.wasm"), "{none}");
}
