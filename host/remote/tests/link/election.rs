//! Schedulers of which one is active.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use switchyard_remote::{Candidate, Election, Etcd, Fence};

use super::etcd::{reached_at, until};
use super::etcd_server::FakeEtcd;

/// Long enough for a loaded machine.
const TTL: Duration = Duration::from_secs(2);

pub(crate) struct Scheduler {
    pub(crate) fence: Arc<Fence>,
    pub(crate) election: Election,
}

impl Scheduler {
    fn start(etcd: &FakeEtcd, name: &str) -> Self {
        Self::at(reached_at(etcd.at, TTL), name, || true)
    }

    pub(crate) fn at(
        etcd: Arc<Etcd>,
        name: &str,
        is_fit: impl Fn() -> bool + Send + 'static,
    ) -> Self {
        let fence = Arc::<Fence>::default();
        let candidate = Candidate {
            key: "yard/leader".to_owned(),
            name: name.to_owned(),
        };
        let shared = Arc::clone(&fence);
        Self {
            fence,
            election: Election::start(etcd, candidate, shared, is_fit),
        }
    }

    pub(crate) fn reason(&self) -> String {
        let entered = self.fence.enter();
        entered
            .err()
            .map_or_else(String::new, |error| error.to_string())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_is_active_and_another_takes_over() {
    let etcd = FakeEtcd::start();
    let is_fit = Arc::new(AtomicBool::new(false));
    let looked = Arc::clone(&is_fit);
    let reached = reached_at(etcd.at, TTL);
    let mut first = Scheduler::at(reached, "a:8000", move || looked.load(Ordering::Relaxed));
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(
        !first.fence.is_held() && etcd.values().is_empty(),
        "it is not fit"
    );
    is_fit.store(true, Ordering::Relaxed);
    until("active", || first.fence.is_held());
    let mut second = Scheduler::start(&etcd, "b:8000");
    let names_it = || second.reason() == "stands by: the active scheduler is `a:8000`";
    until("the other one stands by", names_it);
    let term = first.fence.enter().unwrap();
    tokio::time::sleep(2 * TTL).await;
    assert_eq!(
        first.fence.check(term),
        Ok(()),
        "its lease is renewed without a gap"
    );
    assert!(!second.fence.is_held());

    let began = Instant::now();
    first.election.end().await;
    assert!(first.fence.check(term).is_err());
    until("taken over", || second.fence.is_held());
    assert!(began.elapsed() < TTL, "{:?}", began.elapsed());
    second.election.end().await;
    assert_eq!((etcd.values().len(), etcd.leases()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_acts_once_its_lease_has_ended_or_may_have() {
    let mut etcd = FakeEtcd::start();
    let schedulers = ["a", "b"].map(|name| Scheduler::start(&etcd, name));
    let active = || schedulers.iter().filter(|one| one.fence.is_held()).count();
    until("one is active", || active() == 1);
    // etcd is away: the lease may end there by its clock.
    etcd.stop();
    let stopped = Instant::now();
    until("none is active", || active() == 0);
    assert!(stopped.elapsed() < TTL, "{:?}", stopped.elapsed());
    etcd.resume();
    until("one is active again", || active() == 1);
    // The lease is gone: the next renewal says so.
    let holder = schedulers.iter().find(|one| one.fence.is_held()).unwrap();
    let term = holder.fence.enter().unwrap();
    etcd.end_leases();
    until("another term", || {
        holder.fence.check(term).is_err() && active() == 1
    });
}
