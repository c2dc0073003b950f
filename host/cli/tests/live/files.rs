//! A policy file that goes away, is cut off, or was never a policy.

use std::fs;

use super::client::get;
use super::fixture::{beat, guest, policy};
use super::load::Load;
use super::test_bed::{FALLBACK, Setup};
use switchyard_server::policies::SwapResult;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_file_a_policy_serves_no_more() {
    let test_bed = Setup::new("removed").policy(policy("fcfs")).start().await;
    let load = Load::start(test_bed.http, 2);
    load.answered_by("fcfs@", 10).await;

    fs::remove_file(&test_bed.policy).unwrap();
    load.answered_by(FALLBACK, 10).await;
    let pool = test_bed.pool().await;
    assert!(pool.driver.policy.starts_with(FALLBACK), "{pool:#?}");
    assert_eq!(pool.policies.active, None);
    let last = pool.policies.swaps.back().unwrap();
    assert_eq!(last.result, SwapResult::Removed);
    assert_eq!(last.file, test_bed.policy.display().to_string());
    let removed = [("result", "removed")];
    assert_eq!(
        test_bed
            .metrics()
            .await
            .sum("switchyard_policy_swaps_total", &removed),
        1
    );
    assert_eq!(
        test_bed
            .logged("policy file removed: the fallback serves")
            .len(),
        1
    );
    assert_eq!(
        get(test_bed.http, "/v2/health/ready").await.status,
        200,
        "it serves"
    );

    test_bed.replace(&policy("sneakpeek"));
    load.answered_by("sneakpeek@", 10).await;
    load.stop().await;
    test_bed.settled().await;
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_incomplete_component_replaces_nothing() {
    let fcfs = policy("fcfs");
    let cut = &fcfs[..fcfs.len() / 2];
    let core_module = b"\0asm\x01\0\0\0".as_slice();
    let broken = [&fcfs[..8], b"\x01\x02\x00\x00".as_slice()].concat();
    let files: [(&str, &[u8], &str); 5] = [
        ("text", b"#!/bin/sh\n", "compile: not a WebAssembly file"),
        (
            "a core module",
            core_module,
            "compile: a core module, not a component",
        ),
        (
            "half a file",
            cut,
            &format!("compile: the file is cut off after {} bytes", cut.len()),
        ),
        ("no code", &broken, "compile: not a valid component"),
        (
            "another interface",
            &guest("layouts"),
            "contract: it does not export",
        ),
    ];
    let test_bed = Setup::new("no-policy").policy(fcfs.clone()).start().await;
    let load = Load::start(test_bed.http, 2);
    load.answered_by("fcfs@", 10).await;
    for (count, (what, bytes, words)) in (2..).zip(files) {
        test_bed.overwrite(bytes);
        let swap = test_bed.swap_number(count).await;
        assert_eq!(swap.result, SwapResult::Refused, "{what}: {swap:?}");
        let reason = swap.error.unwrap();
        assert!(reason.contains(words), "{what}: {reason}");
        assert!(
            reason.contains(&*test_bed.policy.to_string_lossy()),
            "{what}: {reason}"
        );
        load.answered_by("fcfs@", 5).await;
    }
    let tally = load.stop().await;
    assert_eq!(tally.by("fcfs@"), tally.sent, "{tally:?}");
    assert_eq!(
        test_bed
            .logged("policy refused: the old one serves on")
            .len(),
        files.len()
    );
    test_bed.settled().await;
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_policy_says_so_serves_and_takes_one_when_it_comes() {
    let test_bed = Setup::new("none-yet").start_unready().await;
    let swap = test_bed.swap_number(1).await;
    assert_eq!(swap.result, SwapResult::Refused);
    let waits = |status: &switchyard_server::admin::ServerStatus| status.waits_for.clone().unwrap();
    let give_up = std::time::Instant::now() + super::test_bed::PATIENCE;
    let reason = loop {
        let reason = waits(&test_bed.status().await);
        if reason.contains("no policy") {
            break reason;
        }
        assert!(std::time::Instant::now() < give_up, "{reason}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert!(reason.contains("active.wasm"), "{reason}");
    let ready = get(test_bed.http, "/v2/health/ready").await;
    assert_eq!(ready.status, 503);
    assert!(ready.error().contains("no policy"), "{ready:?}");
    let folder = test_bed.policy.parent().unwrap();
    let folder = folder.to_str().unwrap();
    assert!(
        !ready.text.contains(folder),
        "a path of the machine: {ready:?}"
    );
    let mut client = test_bed.client().await;
    assert!(client.infer(beat(0)).await.policy().starts_with(FALLBACK));

    test_bed.overwrite(&policy("fcfs"));
    assert_eq!(test_bed.swap_number(2).await.result, SwapResult::Switched);
    assert_eq!(get(test_bed.http, "/v2/health/ready").await.status, 200);
    assert!(client.infer(beat(1)).await.policy().starts_with("fcfs@"));
    test_bed.settled().await;
    test_bed.stop().await;
}

/// The system may open it soon: a link to itself stands for a process out of descriptors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_cannot_be_opened_for_now_is_tried_again() {
    let test_bed = Setup::new("again").policy(guest("good")).start().await;
    let other = test_bed.policy.with_file_name("other.wasm");
    std::os::unix::fs::symlink(&other, &other).unwrap();
    let swap = test_bed.policies.swap(other.clone());
    assert!(swap.await.is_err());
    assert_eq!(test_bed.swap_number(2).await.result, SwapResult::Refused);
    let fcfs = other.with_extension("part");
    std::fs::write(&fcfs, policy("fcfs")).unwrap();
    std::fs::rename(&fcfs, &other).unwrap();
    let swap = test_bed.swap_number(3).await;
    assert_eq!(swap.result, SwapResult::Switched, "{swap:?}");
    test_bed.stop().await;
}

/// As after a restart with a bad file: while the server runs, a bad file does not make it unready.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_with_a_policy_that_does_not_load_is_ready_and_the_fallback_serves() {
    let setup = Setup::new("bad-start").policy(b"#!/bin/sh\n".to_vec());
    let test_bed = setup.start().await;
    let swap = test_bed.swap_number(1).await;
    assert_eq!(swap.result, SwapResult::Refused);
    assert!(swap.error.unwrap().contains("not a WebAssembly file"));
    let give_up = std::time::Instant::now() + super::test_bed::PATIENCE;
    while get(test_bed.http, "/v2/health/ready").await.status != 200 {
        assert!(std::time::Instant::now() < give_up, "not ready");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let logged = test_bed.logged("policy refused: the fallback serves");
    assert_eq!(logged.len(), 1, "{logged:?}");
    let mut client = test_bed.client().await;
    assert!(client.infer(beat(0)).await.policy().starts_with(FALLBACK));

    test_bed.overwrite(&policy("fcfs"));
    assert_eq!(test_bed.swap_number(2).await.result, SwapResult::Switched);
    assert!(client.infer(beat(1)).await.policy().starts_with("fcfs@"));
    test_bed.settled().await;
    test_bed.stop().await;
}

/// A FIFO under the policy's name: the old policy serves on, the next file is loaded, and the server
/// ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fifo_under_the_policys_name_stops_neither_the_watcher_nor_the_end() {
    let test_bed = Setup::new("fifo").policy(policy("fcfs")).start().await;
    fs::remove_file(&test_bed.policy).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(&test_bed.policy)
        .status();
    assert!(made.unwrap().success());
    let refused = loop {
        let swaps = test_bed.pool().await.policies.swaps;
        match swaps.into_iter().find(|s| s.result == SwapResult::Refused) {
            Some(swap) => break swap,
            None => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    };
    assert!(
        refused
            .error
            .unwrap()
            .contains("it is a FIFO, must be a regular file")
    );
    fs::remove_file(&test_bed.policy).unwrap();
    fs::write(&test_bed.policy, policy("sneakpeek")).unwrap();
    let load = Load::start(test_bed.http, 1);
    load.answered_by("sneakpeek@", 5).await;
    load.stop().await;
    test_bed.settled().await;
    test_bed.stop().await;
}
