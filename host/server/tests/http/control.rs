//! Loads and unloads of apps by clients.

use std::io;
use std::sync::{Arc, Mutex};

use switchyard_server::ingress::Limits;
use tracing_subscriber::fmt::MakeWriter;

use super::test_bed::TestServer;

const UNLOAD: &str = "/v2/repository/models/linear/unload";
const LOAD: &str = "/v2/repository/models/linear/load";
const READY: &str = "/v2/models/linear/ready";

async fn controlled() -> TestServer {
    let limits = Limits {
        model_control: true,
        ..Limits::default()
    };
    TestServer::start(limits).await
}

#[tokio::test]
async fn model_control_is_off_unless_it_is_configured() {
    let server = TestServer::with_defaults().await;
    for path in [UNLOAD, LOAD, "/v2/repository/models/liver/unload"] {
        let answer = server.post(path, "{}").await;
        assert_eq!(answer.status, 403);
        let error = answer.error();
        assert!(
            error.contains("`model_control = true` in [server]"),
            "{error}"
        );
    }
    assert_eq!(server.get(READY).await.status, 200);
    assert_eq!(server.post("/v2/repository/index", "").await.status, 200);
}

#[tokio::test]
async fn a_web_page_of_another_origin_does_not_unload() {
    let server = controlled().await;
    for (headers, body) in [
        (&[("origin", "http://evil.example")][..], ""),
        (&[("origin", "null")], "{}"),
        // Of the same origin by a name that points here now.
        (&[("origin", "http://test")], ""),
        (&[("sec-fetch-site", "cross-site")], ""),
        (&[("content-type", "text/plain")], "{}"),
        (
            &[("content-type", "application/x-www-form-urlencoded")],
            "{}",
        ),
    ] {
        let answer = server.post_with(UNLOAD, headers, body).await;
        assert_eq!(answer.status, 403, "{headers:?}: {}", answer.error());
        assert_eq!(server.get(READY).await.status, 200);
    }
    let address = server.address.to_string();
    let origin = format!("http://{address}");
    let own = [("host", address.as_str()), ("origin", origin.as_str())];
    for (path, headers, body) in [
        (UNLOAD, &own[..], ""),
        (LOAD, &[("content-type", "application/json")], "{}"),
        (UNLOAD, &[], ""),
        (LOAD, &[("content-type", "text/plain")], ""),
    ] {
        assert_eq!(server.post_with(path, headers, body).await.status, 200);
        let ready = server.get(READY).await.status;
        assert_eq!(ready, if path == LOAD { 200 } else { 503 });
    }
}

/// Lines of the log.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Written {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn the_log_names_the_client_of_an_unload() {
    let written = Written::default();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(written.clone());
    let _logging = tracing::subscriber::set_default(subscriber.finish());
    let server = controlled().await;
    // Another test may be the first to log this line, and its log is not read.
    assert_eq!(server.post(LOAD, "").await.status, 200);
    tracing::callsite::rebuild_interest_cache();
    assert_eq!(server.post(UNLOAD, "").await.status, 200);
    let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let mut lines = log.lines().rev();
    let line = lines.find(|line| line.contains("model control")).unwrap();
    assert!(line.contains("INFO"), "{line}");
    assert!(line.contains("client=127.0.0.1:"), "{line}");
    assert!(line.contains("app=\"linear\" verb=\"unload\""), "{line}");
}
