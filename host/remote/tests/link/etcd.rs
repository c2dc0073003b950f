//! Workers that register in etcd, and the schedulers that follow them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_executor::Absence;
use switchyard_remote::{
    Etcd, EtcdOptions, Fleet, FleetOptions, MemberSource, RegisteredWorker, Registration,
    RemoteAddress, RemoteOptions,
};

use super::etcd_server::FakeEtcd;
use super::fleet::{connected, watch};
use super::server::FakeServer;
use super::{PATIENCE, assert_answers, options};

const TTL: Duration = Duration::from_secs(1);

pub(crate) const PREFIX: &str = "yard/far";

fn reached(etcd: &FakeEtcd) -> Arc<Etcd> {
    reached_at(etcd.at, TTL)
}

pub(crate) fn reached_at(at: SocketAddr, ttl: Duration) -> Arc<Etcd> {
    Etcd::shared(EtcdOptions {
        endpoints: vec![format!("http://{at}").parse().unwrap()],
        tls: None,
        ttl,
    })
}

pub(crate) fn until(event: &str, holds: impl Fn() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < give_up, "{event}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn entry(name: &str) -> RegisteredWorker {
    RegisteredWorker {
        prefix: PREFIX.to_owned(),
        name: name.to_owned(),
        address: "10.0.0.2:8001".to_owned(),
    }
}

fn put(etcd: &FakeEtcd, name: &str, server: &FakeServer, incarnation: u64) {
    let at = server.at;
    let value = format!("{{\"address\":\"{at}\",\"incarnation\":{incarnation}}}");
    etcd.put(&format!("yard/far/{name}"), &value);
}

fn fleet(etcd: &FakeEtcd, server: &FakeServer, at_most: usize) -> Arc<Fleet> {
    fleet_at(reached(etcd), server, at_most)
}

pub(crate) fn fleet_at(etcd: Arc<Etcd>, server: &FakeServer, at_most: usize) -> Arc<Fleet> {
    Fleet::start(fleet_options(etcd, server, at_most)).unwrap()
}

fn fleet_options(etcd: Arc<Etcd>, server: &FakeServer, at_most: usize) -> FleetOptions {
    FleetOptions {
        server: RemoteOptions {
            address: RemoteAddress::named(PREFIX),
            ..options(server)
        },
        at_most,
        source: MemberSource::Etcd {
            etcd,
            prefix: PREFIX.to_owned(),
        },
    }
}

fn addresses(fleet: &Arc<Fleet>) -> Vec<Option<String>> {
    let address = |slot| Some(fleet.slot(slot).address()?.to_string());
    (0..2).map(address).collect()
}

