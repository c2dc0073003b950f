//! A shadow sees the windows of the pool's policy, is compared with it, and changes nothing.

use std::fs;
use std::path::Path;

use switchyard_server::shadow::ShadowStatus;
use tempfile::TempDir;

use super::fixture::{guest, policy};
use super::load::Load;
use super::test_bed::{Setup, TestBed};

fn shadow(file: &Path) -> String {
    format!("shadow = {{ policy = \"{}\" }}", file.display())
}

/// Waits for the shadow to be as wanted.
async fn until(
    test_bed: &TestBed,
    what: &str,
    wanted: impl Fn(&ShadowStatus) -> bool,
) -> ShadowStatus {
    let is_there = |shadow: &Option<ShadowStatus>| shadow.as_ref().is_some_and(&wanted);
    let pool = test_bed.until(what, |pool| is_there(&pool.shadow)).await;
    pool.shadow.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_of_the_same_policy_would_do_the_same() {
    let policies = [
        ("fcfs@", policy("fcfs")),
        // Active and shadow are each sent the workers that changed since their own last window.
        ("fleet-changed@", guest("fleet-changed")),
    ];
    for (label, component) in policies {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("candidate.wasm");
        fs::write(&file, &component).unwrap();
        let setup = Setup::new("twin").policy(component);
        let test_bed = setup.lines(&shadow(&file)).start().await;
        let load = Load::start(test_bed.http, 2);
        load.answered_by(label, 50).await;
        let found = until(&test_bed, "windows", |shadow| shadow.windows >= 50).await;
        load.stop().await;
        assert_eq!(found.identical, found.windows, "{found:#?}");
        assert!(found.differences.is_empty());
        assert!(found.policy.unwrap().starts_with(label));
        test_bed.settled().await;
        test_bed.stop().await;
    }
}

/// It also gets evidence, which it asks for and the active policy does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_is_compared_and_not_obeyed() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("candidate.wasm");
    fs::write(&file, policy("sneakpeek")).unwrap();
    let recorded = folder.path().join("pool.rec");
    let lines = format!(
        "{}\nrecord = {{ file = \"{}\" }}",
        shadow(&file),
        recorded.display()
    );
    let setup = Setup::new("shadowed").policy(policy("fcfs"));
    let test_bed = setup.lines(&lines).start().await;
    let load = Load::start(test_bed.http, 4);
    let found = until(&test_bed, "a difference", |shadow| {
        shadow.windows >= 100 && !shadow.differences.is_empty()
    })
    .await;
    let tally = load.stop().await;
    assert!(found.policy.as_deref().unwrap().starts_with("sneakpeek@"));
    assert_eq!(found.failed, 0, "{found:#?}");
    assert_eq!(found.identical + found.different, found.windows);
    assert!(found.active.requests + found.shadow.requests > 0);
    let request = &found.differences.back().unwrap()["requests"][0];
    assert!(request["active"].is_object() && request["shadow"].is_object());
    // Every answer is by the active policy.
    let mut by = tally.by_policy.keys();
    assert!(by.all(|by| by.starts_with("fcfs@")), "{tally:?}");
    let counted = test_bed.metrics().await;
    let different = [("result", "different")];
    assert!(counted.sum("switchyard_shadow_windows_total", &different) > 0);

    // A version that is no policy changes nothing; one that traps is counted; none at all is said.
    fs::write(&file, b"\0asm\x0d\0\x01\0 no").unwrap();
    let refused = until(&test_bed, "a refusal", |shadow| shadow.error.is_some()).await;
    assert_eq!(refused.policy, found.policy);
    fs::write(&file, guest("traps")).unwrap();
    let load = Load::start(test_bed.http, 2);
    let trapped = until(&test_bed, "traps", |shadow| shadow.failed >= 5).await;
    assert_eq!(trapped.windows, trapped.failed);
    fs::remove_file(&file).unwrap();
    until(&test_bed, "nobody", |shadow| shadow.policy.is_none()).await;
    load.answered_by("fcfs@", 20).await;
    load.stop().await;
    let pool = test_bed.settled().await;
    assert!(pool.driver.faults.is_empty(), "{pool:#?}");
    test_bed.stop().await;

    // The windows that were recorded meanwhile show more than fcfs wants, and it is not shown it.
    let wasm = folder.path().join("fcfs.wasm");
    fs::write(&wasm, policy("fcfs")).unwrap();
    let words = ["replay", recorded.to_str().unwrap(), "--json", "--policy"];
    let output = super::binary::switchyard()
        .args(words)
        .arg(&wasm)
        .output()
        .unwrap();
    let replayed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(replayed["identical"], replayed["windows"], "{replayed:#}");
}

/// It takes half a second for every window, and the pool serves as if it were not there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_waits_for_a_shadow() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("candidate.wasm");
    fs::write(&file, guest("loops")).unwrap();
    let setup = Setup::new("slow-shadow").policy(policy("fcfs"));
    let test_bed = setup.lines(&shadow(&file)).start().await;
    let load = Load::start(test_bed.http, 2);
    until(&test_bed, "a first window", |shadow| shadow.failed >= 1).await;
    // More windows than can wait for it.
    load.answered_by("fcfs@", 600).await;
    let tally = load.stop().await;
    assert!(tally.failed.is_empty(), "{tally:?}");
    let counted = test_bed.metrics().await;
    let missed = [("result", "missed")];
    assert!(counted.sum("switchyard_shadow_windows_total", &missed) > 0);
    let found = test_bed.pool().await.shadow.unwrap();
    assert_eq!(found.failed, found.windows);
    test_bed.settled().await;
    test_bed.stop().await;
}
