//! A machine that is slower than its profile.

use std::collections::BTreeSet;

use serde_json::json;
use switchyard_profile::{Machine, ProfileFile};

use super::fixture::{beats, fixture};
use super::test_bed::Setup;

const RATIO: &str = "switchyard_profile_drift_ratio";
const EPISODES: &str = "switchyard_profile_drift_episodes_total";

/// Enough requests for a median at every batch size.
const REQUESTS: u64 = 40;

/// Rows of each request: a batch of them takes noticeable time on the fastest machine.
const ROWS: usize = 64;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drift_is_one_log_line_per_worker() {
    // A profile in which every batch takes 1 us.
    let folder = tempfile::tempdir().unwrap();
    let kept = fixture().profiles.join(Machine::detect().file_name());
    let mut profile = ProfileFile::load(&kept).unwrap();
    for cell in &mut profile.latencies {
        (cell.p50_us, cell.p95_us, cell.p99_us) = (1, 1, 1);
    }
    let file = folder.path().join("fast.json");
    profile.save(&file).unwrap();
    let lines = format!("file = \"{}\"\ndrift_ratio = 1.5", file.display());
    let test_bed = Setup::new("drifting").profile(&lines).start().await;

    let mut client = test_bed.client().await;
    for nth in 0..REQUESTS {
        let answer = client.infer(beats(nth, ROWS, &json!({}))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    test_bed.settled().await;
    let warned = test_bed.logged("latencies drift from the profile");
    // Requests one by one stay on one worker, or their rows are spread over two. The test is over
    // within the minute in which a worker has one line.
    assert!((1..=2).contains(&warned.len()), "{warned:?}");
    let workers: BTreeSet<_> = warned.iter().map(|line| line["worker"].as_str()).collect();
    assert_eq!(workers.len(), warned.len(), "{warned:?}");
    for warning in &warned {
        assert_eq!(warning["app"], "heart");
        assert_eq!(warning["drifting"], 1, "the first variant");
        assert_eq!(warning["compared"], 1);
        assert_eq!(warning["profiled_us"], 1);
        assert!(warning["observed_us"].as_u64().unwrap() > 50, "{warning}");
        assert!(warning["ratio"].as_f64().unwrap() > 50.0, "{warning}");
        let worker = warning["worker"].as_str().unwrap();
        let variant = warning["variant"].as_str().unwrap();
        let labels = [("worker", worker), ("app", "heart"), ("variant", variant)];
        let metrics = test_bed.metrics().await;
        assert_eq!(metrics.sum(EPISODES, &labels), 1);
        assert!(metrics.sum(RATIO, &labels) > 50, "{metrics:?}");
    }
    test_bed.stop().await;
}