fn listed(servers: [Option<&FakeServer>; 2]) -> Vec<Option<String>> {
    let address = |server: Option<&FakeServer>| Some(server?.at.to_string());
    servers.map(address).to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_lasts_as_long_as_its_worker() {
    let mut etcd = FakeEtcd::start();
    let mut registration = Registration::start(reached(&etcd), entry("a"));
    until("registered", || etcd.values().len() == 1);
    let (key, first) = etcd.values().remove(0);
    assert_eq!(key, "yard/far/a");
    assert!(first.contains(r#""address":"10.0.0.2:8001""#), "{first}");
    tokio::time::sleep(2 * TTL).await;
    assert_eq!(etcd.values().len(), 1, "its lease is renewed");
    // It is the same process when its lease has ended, and when etcd was away.
    etcd.end_leases();
    until("registered again", || etcd.values().len() == 1);
    etcd.stop();
    tokio::time::sleep(2 * TTL).await;
    etcd.resume();
    tokio::time::sleep(2 * TTL).await;
    assert_eq!(etcd.values(), [(key, first.clone())]);
    registration.end().await;
    assert_eq!((etcd.values().len(), etcd.leases()), (0, 0), "it has left");

    // Another process of this name takes its entry over, and the first one leaves it alone.
    let mut before = Registration::start(reached(&etcd), entry("a"));
    until("registered", || etcd.values().len() == 1);
    let value = etcd.values().remove(0).1;
    assert_ne!(value, first, "another incarnation");
    let after = Registration::start(reached(&etcd), entry("a"));
    until("taken over", || etcd.values()[0].1 != value);
    before.end().await;
    assert_eq!(etcd.values().len(), 1);
    drop(after);
}

#[test]
fn a_process_that_is_gone_leaves_with_its_lease() {
    let etcd = FakeEtcd::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let entered = runtime.enter();
    let _registration = Registration::start(reached(&etcd), entry("a"));
    until("registered", || etcd.values().len() == 1);
    drop(entered);
    let gone = Instant::now();
    runtime.shutdown_background();
    until("gone", || etcd.values().is_empty());
    assert!(gone.elapsed() < 2 * TTL, "{:?}", gone.elapsed());
}

#[test]
fn a_scheduler_that_starts_before_etcd_measures_once_it_answers() {
    let server = FakeServer::start();
    let mut etcd = FakeEtcd::start();
    put(&etcd, "a", &server, 1);
    etcd.stop();
    let options = fleet_options(reached(&etcd), &server, 1);
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        etcd.resume();
        etcd
    });
    let mut executor = Fleet::first_ready(&options).unwrap();
    assert_answers(&mut executor);
    drop(late.join().unwrap());
}

#[test]
fn workers_keep_their_slots_by_name_and_another_incarnation_starts_anew() {
    let etcd = FakeEtcd::start();
    let servers = [(); 3].map(|()| FakeServer::start());
    let [a, b, moved] = [&servers[0], &servers[1], &servers[2]];
    put(&etcd, "b", b, 1);
    let fleet = fleet(&etcd, a, 2);
    fleet.slot(0).settle();
    assert_eq!(addresses(&fleet), listed([Some(b), None]));
    put(&etcd, "a", a, 1);
    until("two workers", || {
        addresses(&fleet) == listed([Some(b), Some(a)])
    });
    let mut executors = [0, 1].map(|slot| connected(&fleet, slot));
    let absences = executors.each_mut().map(watch);
    executors.iter_mut().for_each(assert_answers);

    // The same process writes its entry again: nothing changes.
    put(&etcd, "b", b, 1);
    std::thread::sleep(Duration::from_millis(300));
    assert!(absences.iter().all(|absences| absences.try_recv().is_err()));
    // Another process at the same address.
    put(&etcd, "b", b, 2);
    let absence = absences[0].recv_timeout(PATIENCE).unwrap();
    assert!(matches!(absence, Absence::Leaving(_)), "{absence:?}");
    let mut anew = connected(&fleet, 0);
    assert_answers(&mut anew);
    assert_eq!(b.connections(), 2);
    // Another process elsewhere takes the same slot.
    let absences = watch(&mut anew);
    put(&etcd, "b", moved, 3);
    absences.recv_timeout(PATIENCE).unwrap();
    until("moved", || {
        addresses(&fleet) == listed([Some(moved), Some(a)])
    });
    assert_answers(&mut connected(&fleet, 0));
    etcd.delete("yard/far/a");
    until("one that left", || {
        addresses(&fleet) == listed([Some(moved), None])
    });
}

#[test]
fn a_fleet_serves_on_while_etcd_is_away() {
    let mut etcd = FakeEtcd::start();
    let [a, b] = [(); 2].map(|()| FakeServer::start());
    put(&etcd, "a", &a, 1);
    let fleet = fleet(&etcd, &a, 2);
    let mut executor = connected(&fleet, 0);
    let absences = watch(&mut executor);
    let absence = reached(&etcd).absence();
    etcd.stop();
    until("away", || !absence.borrow().is_empty());
    assert!(absence.borrow().contains(&etcd.at.to_string()));
    assert_eq!(addresses(&fleet), listed([Some(&a), None]));
    assert_answers(&mut executor);
    assert!(absences.try_recv().is_err());
    put(&etcd, "b", &b, 1);
    etcd.resume();
    until("back", || absence.borrow().is_empty());
    until("a change meanwhile", || {
        addresses(&fleet) == listed([Some(&a), Some(&b)])
    });
    assert!(absences.try_recv().is_err());

    // Watches that end, as after a compaction, cost a look and no worker.
    let lists = etcd.lists();
    etcd.compact();
    until("another look", || etcd.lists() > lists);
    etcd.delete("yard/far/b");
    until("a change after it", || {
        addresses(&fleet) == listed([Some(&a), None])
    });
    assert!(absences.try_recv().is_err());
    assert_answers(&mut executor);
}

#[test]
fn entries_that_are_wrong_or_of_a_longer_prefix_are_left_out() {
    let etcd = FakeEtcd::start();
    let server = FakeServer::start();
    for (key, value) in [
        ("yard/far/a", "10.0.0.2:8001"),
        ("yard/far/b", r#"{"address":"nowhere","incarnation":1}"#),
        (
            "yard/far/c/d",
            r#"{"address":"10.0.0.2:8001","incarnation":1}"#,
        ),
        (
            "yard/far0",
            r#"{"address":"10.0.0.2:8001","incarnation":1}"#,
        ),
    ] {
        etcd.put(key, value);
    }
    let fleet = fleet(&etcd, &server, 2);
    fleet.slot(0).settle();
    assert_eq!(addresses(&fleet), [None, None]);
    put(&etcd, "b", &server, 1);
    until("mended", || {
        addresses(&fleet) == listed([Some(&server), None])
    });
}
