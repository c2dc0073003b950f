//! A policy is replaced while requests come without pause.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use super::fixture::policy;
use super::load::Load;
use super::test_bed::{Setup, TestBed};
use switchyard_policy::CodeTier;
use switchyard_server::admin::PoolReport;
use switchyard_server::policies::SwapResult;
use tempfile::TempDir;

/// Ways to replace a file.
#[derive(Clone, Copy, Debug)]
enum How {
    /// Written under another name, then renamed.
    Rename,
    /// Written over it.
    Overwrite,
    /// Written over it in pieces, with pauses in which the file is not whole.
    Slowly,
    /// A link that is moved to another target, as configuration managers do.
    Relink,
}

const WAYS: [How; 4] = [How::Rename, How::Overwrite, How::Slowly, How::Relink];

impl How {
    async fn put(self, test_bed: &TestBed, component: &[u8]) {
        match self {
            Self::Rename => test_bed.replace(component),
            Self::Overwrite => test_bed.overwrite(component),
            Self::Slowly => slowly(&test_bed.policy, component).await,
            Self::Relink => relink(&test_bed.policy, component),
        }
    }
}

/// A slow disk or network: the pauses are longer than the watcher's debounce.
async fn slowly(file: &Path, component: &[u8]) {
    File::create(file).unwrap();
    for piece in component.chunks(component.len() / 3 + 1) {
        let mut file = OpenOptions::new().append(true).open(file).unwrap();
        file.write_all(piece).unwrap();
        drop(file);
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

/// Each version in its own folder, which the server does not watch.
fn relink(file: &Path, component: &[u8]) {
    let folder = TempDir::new_in(file.parent().unwrap()).unwrap().keep();
    let target = folder.join("version.wasm");
    fs::write(&target, component).unwrap();
    let link = file.with_extension("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    fs::rename(&link, file).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_is_replaced_under_load_and_every_request_is_answered_once() {
    let labels = ["fcfs@", "sneakpeek@"];
    let components = [policy("fcfs"), policy("sneakpeek")];
    let test_bed = Setup::new("swaps")
        .policy(components[0].clone())
        .start()
        .await;
    let load = Load::start(test_bed.http, 4);
    load.answered_by(labels[0], 20).await;

    let mut swaps = 1;
    for way in WAYS {
        for next in [1, 0] {
            way.put(&test_bed, &components[next]).await;
            swaps += 1;
            let swap = test_bed.swap_number(swaps).await;
            assert_eq!(swap.result, SwapResult::Switched, "{way:?}: {swap:?}");
            assert!(swap.policy.starts_with(labels[next]), "{way:?}: {swap:?}");
            assert!(swap.compile_us > 0 && swap.validate_us > 0, "{swap:?}");
            assert!(swap.windows > 0, "tried on recorded windows: {swap:?}");
            load.answered_by(labels[next], 20).await;
        }
    }
    let tally = load.stop().await;
    let both = tally.by(labels[0]) + tally.by(labels[1]);
    assert_eq!(both, tally.sent, "nobody else decided: {tally:?}");

    let pool = test_bed.settled().await;
    assert_eq!(pool.driver.accepted, tally.sent);
    assert_eq!(pool.driver.faults.len(), 0, "{:?}", pool.driver.last_fault);
    assert_eq!(
        pool.policies.swaps.len(),
        swaps,
        "{:#?}",
        pool.policies.swaps
    );
    assert!(pool.policies.active.unwrap().policy.starts_with(labels[0]));
    // Two versions, however often they took turns.
    let history: Vec<_> = pool
        .policies
        .history
        .iter()
        .map(|v| v.policy.as_str())
        .collect();
    assert_eq!(history.len(), 2, "{history:?}");

    let metrics = test_bed.metrics().await;
    let switched = metrics.sum("switchyard_policy_swaps_total", &[("result", "switched")]);
    assert_eq!(switched, swaps as i64);
    assert_eq!(
        metrics.sum("switchyard_policy_swaps_total", &[]),
        swaps as i64
    );
    for label in labels {
        let name = "switchyard_window_seconds_count";
        // Without its version: a series that was left behind would stay for ever.
        let policy = label.trim_end_matches('@');
        let windows = metrics.sum(name, &[("policy", policy)]);
        assert!(windows > 0, "{label}: {metrics:?}");
    }
    let logged = test_bed.logged("policy switched");
    assert_eq!(logged.len(), swaps);
    for (line, swap) in logged.iter().zip(&pool.policies.swaps) {
        assert_eq!(line["policy"], *swap.policy);
        assert_eq!(line["compile_us"], swap.compile_us);
        assert_eq!(line["validate_us"], swap.validate_us);
        assert_eq!(line["switch_us"], swap.switch_us);
    }
    test_bed.stop().await;
}

/// Waits until the policy runs optimised code, which is then kept.
async fn optimised(test_bed: &TestBed) {
    let optimised = |pool: &PoolReport| pool.policies.code == CodeTier::Optimized;
    test_bed.until("optimised code", optimised).await;
}

/// Only x86-64 has a baseline compiler.
#[cfg(target_arch = "x86_64")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn optimised_code_takes_the_place_of_baseline_code_without_a_swap() {
    let test_bed = Setup::new("tiers").policy(policy("fcfs")).start().await;
    let load = Load::start(test_bed.http, 2);
    for (swaps, label) in [(1, "fcfs@"), (2, "sneakpeek@")] {
        let swap = test_bed.swap_number(swaps).await;
        assert_eq!((swap.code, swap.cached), (CodeTier::Baseline, false));
        optimised(&test_bed).await;
        load.answered_by(label, 20).await;
        if swaps == 1 {
            test_bed.replace(&policy("sneakpeek"));
        }
    }
    // Compiled before: at once in optimised code.
    test_bed.replace(&policy("fcfs"));
    let swap = test_bed.swap_number(3).await;
    assert_eq!((swap.code, swap.cached), (CodeTier::Optimized, true));

    let tally = load.stop().await;
    let both = tally.by("fcfs@") + tally.by("sneakpeek@");
    assert_eq!(both, tally.sent, "{tally:?}");
    let pool = test_bed.settled().await;
    assert_eq!(pool.policies.swaps.len(), 3, "{:#?}", pool.policies.swaps);
    assert_eq!(pool.driver.faults.len(), 0, "{:?}", pool.driver.last_fault);
    assert_eq!(test_bed.logged("policy optimised").len(), 2);
    test_bed.stop().await;
}

/// Settings are part of a policy: a change of `NAME.toml` is a new version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_next_to_the_component_are_followed() {
    let test_bed = Setup::new("settings").policy(policy("fcfs")).start().await;
    let load = Load::start(test_bed.http, 2);
    load.answered_by("fcfs@", 5).await;

    let settings = test_bed.policy.with_extension("toml");
    fs::write(&settings, "[variants]\nheart = \"cnn-small\"\n").unwrap();
    let swap = test_bed.swap_number(2).await;
    assert_eq!(swap.result, SwapResult::Switched, "{swap:?}");
    let mut client = test_bed.client().await;
    let answer = client.infer(super::fixture::beat(0)).await.json();
    assert_eq!(answer["model_version"], "cnn-small");

    fs::write(&settings, "[variants]\nhaert = \"cnn-small\"\n").unwrap();
    let swap = test_bed.swap_number(3).await;
    assert_eq!(swap.result, SwapResult::Refused, "{swap:?}");
    let reason = swap.error.unwrap();
    assert!(
        reason.contains("configure") && reason.contains("haert"),
        "{reason}"
    );
    let answer = client.infer(super::fixture::beat(1)).await.json();
    assert_eq!(
        answer["model_version"], "cnn-small",
        "the old settings hold"
    );

    load.stop().await;
    test_bed.settled().await;
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_served_before_can_be_had_back() {
    let test_bed = Setup::new("rollback").policy(policy("fcfs")).start().await;
    let load = Load::start(test_bed.http, 2);
    load.answered_by("fcfs@", 5).await;
    test_bed.replace(&policy("sneakpeek"));
    load.answered_by("sneakpeek@", 5).await;
    // Answers may come before the swap is written down.
    test_bed.swap_number(2).await;
    let later = test_bed.pool().await.policies.active.unwrap();

    let swap = test_bed.policies.rollback(None).await.unwrap();
    assert_eq!(swap.result, SwapResult::RolledBack);
    load.answered_by("fcfs@", 5).await;
    let digits = later.hash[..8].to_owned();
    let swap = test_bed.policies.rollback(Some(digits)).await.unwrap();
    assert!(swap.policy.starts_with("sneakpeek@"), "{swap:?}");
    load.answered_by("sneakpeek@", 5).await;
    let refused = test_bed.policies.rollback(Some("xyz".to_owned())).await;
    let reason = refused.unwrap_err().to_string();
    assert!(
        reason.contains("no single hash begins with `xyz`"),
        "{reason}"
    );
    load.answered_by("sneakpeek@", 5).await;

    load.stop().await;
    let pool = test_bed.settled().await;
    assert_eq!(pool.policies.active, Some(later));
    let rolled_back = [("result", "rolled_back")];
    let metrics = test_bed.metrics().await;
    let swaps = metrics.sum("switchyard_policy_swaps_total", &rolled_back);
    assert_eq!(swaps, 2);
    test_bed.stop().await;
}

/// Also by the next process: the code is kept in a folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compiled_component_is_not_compiled_again() {
    let cache = TempDir::new().unwrap();
    let lines = format!("cache = \"{}\"", cache.path().display());
    let setup = Setup::new("cached").policy(policy("fcfs"));
    let setup = setup.policies(&lines);
    let test_bed = setup.clone().start().await;
    assert!(!test_bed.swap_number(1).await.cached);
    optimised(&test_bed).await;
    test_bed.replace(&policy("sneakpeek"));
    assert!(!test_bed.swap_number(2).await.cached);
    optimised(&test_bed).await;
    test_bed.replace(&policy("fcfs"));
    assert!(test_bed.swap_number(3).await.cached);
    let answer = test_bed.client().await.infer(super::fixture::beat(0)).await;
    assert!(answer.policy().starts_with("fcfs@"), "{answer:?}");
    test_bed.stop().await;

    let test_bed = setup.start().await;
    assert!(test_bed.swap_number(1).await.cached);
    let answer = test_bed.client().await.infer(super::fixture::beat(0)).await;
    assert!(answer.policy().starts_with("fcfs@"), "{answer:?}");
    test_bed.stop().await;
}
