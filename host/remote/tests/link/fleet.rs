//! Servers of one name that come and go.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use switchyard_executor::{Absence, Executor};
use switchyard_remote::{
    ConnectError, Fleet, FleetOptions, FoundAddresses, MemberSource, NameResolver, RemoteExecutor,
    RemoteModel, RemoteOptions, Resolve,
};

use super::server::FakeServer;
use super::{PATIENCE, assert_answers, options};

/// Time between two look-ups of a test.
const EVERY: Duration = Duration::from_millis(20);

/// The addresses that the name has now, or why it has none.
#[derive(Clone, Debug)]
struct Name(Arc<Mutex<Result<Vec<SocketAddr>, String>>>);

impl Resolve for Name {
    fn addresses<'a>(&'a self, _: &'a str, _: u16) -> FoundAddresses<'a> {
        let found = self.0.lock().unwrap().clone();
        Box::pin(std::future::ready(found.map_err(io::Error::other)))
    }
}

impl Name {
    fn of(addresses: &[SocketAddr]) -> Self {
        Self(Arc::new(Mutex::new(Ok(addresses.to_vec()))))
    }

    /// Changes its addresses, and waits until they were looked up.
    fn lists(&self, addresses: &[SocketAddr]) {
        *self.0.lock().unwrap() = Ok(addresses.to_vec());
        std::thread::sleep(5 * EVERY);
    }

    fn fails(&self, reason: &str) {
        *self.0.lock().unwrap() = Err(reason.to_owned());
        std::thread::sleep(5 * EVERY);
    }

    fn fleet_options(&self, server: RemoteOptions, at_most: usize) -> FleetOptions {
        FleetOptions {
            server: RemoteOptions {
                address: "grpc://workers:1".parse().unwrap(),
                ..server
            },
            at_most,
            source: MemberSource::Name {
                resolve_every: EVERY,
                resolver: NameResolver::new(Arc::new(self.clone())),
            },
        }
    }
}

pub(crate) fn watch(executor: &mut RemoteExecutor) -> Receiver<Absence> {
    let (report, absences) = channel();
    // The closure that gives batches up is dropped: they end.
    let _ = executor.watch(Box::new(move |absence| {
        let _ = report.send(absence);
    }));
    absences
}

/// As the restarts of a worker do.
pub(crate) fn connected(fleet: &Arc<Fleet>, slot: usize) -> RemoteExecutor {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match fleet.slot(slot).connect() {
            Ok(executor) => return executor,
            Err(error) => assert!(Instant::now() < give_up, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn address(fleet: &Arc<Fleet>, slot: usize) -> Option<SocketAddr> {
    let address = fleet.slot(slot).address()?;
    address.to_string().parse().ok()
}

#[test]
fn servers_take_free_slots_and_keep_them_whatever_the_order() {
    let servers = [(); 2].map(|()| FakeServer::start());
    let [a, b] = [&servers[0], &servers[1]].map(|server| server.at);
    let name = Name::of(&[a, b]);
    let fleet = Fleet::start(name.fleet_options(options(&servers[0]), 3)).unwrap();
    fleet.slot(0).settle();
    let addresses = || [0, 1, 2].map(|slot| address(&fleet, slot));
    let (first, second) = (a.min(b), a.max(b));
    assert_eq!(addresses(), [Some(first), Some(second), None]);
    let mut executors = [0, 1].map(|slot| fleet.slot(slot).connect().unwrap());
    let absences = executors.each_mut().map(watch);
    executors.iter_mut().for_each(assert_answers);
    let ConnectError::Away(reason) = fleet.slot(2).connect().err().unwrap() else {
        panic!("a free slot is away");
    };
    assert!(reason.contains("workers:1"), "{reason}");

    name.lists(&[b, a, b]);
    name.fails("the resolver is away");
    assert_eq!(addresses(), [Some(first), Some(second), None]);
    executors.iter_mut().for_each(assert_answers);
    for absences in absences {
        assert_eq!(absences.try_recv().ok(), None);
    }
    assert_eq!([servers[0].connections(), servers[1].connections()], [1, 1]);
}

#[test]
fn a_server_that_its_name_drops_ends_its_batch_and_frees_its_slot() {
    let (old, new) = (FakeServer::start(), FakeServer::start());
    let name = Name::of(&[old.at]);
    let fleet = Fleet::start(name.fleet_options(options(&old), 1)).unwrap();
    let mut executor = connected(&fleet, 0);
    let absences = watch(&mut executor);
    old.hold();
    let running = std::thread::spawn(move || {
        assert_answers(&mut executor);
        executor
    });
    old.wait_until(PATIENCE, |old| old.batches() == 1);
    name.lists(&[new.at]);
    let absence = absences.recv_timeout(PATIENCE).unwrap();
    let Absence::Leaving(reason) = &absence else {
        panic!("{absence:?}");
    };
    assert!(reason.contains(&old.at.to_string()), "{reason}");
    // While its batch runs neither it nor the other one is connected.
    std::thread::sleep(5 * EVERY);
    assert!(fleet.slot(0).connect().is_err());
    assert_eq!(address(&fleet, 0), None);
    assert_eq!(new.connections(), 0);
    old.release();
    let left = running.join().unwrap();
    let mut executor = connected(&fleet, 0);
    assert_eq!(address(&fleet, 0), Some(new.at));
    drop(left);
    assert_answers(&mut executor);
    assert_eq!(new.batches(), 1);
}

#[test]
fn a_server_that_comes_back_is_another_start_of_its_slot() {
    let server = FakeServer::start();
    let name = Name::of(&[server.at]);
    let fleet = Fleet::start(name.fleet_options(options(&server), 2)).unwrap();
    let mut executor = connected(&fleet, 0);
    let absences = watch(&mut executor);
    name.lists(&[]);
    assert!(matches!(
        absences.recv_timeout(PATIENCE),
        Ok(Absence::Leaving(_))
    ));
    std::thread::sleep(5 * EVERY);
    assert_eq!(address(&fleet, 0), None);
    name.lists(&[server.at]);
    let mut executor = connected(&fleet, 0);
    assert_answers(&mut executor);
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_server_that_does_not_fit_has_its_reason_and_measuring_takes_another() {
    let (good, gone) = (FakeServer::start(), FakeServer::start());
    let nowhere = gone.at;
    drop(gone);
    let name = Name::of(&[nowhere, good.at]);
    let mut found = Fleet::first_ready(&name.fleet_options(options(&good), 2)).unwrap();
    assert_answers(&mut found);
    let models: Vec<RemoteModel> = options(&good).models.to_vec();
    let models = models.into_iter().map(|mut model| {
        model.inputs[0].name = "y".to_owned();
        model
    });
    let misfit = RemoteOptions {
        models: models.collect(),
        ..options(&good)
    };
    name.lists(&[good.at]);
    let fleet = Fleet::start(name.fleet_options(misfit.clone(), 1)).unwrap();
    fleet.slot(0).settle();
    let error = fleet.slot(0).connect().err().unwrap();
    assert!(matches!(error, ConnectError::Misfit { .. }), "{error}");
    let error = Fleet::first_ready(&name.fleet_options(misfit, 1))
        .err()
        .unwrap();
    assert!(matches!(error, ConnectError::Misfit { .. }), "{error}");
    name.fails("no such name");
    let error = Fleet::first_ready(&name.fleet_options(options(&good), 1))
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "workers:1: no such name");
}
