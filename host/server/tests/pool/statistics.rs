//! Statistics in Triton's words: calls, rows and batches are counted apart.

use switchyard_core::ids::{RequestId, VariantId};
use switchyard_protocol::VariantStats;

use crate::test_bed::{FAR, TestPool};

/// Of all variants together.
fn all(pool: &TestPool) -> VariantStats {
    let mut sum = VariantStats::default();
    for variant in 0..pool.pool.catalog().variants.len() as u32 {
        sum += &pool.pool.stats(VariantId(variant));
    }
    sum
}

/// perf_analyzer refuses statistics whose compute counts are not the requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_of_rows_counts_once_in_every_duration() {
    let pool = TestPool::start().await;
    for rows in [1, 3, 4] {
        let end = pool.try_serve_rows(0, FAR, rows).await.unwrap();
        assert_eq!(end.unwrap().len(), rows);
    }
    let stats = all(&pool);
    assert_eq!(stats.inference_count, 8);
    let batches: u64 = stats.batches.iter().map(|b| b.compute_infer.count).sum();
    assert_eq!(stats.execution_count, batches);
    for part in [
        stats.success,
        stats.queue,
        stats.compute_input,
        stats.compute_infer,
        stats.compute_output,
    ] {
        assert_eq!(part.count, 3, "{stats:?}");
    }
    for batch in &stats.batches {
        assert_eq!(batch.compute_input.count, batch.compute_infer.count);
        assert_eq!(batch.compute_output.count, batch.compute_infer.count);
    }
    assert_eq!(stats.fail.count, 0);
    assert!(stats.last_inference_ms > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_fails_by_a_row_counts_as_one_failure() {
    let pool = TestPool::start().await;
    *pool.controls.poison.lock().unwrap() = Some(RequestId(1));
    let end = pool.try_serve_rows(0, FAR, 4).await.unwrap();
    assert!(end.is_err());
    pool.until(|pool| all(pool).fail.count > 0).await;
    let stats = all(&pool);
    assert_eq!((stats.fail.count, stats.success.count), (1, 0), "{stats:?}");
}
