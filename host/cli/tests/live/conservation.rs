//! Every call ends once for every behaviour of clients, and the ledger agrees.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::client::{Answer, Client};
use super::fixture::{APP, beat, beats, guest, policy};
use super::load::Load;
use super::test_bed::{Setup, TestBed};

const ANSWERED: [&str; 4] = ["in_time", "late", "short_circuit", "short_circuit_late"];

/// The policy decides nothing and no request times out: accepted requests stay.
async fn holding(pool: &'static str, lines: &str) -> TestBed {
    let setup = Setup::new(pool)
        .policy(guest("chatters"))
        .app("slo_ms = 3600000");
    setup.lines(lines).start().await
}

async fn ended(test_bed: &TestBed, outcomes: &[&str]) -> i64 {
    let metrics = test_bed.metrics().await;
    let ended = |outcome: &&str| {
        let labels = [("app", APP), ("outcome", *outcome)];
        metrics.sum("switchyard_requests_total", &labels)
    };
    outcomes.iter().map(ended).sum()
}

/// One request of each kind in turn; its path and body.
fn kind(nth: u64) -> (String, String) {
    let infer = |version: &str| format!("/v2/models/{APP}{version}/infer");
    match nth % 6 {
        0 | 1 => (infer(""), beat(nth)),
        2 => (infer("/versions/cnn-small"), beat(nth)),
        // Its deadline is past before anything can look at it.
        3 => (infer(""), beats(nth, 1, &json!({"timeout": 1}))),
        4 => (infer(""), beat(nth).replace("FP32", "INT32")),
        _ => (infer("/versions/none"), beat(nth)),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_counters_add_up_to_the_sent_requests() {
    let setup = Setup::new("books")
        .policy(policy("fcfs"))
        .app("late = \"serve\"")
        .lines("pending_max = 4");
    let test_bed = setup.start().await;
    let (connections, each) = (24, 18);
    let clients = (0..connections).map(|c| {
        let http = test_bed.http;
        tokio::spawn(async move {
            let mut client = Client::connect(http).await;
            let mut answers = Vec::new();
            for i in 0..each {
                let (path, body) = kind(c + i);
                answers.push(((c + i) % 6, client.send("POST", &path, body).await.unwrap()));
            }
            answers
        })
    });
    let mut by_status: BTreeMap<u16, i64> = BTreeMap::new();
    for client in clients.collect::<Vec<_>>() {
        for (kind, answer) in client.await.unwrap() {
            check(kind, &answer);
            *by_status.entry(answer.status).or_default() += 1;
        }
    }
    let of = |status| by_status.get(&status).copied().unwrap_or(0);
    let sent = (connections * each) as i64;
    assert_eq!(by_status.values().sum::<i64>(), sent);

    let pool = test_bed.settled().await;
    let metrics = test_bed.metrics().await;
    assert_eq!(ended(&test_bed, &ANSWERED).await, of(200));
    assert_eq!(ended(&test_bed, &["queue_full"]).await, of(429));
    assert_eq!(
        metrics.sum("switchyard_requests_total", &[]),
        of(200) + of(429)
    );
    assert_eq!(pool.driver.accepted as i64, of(200) + of(429));
    for status in [400, 404] {
        let text = status.to_string();
        let refused = metrics.sum("switchyard_refused_total", &[("status", &text)]);
        assert_eq!(refused, of(status), "{status}");
        assert_eq!(refused, sent / 6, "{status}");
    }
    let latencies = metrics.sum("switchyard_request_latency_seconds_count", &[("app", APP)]);
    assert_eq!(latencies, of(200));
    let answered = metrics.sum("switchyard_variant_requests_total", &[("app", APP)]);
    assert_eq!(answered, of(200), "none was short-circuited");
    assert_eq!(metrics.sum("switchyard_queue_depth", &[]), 0);
    test_bed.stop().await;
}

fn check(kind: u64, answer: &Answer) {
    let expected: &[u16] = match kind {
        4 => &[400],
        5 => &[404],
        _ => &[200, 429],
    };
    assert!(expected.contains(&answer.status), "{kind}: {answer:?}");
    match answer.status {
        200 => {
            let body = answer.json();
            let pinned = kind != 2 || body["model_version"] == "cnn-small";
            assert!(pinned, "{body}");
            let met = &body["parameters"]["deadline_met"];
            assert!(
                kind != 3 || *met == false,
                "a deadline that is past is not met: {body}"
            );
        }
        429 => assert_eq!(answer.retry_after.as_deref(), Some("1"), "{answer:?}"),
        _ => assert!(!answer.error().is_empty()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_sends_clients_away_and_those_who_leave_make_room() {
    let test_bed = holding("full", "pending_max = 3").await;
    let ask = |nth| {
        let http = test_bed.http;
        tokio::spawn(async move { Client::connect(http).await.infer(beat(nth)).await })
    };
    let held: Vec<_> = (0..3).map(ask).collect();
    test_bed
        .until("a full queue", |pool| pool.driver.pending == 3)
        .await;
    let mut client = test_bed.client().await;
    for nth in 0..5 {
        let answer = client.infer(beat(nth)).await;
        assert_eq!(answer.status, 429, "{answer:?}");
        assert_eq!(answer.retry_after.as_deref(), Some("1"));
        assert!(answer.error().contains("pending requests"), "{answer:?}");
    }
    // A call of many rows is refused whole, and its other rows are not left inside.
    let answer = client.infer(beats(0, 7, &json!({}))).await;
    assert_eq!(answer.status, 429, "{answer:?}");
    let pool = test_bed
        .until("only what is held", |pool| pool.driver.live == 3)
        .await;
    assert_eq!(pool.driver.accepted, 3 + 5 + 7);

    for client in &held {
        client.abort();
    }
    let pool = test_bed.settled().await;
    assert_eq!(pool.driver.outcomes.get("cancelled"), Some(&3), "{pool:#?}");
    let refused = ended(&test_bed, &["queue_full"]).await;
    assert_eq!(refused, 5 + 7, "{pool:#?}");

    // There is room again, and it is used.
    test_bed.replace(&policy("fcfs"));
    test_bed.swap_number(2).await;
    assert!(client.infer(beat(9)).await.policy().starts_with("fcfs@"));
    test_bed.stop().await;
}

/// Sends a request, or a part of it, and is gone.
async fn leave(http: SocketAddr, nth: u64) {
    let body = beat(nth);
    let length = body.len();
    let request = format!(
        "POST /v2/models/{APP}/infer HTTP/1.1\r\nhost: live\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let mut stream = TcpStream::connect(http).await.unwrap();
    let sent = match nth % 3 {
        0 => request.len() / 2,
        _ => request.len(),
    };
    stream.write_all(&request.as_bytes()[..sent]).await.unwrap();
    if nth % 3 == 2 {
        // Long enough to be taken in, and perhaps to run.
        tokio::time::sleep(Duration::from_millis(nth % 10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_go_away_take_nothing_from_those_who_stay() {
    let test_bed = Setup::new("leaving")
        .policy(policy("sneakpeek"))
        .start()
        .await;
    let load = Load::start(test_bed.http, 2);
    load.answered_by("sneakpeek@", 5).await;
    let gone = 90;
    for leaver in (0..gone)
        .map(|nth| tokio::spawn(leave(test_bed.http, nth)))
        .collect::<Vec<_>>()
    {
        leaver.await.unwrap();
    }
    load.answered_by("sneakpeek@", 20).await;
    let tally = load.stop().await;
    let pool = test_bed.settled().await;
    let driver = &pool.driver;
    assert!(driver.accepted >= tally.sent, "{driver:#?}");
    // A third never sent all of its body.
    assert!(
        driver.accepted <= tally.sent + gone - gone / 3,
        "{driver:#?}"
    );
    let cancelled = ended(&test_bed, &["cancelled"]).await as u64;
    let answered = ended(&test_bed, &ANSWERED).await as u64;
    assert_eq!(answered + cancelled, driver.accepted, "{driver:#?}");
    assert!(answered >= tally.sent, "{driver:#?}");
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_that_drops_tells_the_late_ones() {
    let setup = Setup::new("dropping")
        .policy(policy("fcfs"))
        .app("late = \"drop\"");
    let test_bed = setup.start().await;
    let mut client = test_bed.client().await;
    for nth in 0..4 {
        // A batch may begin within the microsecond of its arrival; then its answer is late.
        let dropped = loop {
            let answer = client.infer(beats(nth, 1, &json!({"timeout": 1}))).await;
            if answer.status != 200 {
                break answer;
            }
            assert_eq!(answer.json()["parameters"]["deadline_met"], false);
        };
        assert_eq!(dropped.status, 504, "{dropped:?}");
        assert!(dropped.error().contains("deadline"), "{dropped:?}");
        let answer = client
            .infer(beats(nth, 1, &json!({"timeout": 60_000_000})))
            .await;
        assert_eq!(
            answer.json()["parameters"]["deadline_met"],
            true,
            "{answer:?}"
        );
    }
    test_bed.settled().await;
    assert_eq!(ended(&test_bed, &["dropped_pending"]).await, 4);
    assert_eq!(ended(&test_bed, &["in_time"]).await, 4);
    let late = ended(&test_bed, &["late"]).await;
    let missed = test_bed
        .metrics()
        .await
        .sum("switchyard_deadline_missed_total", &[("app", APP)]);
    assert_eq!(missed, 4 + late);
    test_bed.stop().await;
}

/// A policy that keeps the scheduler busy makes calls queue before it; that queue is bounded too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_scheduler_sends_clients_away_before_it_has_seen_them() {
    let lines = "window_budget_ms = 1000\nfault_limit = { faults = 2, windows = 100 }";
    let setup = Setup::new("inbox").policy(guest("loops")).lines(lines);
    let setup = setup.app("late = \"serve\"");
    let test_bed = setup.server("inbox_max = 2").start().await;
    let ask = |nth| {
        let http = test_bed.http;
        tokio::spawn(async move { Client::connect(http).await.infer(beat(nth)).await })
    };
    let mut away = 0;
    let sent = 16;
    for asked in (0..sent).map(ask).collect::<Vec<_>>() {
        let answer = asked.await.unwrap();
        if answer.status == 429 {
            away += 1;
            assert!(answer.error().contains("inbox of 2"), "{answer:?}");
            assert_eq!(answer.retry_after.as_deref(), Some("1"));
        } else {
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
    let pool = test_bed.settled().await;
    assert!(away > 0, "{pool:#?}");
    let metrics = test_bed.metrics().await;
    let full = metrics.sum("switchyard_inbox_full_total", &[("pool", "inbox")]);
    assert_eq!(full, away);
    assert_eq!(pool.driver.accepted as i64, sent as i64 - away);
    assert_eq!(ended(&test_bed, &ANSWERED).await, sent as i64 - away);
    test_bed.stop().await;
}
