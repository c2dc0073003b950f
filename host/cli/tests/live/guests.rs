//! Components that misbehave, in a server that people use.

use super::client::Answer;
use super::fixture::{beat, guest, policy};
use super::load::Load;
use super::test_bed::{FALLBACK, Setup};
use switchyard_server::policies::SwapResult;

/// Guests that no trial lets through, with the phase that finds them, words of the reason, and
/// the fault that is counted where it failed a window.
const REFUSED: [(&str, &str, &str, Option<&str>); 12] = [
    (
        "loops",
        "validate",
        "overrun: schedule was cut",
        Some("overrun"),
    ),
    ("traps", "validate", "schedule trapped", Some("trap")),
    ("allocates", "validate", "memory", Some("memory")),
    (
        "overflows-stack",
        "validate",
        "overflowed its stack",
        Some("stack"),
    ),
    ("errs", "validate", "no plan for window", Some("failed")),
    ("malformed", "validate", "broke the contract", Some("trap")),
    ("unknown-worker", "validate", "worker 9999", Some("refused")),
    (
        "doubled",
        "validate",
        "its plan is refused",
        Some("refused"),
    ),
    (
        "garbage",
        "validate",
        "its plan is refused",
        Some("refused"),
    ),
    ("loops-in-configure", "configure", "overrun", None),
    ("asks-at-wrong-time", "configure", "artifact", None),
    ("layouts", "contract", "does not export", None),
];

/// Guests that a trial without windows lets through, and the fault of each window.
const FAULTY: [(&str, &str, &str); 8] = [
    ("loops", "overrun", "schedule was cut"),
    ("traps", "trap", "schedule trapped"),
    ("allocates", "memory", "the limit is"),
    ("overflows-stack", "stack", "overflowed its stack"),
    ("errs", "failed", "no plan for window"),
    ("malformed", "trap", "broke the contract"),
    ("unknown-worker", "refused", "9999"),
    ("doubled", "refused", "is named more than once"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_misbehaving_replacement_is_refused_and_the_old_policy_serves_on() {
    let test_bed = Setup::new("refusals").policy(policy("fcfs")).start().await;
    let load = Load::start(test_bed.http, 3);
    load.answered_by("fcfs@", 10).await;
    for (count, (name, phase, words, kind)) in (2..).zip(REFUSED) {
        let fault = kind.map_or(("kind", "none"), |kind| ("kind", kind));
        let before = test_bed
            .metrics()
            .await
            .sum("switchyard_policy_faults_total", &[fault]);
        test_bed.replace(&guest(name));
        let swap = test_bed.swap_number(count).await;
        assert_eq!(swap.result, SwapResult::Refused, "{name}: {swap:?}");
        let reason = swap.error.unwrap();
        assert!(reason.contains(words), "{name}: {reason}");
        assert!(reason.contains(&format!("{phase}: ")), "{name}: {reason}");
        let after = test_bed
            .metrics()
            .await
            .sum("switchyard_policy_faults_total", &[fault]);
        assert_eq!(
            after - before,
            i64::from(kind.is_some()),
            "{name}: {reason}"
        );
        load.answered_by("fcfs@", 5).await;
    }
    let tally = load.stop().await;
    assert_eq!(tally.by("fcfs@"), tally.sent, "{tally:?}");
    let pool = test_bed.settled().await;
    assert!(
        pool.policies
            .active
            .as_ref()
            .unwrap()
            .policy
            .starts_with("fcfs@")
    );
    assert_eq!(pool.driver.accepted, tally.sent);
    let refused = [("result", "refused")];
    let refused = test_bed
        .metrics()
        .await
        .sum("switchyard_policy_swaps_total", &refused);
    assert_eq!(refused, REFUSED.len() as i64);
    assert_eq!(pool.policies.swaps.len(), REFUSED.len() + 1);
    let logged = test_bed.logged("policy refused: the old one serves on");
    for (line, (_, _, words, _)) in logged.iter().zip(REFUSED) {
        assert!(line["error"].as_str().unwrap().contains(words), "{line}");
    }
    test_bed.stop().await;
}

/// At the start there are no recorded windows to try a policy on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_fails_its_windows_is_taken_off_and_the_fallback_serves() {
    for (name, kind, words) in FAULTY {
        // Memory runs out before time does, also where it is slow to be had.
        let lines = "window_budget_ms = 300\npolicy_memory_mb = 4";
        let test_bed = Setup::new("faults")
            .policy(guest(name))
            .app("late = \"serve\"")
            .lines(lines)
            .start()
            .await;
        let swaps = test_bed.pool().await.policies.swaps;
        assert_eq!(swaps[0].result, SwapResult::Switched, "{name}: {swaps:?}");

        let load = Load::start(test_bed.http, 2);
        test_bed
            .until("a policy taken off", |pool| {
                pool.driver.policy.starts_with(FALLBACK)
            })
            .await;
        load.answered_by(FALLBACK, 5).await;
        let pool = test_bed.pool().await;
        // The limit, and no window more.
        assert_eq!(pool.driver.faults.get(kind), Some(&5), "{name}: {pool:#?}");
        assert_eq!(pool.driver.faults.len(), 1, "{name}: {pool:#?}");
        let last = pool.driver.last_fault.unwrap();
        assert!(
            last.contains(name) && last.contains(words),
            "{name}: {last}"
        );
        let faults = test_bed
            .metrics()
            .await
            .sum("switchyard_policy_faults_total", &[("kind", kind)]);
        assert_eq!(faults, 5, "{name}");
        let logged = test_bed.logged("policy fault");
        let ours: Vec<_> = logged
            .iter()
            .filter(|line| {
                line["policy"]
                    .as_str()
                    .unwrap()
                    .starts_with(&format!("{name}@"))
            })
            .collect();
        assert_eq!(ours.len(), 5, "{name}: {ours:?}");
        assert_eq!(ours[4]["taken_off"], true);
        assert_eq!(ours[0]["kind"], kind);
        assert!(
            ours[0]["reason"].as_str().unwrap().contains(words),
            "{}",
            ours[0]
        );

        // A new component is loaded as usual.
        test_bed.replace(&policy("fcfs"));
        load.answered_by("fcfs@", 5).await;
        let tally = load.stop().await;
        assert_eq!(
            tally.by(FALLBACK) + tally.by("fcfs@"),
            tally.sent,
            "{name}: {tally:?}"
        );
        test_bed.settled().await;
        test_bed.stop().await;
    }
}

/// Windows that hold no requests show nothing wrong with these: they are found out when they
/// serve, and then the version before them does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_good_version_serves_for_one_that_fails() {
    for name in ["unknown-worker", "doubled"] {
        let test_bed = Setup::new("last-good").policy(policy("fcfs")).start().await;
        test_bed.replace(&guest(name));
        let swap = test_bed.swap_number(2).await;
        assert_eq!(swap.result, SwapResult::Switched, "{name}: {swap:?}");
        let load = Load::start(test_bed.http, 2);
        let off = test_bed.until("a policy taken off", |pool| {
            pool.driver.policy.starts_with("fcfs@")
        });
        assert_eq!(off.await.driver.faults.get("refused"), Some(&5), "{name}");
        load.answered_by("fcfs@", 5).await;
        let tally = load.stop().await;
        // While it fails, windows open for the fallback as well.
        assert!(tally.by("fcfs@") > 0, "{name}: {tally:?}");
        assert_eq!(
            tally.by(FALLBACK) + tally.by("fcfs@"),
            tally.sent,
            "{name}: {tally:?}"
        );
        test_bed.settled().await;
        test_bed.stop().await;
    }
}

