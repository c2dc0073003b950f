//! The same on a real etcd: `cargo xtask etcd`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use switchyard_remote::{Fleet, RegisteredWorker, Registration};

use super::assert_answers;
use super::election::Scheduler;
use super::etcd::{PREFIX, fleet_at, reached_at, until};
use super::fleet::connected;
use super::real::RealEtcd;
use super::server::FakeServer;

const TTL: Duration = Duration::from_secs(2);

fn register(at: SocketAddr, name: &str, server: &FakeServer) -> Registration {
    let worker = RegisteredWorker {
        prefix: PREFIX.to_owned(),
        name: name.to_owned(),
        address: server.at.to_string(),
    };
    Registration::start(reached_at(at, TTL), worker)
}

fn up(fleet: &Arc<Fleet>) -> usize {
    let address = |slot| fleet.slot(slot).address();
    (0..3).filter_map(address).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: cargo xtask etcd"]
async fn workers_register_and_leave_and_survive_a_restart_of_etcd() {
    let mut etcd = RealEtcd::start();
    let servers = tokio::task::block_in_place(|| [(); 2].map(|()| FakeServer::start()));
    let fleet = fleet_at(reached_at(etcd.at, TTL), &servers[0], 3);
    let mut first = register(etcd.at, "a", &servers[0]);
    until("one worker", || up(&fleet) == 1);
    let second = register(etcd.at, "b", &servers[1]);
    until("two workers", || up(&fleet) == 2);
    tokio::time::sleep(3 * TTL).await;
    assert_eq!(up(&fleet), 2, "leases are renewed");
    let mut executor = tokio::task::block_in_place(|| connected(&fleet, 0));
    tokio::task::block_in_place(|| assert_answers(&mut executor));

    let absence = reached_at(etcd.at, TTL).absence();
    etcd.stop();
    until("away", || !absence.borrow().is_empty());
    tokio::time::sleep(2 * TTL).await;
    tokio::task::block_in_place(|| assert_answers(&mut executor));
    etcd.resume();
    until("back", || absence.borrow().is_empty());
    tokio::time::sleep(3 * TTL).await;
    assert_eq!(
        (up(&fleet), servers[0].connections()),
        (2, 1),
        "no worker was lost"
    );
    first.end().await;
    until("one left", || up(&fleet) == 1);
    drop(second);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: cargo xtask etcd"]
async fn one_scheduler_is_active() {
    let mut etcd = RealEtcd::start();
    let mut first = Scheduler::at(reached_at(etcd.at, TTL), "a", || true);
    until("active", || first.fence.is_held());
    let second = Scheduler::at(reached_at(etcd.at, TTL), "b", || true);
    until("stands by", || second.reason().contains("`a`"));
    let term = first.fence.enter().unwrap();
    tokio::time::sleep(3 * TTL).await;
    assert!(first.fence.check(term).is_ok() && !second.fence.is_held());
    first.election.end().await;
    until("handed over", || second.fence.is_held());
    let third = Scheduler::at(reached_at(etcd.at, TTL), "c", || true);
    etcd.stop();
    until("none without etcd", || {
        !second.fence.is_held() && !third.fence.is_held()
    });
    etcd.resume();
    until("one again", || {
        second.fence.is_held() != third.fence.is_held()
    });
}
