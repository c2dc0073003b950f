//! A worker that demands certificates.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchyard_remote::{
    ClientFiles, ConnectError, RemoteExecutor, RemoteOptions, RemoteTls, StageRanges,
};

use crate::free_address::free_address;

use super::binary::Process;
use super::remote::{app_models, compare, worker_process};
use super::test_bed::PATIENCE;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../server/tests/tls")
        .join(name)
}

fn worker(at: SocketAddr) -> Process {
    worker_process("far-a", at, |command| {
        command.arg("--certificate").arg(file("server.pem"));
        command.arg("--key").arg(file("server.key"));
        command.arg("--client-ca").arg(file("ca.pem"));
    })
}

fn options(url: &str, ca: &str, client: Option<&str>) -> RemoteOptions {
    RemoteOptions {
        address: url.parse().unwrap(),
        tls: Some(RemoteTls {
            ca: file(ca),
            client: client.map(|name| ClientFiles {
                certificate: file(&format!("{name}.pem")),
                key: file(&format!("{name}.key")),
            }),
        }),
        timeout: Duration::from_secs(10),
        models: Arc::clone(&app_models()),
        stages: StageRanges::IfOffered,
    }
}

fn refused(options: RemoteOptions) -> String {
    match RemoteExecutor::connect(options) {
        Ok(_) => panic!("it connects"),
        Err(ConnectError::Away(reason)) => reason,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn only_a_certificate_of_the_right_authority_gets_a_link() {
    let at = free_address();
    let _worker = worker(SocketAddr::from(([0, 0, 0, 0], at.port())));
    let url = format!("grpcs://127.0.0.1:{}", at.port());
    let give_up = Instant::now() + PATIENCE;
    while let Err(error) = RemoteExecutor::connect(options(&url, "ca.pem", Some("client"))) {
        let error = error.to_string();
        // Its models are loaded first.
        assert!(error.contains("is not ready"), "{error}");
        assert!(Instant::now() < give_up, "{error}");
        std::thread::sleep(Duration::from_millis(20));
    }
    compare(options(&url, "ca.pem", Some("client")));

    for client in [Some("foreign-client"), Some("expired-client"), None] {
        let reason = refused(options(&url, "ca.pem", client));
        assert!(
            reason.contains("refuses the certificate of this side"),
            "{client:?}: {reason}"
        );
    }
    let reason = refused(options(&url, "foreign-ca.pem", Some("client")));
    assert!(reason.contains("`ca`"), "{reason}");
    let other = url.replace("127.0.0.1", "127.0.0.2");
    let reason = refused(options(&other, "ca.pem", Some("client")));
    assert!(reason.contains("not valid for name"), "{reason}");
    let plain = RemoteOptions {
        address: url.replace("grpcs", "grpc").parse().unwrap(),
        tls: None,
        ..options(&url, "ca.pem", None)
    };
    refused(plain);
}
