//! The unmodified PyPI clients against the HTTP port, in front of a small backend.

#![allow(clippy::unwrap_used)]

#[path = "http/bench.rs"]
#[expect(dead_code, reason = "shared with the tests that need more of it")]
mod bench;
#[path = "common/pypi.rs"]
mod pypi;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clients_from_pypi_are_content() {
    let server = bench::Server::with_defaults().await;
    pypi::drive(server.address, "linear").await;
}
