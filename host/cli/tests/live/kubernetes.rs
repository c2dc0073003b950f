//! The files of `packaging/kubernetes`. They are checked without a cluster.

use std::path::{Path, PathBuf};

use serde_json::json;
use switchyard_server::config::Config;
use switchyard_server::sockets::ListenAddress;

use super::super::pypi::check_manifests;

/// The metric by which workers are scaled.
const DESIRED: &str = "switchyard_workers_desired";

fn base() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/kubernetes/base")
}

#[test]
fn the_manifests_are_valid_and_fit_their_configuration() {
    let config = Config::read(&base().join("switchyard.toml")).unwrap();
    let server = &config.server;
    let port = |address: Option<std::net::SocketAddr>| address.unwrap().port();
    let [worker] = &config.workers[..] else {
        panic!("{:?}", config.workers);
    };
    let remote = worker.remote.as_ref().unwrap();
    let written = [
        Some(&config.policies.dir),
        config.policies.cache.as_ref(),
        Some(&config.profile.dir),
    ];
    let facts = json!({
        "ports": {
            "http": port(server.http.tcp()),
            "grpc": port(server.grpc.as_ref().and_then(ListenAddress::tcp)),
            "admin": port(server.admin.tcp()),
        },
        "drain_ms": server.drain_delay_ms + server.drain_timeout_ms,
        "writes": written,
        "worker": worker.name,
        "threads": worker.threads,
        "at_most": remote.at_most,
        "url": remote.url,
        "metric": format!("{DESIRED}{{pool=\"{}\"}}", config.pools[0].name),
    });
    check_manifests(
        Path::new(env!("CARGO_BIN_EXE_switchyard")),
        &facts.to_string(),
    );
}
