//! The same on a real etcd: `cargo xtask etcd`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_remote::{
    ClientFiles, Etcd, EtcdOptions, Fleet, RegisteredWorker, Registration, RemoteTls, SharedKey,
};

use super::assert_answers;
use super::election::Scheduler;
use super::etcd::{PREFIX, fleet_at, reached_at, until};
use super::fleet::connected;
use super::real::{RealEtcd, certificate};
use super::server::FakeServer;
use super::{PATIENCE, shared};

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: cargo xtask etcd"]
async fn only_a_certificate_of_the_right_authority_reaches_etcd() {
    let etcd = RealEtcd::start_tls();
    let key = |ca: &str, client: &str| SharedKey {
        etcd: Etcd::shared(EtcdOptions {
            endpoints: vec![format!("https://{}", etcd.at).parse().unwrap()],
            tls: Some(RemoteTls {
                ca: certificate(ca),
                client: Some(ClientFiles {
                    certificate: certificate(&format!("{client}.pem")),
                    key: certificate(&format!("{client}.key")),
                }),
            }),
            ttl: TTL,
        }),
        key: "yard/policies/pool".to_owned(),
    };
    let right = key("ca.pem", "client");
    let give_up = Instant::now() + PATIENCE;
    let mut view = loop {
        match right.open().await {
            Ok(view) => break view,
            Err(reason) => assert!(Instant::now() < give_up, "{reason}"),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let version = shared::version("one");
    let files = shared::files(5 << 19);
    assert!(view.publish(version, &files).await.unwrap());
    assert!(
        view.files("one").await.unwrap() == files,
        "the files differ"
    );
    for (ca, client) in [("ca.pem", "foreign-client"), ("foreign-ca.pem", "client")] {
        let Err(reason) = key(ca, client).open().await else {
            panic!("{ca}, {client}: it connects");
        };
        println!("{ca}, {client}: {reason}");
        assert!(reason.contains("certificate"), "{ca}, {client}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs etcd: cargo xtask etcd"]
async fn the_first_of_two_that_change_a_version_wins() {
    let etcd = RealEtcd::start();
    let key = SharedKey {
        etcd: reached_at(etcd.at, TTL),
        key: "yard/policies/pool".to_owned(),
    };
    until("etcd answers", || {
        std::net::TcpStream::connect(etcd.at).is_ok()
    });
    let (mut here, mut there) = (key.open().await.unwrap(), key.open().await.unwrap());
    for name in ["one", "two", "three"] {
        let files = shared::files(10);
        assert!(here.publish(shared::version(name), &files).await.unwrap());
        let refused = there.publish(shared::version("other"), &files).await;
        assert!(!refused.unwrap(), "both won");
        there.read().await.unwrap();
        assert_eq!(there.now().0, Some(&shared::version(name)));
        assert!(there.files("one").await.unwrap().is_empty() == (name == "three"));
    }
}
