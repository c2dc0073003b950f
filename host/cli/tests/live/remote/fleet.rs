//! Workers behind one name, which come and go.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use switchyard_remote::{FoundAddresses, NameResolver, Resolve};
use switchyard_server::admin::PoolReport;
use switchyard_server::config::Config;
use tempfile::TempDir;

use super::super::client::get;
use super::super::fixture::{APP, fixture};
use super::super::test_bed::{PATIENCE, Setup, TestBed};
use super::{Clients, ready, two_workers};

const POOL: &str = "fleet";

/// The addresses that the name has now.
#[derive(Clone, Debug, Default)]
struct Name(Arc<Mutex<Vec<SocketAddr>>>);

impl Resolve for Name {
    fn addresses<'a>(&'a self, _: &'a str, _: u16) -> FoundAddresses<'a> {
        Box::pin(std::future::ready(Ok(self.0.lock().unwrap().clone())))
    }
}

impl Name {
    fn lists(&self, addresses: &[SocketAddr]) {
        *self.0.lock().unwrap() = addresses.to_vec();
    }
}

/// A scheduler whose workers are the servers of a name.
async fn scheduler(name: &Name, profiles: &Path) -> TestBed {
    let folder = TempDir::new().unwrap();
    let text = format!(
        r#"
[server]
http = "127.0.0.1:0"
admin = "127.0.0.1:0"
[[app]]
name = "{APP}"
zoo = "{zoo}"
slo_ms = 5000
[[worker]]
name = "far"
remote = {{ url = "grpc://workers.test:8001", at_most = 3, resolve_s = 1 }}
[[pool]]
name = "{POOL}"
apps = ["{APP}"]
workers = ["far"]
policy = "edf-fallback"
[policies]
dir = "{policies}"
[profile]
dir = "{profiles}"
measure_s = 1
"#,
        zoo = fixture().zoo.display(),
        policies = folder.path().display(),
        profiles = profiles.display(),
    );
    let mut config = Config::parse(&text, Path::new("test.toml"), Path::new("")).unwrap();
    config.resolver = NameResolver::new(Arc::new(name.clone()));
    Setup::new(POOL).start_configured(config, folder).await
}

/// Whether each worker is up, and the address of its server.
fn shown(pool: &PoolReport) -> Vec<(bool, String)> {
    let workers = pool.driver.workers.iter();
    let shown = workers.map(|worker| (worker.up, worker.address.clone().unwrap()));
    shown.collect()
}

async fn until(scheduler: &TestBed, event: &str, servers: [Option<SocketAddr>; 3]) {
    let wanted = servers.map(|server| match server {
        Some(at) => (true, at.to_string()),
        None => (false, String::new()),
    });
    let is_so = |pool: &PoolReport| shown(pool) == wanted;
    scheduler.until(event, is_so).await;
}

/// Waits until the metrics show the address of a worker's server, and no other.
async fn shows(scheduler: &TestBed, worker: &str, address: &str) {
    let give_up = Instant::now() + PATIENCE;
    let name = "switchyard_worker_address_info";
    loop {
        let metrics = scheduler.metrics().await;
        let of_worker = metrics.sum(name, &[("worker", worker)]);
        let at = metrics.sum(name, &[("worker", worker), ("address", address)]);
        if (of_worker, at) == (1, 1) {
            return;
        }
        assert!(Instant::now() < give_up, "{worker} has not {address}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_of_a_name_come_and_go_without_a_lost_request() {
    let ([a, b], _workers) = two_workers().await;
    let (name, profiles) = (Name::default(), TempDir::new().unwrap());
    name.lists(&[a]);
    let near = scheduler(&name, profiles.path()).await;
    until(&near, "one worker", [Some(a), None, None]).await;
    // Free slots do not keep the pool from being ready, once its policy is loaded.
    ready(near.http).await;

    let clients = Clients::start(near.http, 4);
    name.lists(&[b, a]);
    until(&near, "a second worker", [Some(a), Some(b), None]).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    name.lists(&[b]);
    until(&near, "one that leaves", [None, Some(b), None]).await;
    for (worker, address) in [("far-0", "none"), ("far-1", &b.to_string())] {
        shows(&near, worker, address).await;
    }
    name.lists(&[a, b]);
    until(&near, "one that is back", [Some(a), Some(b), None]).await;
    let (answered, longest) = clients.stop().await;
    println!("{answered} answers, none lost, the longest after {longest:?}");
    assert!(
        answered > 0 && longest < Duration::from_secs(2),
        "{longest:?}"
    );
    let failed = near.logged("batch failed");
    assert!(failed.is_empty(), "{failed:?}");
    near.settled().await;
    near.stop().await;

    // Without a server at the start, the profile is there already.
    name.lists(&[]);
    let near = scheduler(&name, profiles.path()).await;
    until(&near, "no worker", [None, None, None]).await;
    assert_eq!(get(near.http, "/v2/health/ready").await.status, 503);
    name.lists(&[b]);
    until(&near, "a late worker", [Some(b), None, None]).await;
    let clients = Clients::start(near.http, 2);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(clients.stop().await.0 > 0);
    near.stop().await;
}
