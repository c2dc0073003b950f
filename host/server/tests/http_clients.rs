//! The unmodified PyPI clients against both ports, in front of a backend without models.

#![allow(clippy::unwrap_used)]

use switchyard_server::ingress::Limits;

#[path = "../../../tests/common/pypi.rs"]
mod pypi;
#[path = "http/test_bed.rs"]
#[expect(dead_code, reason = "shared with tests that use more of it")]
mod test_bed;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clients_from_pypi_get_their_answers() {
    let limits = Limits {
        model_control: true,
        ..Limits::default()
    };
    let server = test_bed::TestServer::start(limits).await;
    pypi::drive(server.address, server.grpc, "linear").await;
}
