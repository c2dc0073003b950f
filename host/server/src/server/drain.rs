//! The end of the requests inside, before their pools end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::driver::{Message, PoolHandle};

/// Tells the pools that no more requests come: connections end once their requests have, and lanes
/// that wait for more requests would hold theirs.
pub(super) async fn flush_after(delay: Duration, pools: Vec<Arc<PoolHandle>>) {
    tokio::time::sleep(delay).await;
    for pool in pools {
        let (done, _) = oneshot::channel();
        let _ = tokio::task::spawn_blocking(move || pool.send(Message::Drain(done))).await;
    }
}

/// Drains all pools. `false`: one was not empty at the deadline.
pub(super) async fn drain(pools: Vec<Arc<PoolHandle>>, deadline: Instant) -> bool {
    let mut waits = Vec::new();
    for pool in pools {
        let (done, drained) = oneshot::channel();
        let sent = tokio::task::spawn_blocking(move || pool.send(Message::Drain(done)));
        waits.push(async move { sent.await.is_ok() && drained.await.is_ok() });
    }
    let all = async {
        let mut empty = true;
        for wait in waits {
            empty &= wait.await;
        }
        empty
    };
    tokio::time::timeout_at(deadline.into(), all)
        .await
        .unwrap_or(false)
}