/// Its plans are valid and empty: no check refuses them, and the fallback serves the requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_never_decides_starves_no_request() {
    let setup = Setup::new("starving").policy(policy("fcfs"));
    let test_bed = setup
        .app("slo_ms = 20\nlate = \"serve\"")
        .lines("patience_ms = 30")
        .start()
        .await;
    let load = Load::start(test_bed.http, 2);
    load.answered_by("fcfs@", 10).await;
    test_bed.replace(&guest("chatters"));
    assert_eq!(test_bed.swap_number(2).await.result, SwapResult::Switched);
    load.answered_by(FALLBACK, 2).await;
    test_bed
        .until("a policy taken off", |pool| {
            pool.driver.policy.starts_with("fcfs@")
        })
        .await;
    load.answered_by("fcfs@", 5).await;
    load.stop().await;
    let pool = test_bed.settled().await;
    assert_eq!(pool.driver.faults.get("starved"), Some(&5), "{pool:#?}");
    let last = pool.driver.last_fault.unwrap();
    assert!(last.contains("waits past its deadline"), "{last}");
    test_bed.stop().await;
}

/// Random plans may be valid ones, and a valid plan may refuse a request. But each request has
/// one end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_loses_no_request() {
    let setup = Setup::new("nonsense").policy(guest("garbage"));
    let lines = "patience_ms = 50\nfault_limit = { faults = 1000, windows = 1000 }";
    let test_bed = setup.app("slo_ms = 50").lines(lines).start().await;
    let mut answers: Vec<Answer> = Vec::new();
    let clients = (0..4).map(|c| {
        let http = test_bed.http;
        tokio::spawn(async move {
            let mut client = super::client::Client::connect(http).await;
            let mut answers = Vec::new();
            for i in 0..40 {
                answers.push(client.infer(beat(100 * c + i)).await);
            }
            answers
        })
    });
    for client in clients.collect::<Vec<_>>() {
        answers.extend(client.await.unwrap());
    }
    assert_eq!(answers.len(), 160);
    let answered = answers.iter().filter(|answer| answer.status == 200).count();
    for other in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!(other.status, 429, "{other:?}");
        assert!(other.error().contains("policy"), "{other:?}");
    }
    let pool = test_bed.settled().await;
    assert_eq!(pool.driver.accepted, 160);
    let outcome = |name: &str| pool.driver.outcomes.get(name).copied().unwrap_or(0);
    let ours = ["in_time", "late", "short_circuit", "short_circuit_late"].map(outcome);
    assert_eq!(ours.iter().sum::<u64>(), answered as u64, "{pool:#?}");
    assert_eq!(
        outcome("rejected_by_policy"),
        160 - answered as u64,
        "{pool:#?}"
    );
    assert!(
        pool.driver
            .faults
            .get("refused")
            .is_some_and(|count| *count > 0),
        "{pool:#?}"
    );
    test_bed.stop().await;
}
