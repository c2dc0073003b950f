//! The dashboard of the real server: the page with its policy, and its numbers under load.

use switchyard_server::admin::Dashboard;

use super::client::get;
use super::fixture::{APP, policy};
use super::load::Load;
use super::test_bed::{Setup, TestBed};

async fn numbers(test_bed: &TestBed) -> Dashboard {
    let answer = get(test_bed.admin, "/admin/v1/dashboard").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    serde_json::from_str(&answer.text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_is_one_answer_that_allows_its_own_script_only() {
    let test_bed = Setup::new("page").policy(policy("fcfs")).start().await;
    for path in ["/", "/dashboard"] {
        let page = get(test_bed.admin, path).await;
        assert_eq!(page.status, 200);
        assert!(page.text.starts_with("<!doctype html>"), "{}", page.text);
        assert!(page.text.contains("/admin/v1/dashboard"));
    }
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_numbers_of_the_last_seconds_are_those_of_the_load() {
    let test_bed = Setup::new("shown").policy(policy("fcfs")).start().await;
    let idle = numbers(&test_bed).await;
    assert_eq!(idle.views.len(), 1);
    assert!(!idle.orders, "no operator is configured");
    assert!(idle.views[0].recent.apps[0].outcomes.is_empty());
    assert!(idle.views[0].components.contains(&"active".to_owned()));

    let load = Load::start(test_bed.http, 2);
    load.answered_by("fcfs@", 50).await;
    let sent = load.stop().await.sent;
    let shown = numbers(&test_bed).await;
    let [view] = &shown.views[..] else {
        panic!("one pool, {} views", shown.views.len());
    };
    let app = &view.recent.apps[0];
    assert_eq!(app.app, APP);
    // The load may have begun before the first slot that is shown.
    let ended: u64 = app.outcomes.values().sum();
    assert!((1..=sent).contains(&ended), "{ended} of {sent}: {app:#?}");
    let by: u64 = app.policies.iter().map(|policy| policy.ended).sum();
    assert_eq!(by, ended, "{app:#?}");
    assert!(app.policies[0].policy.starts_with("fcfs@"), "{app:#?}");
    let quality = app.quality.unwrap();
    assert!((0.1..=1.0).contains(&quality), "{quality}");
    let [median, p90, p99] = app.latency_us.unwrap();
    assert!(0 < median && median <= p90 && p90 <= p99, "{app:#?}");

    let runs = view.recent.workers.iter().flat_map(|worker| &worker.runs);
    let requests: u64 = runs.clone().map(|run| u64::from(run.requests)).sum();
    assert!((ended..=sent).contains(&requests), "{requests} of {sent}");
    for run in runs {
        assert!(run.busy_us <= view.recent.slot_us, "{run:#?}");
        assert!(run.variant.starts_with("heart/"), "{run:#?}");
    }
    assert_eq!(shown.status.pools[0].driver.imbalance, 0);
    test_bed.stop().await;
}
