//! Traces on the real server, against a small collector.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use prost::Message;
use switchyard_server::traces::otlp::{ExportTraceServiceRequest, Span, Value};
use tokio::net::TcpListener;

use super::client::{Answer, Client, get};
use super::fixture::{beat, policy};
use super::load::Load;
use super::test_bed::{PATIENCE, Setup, TestBed};

/// Takes spans over HTTP.
struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let spans = Arc::<Mutex<Vec<Span>>>::default();
        let kept = Arc::clone(&spans);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                let service = service_fn(move |request| take(request, Arc::clone(&kept)));
                let builder = hyper::server::conn::http1::Builder::new();
                tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, spans }
    }

    /// The configuration of a server that sends here.
    fn lines(&self, share: f64) -> String {
        lines(self.address, share)
    }

    /// Waits for this number of roots; all spans.
    async fn roots(&self, count: usize) -> Vec<Span> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let spans = self.spans.lock().unwrap().clone();
            let roots = spans.iter().filter(|span| span.name == "request").count();
            if roots >= count {
                return spans;
            }
            assert!(Instant::now() < give_up, "{roots} of {count} came");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn lines(address: SocketAddr, share: f64) -> String {
    format!("traces = {{ endpoint = \"http://{address}\", share = {share:.2} }}")
}

async fn take(
    request: Request<Incoming>,
    kept: Arc<Mutex<Vec<Span>>>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    assert_eq!(request.uri().path(), "/v1/traces");
    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let message = ExportTraceServiceRequest::decode(body).unwrap();
    let scopes = message
        .resource_spans
        .into_iter()
        .flat_map(|of| of.scope_spans);
    kept.lock().unwrap().extend(scopes.flat_map(|of| of.spans));
    Ok(Response::new(Empty::new()))
}

/// Attributes as text.
fn attributes(span: &Span) -> BTreeMap<&str, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Int(int) => int.to_string(),
    };
    let pairs = span.attributes.iter().map(|of| {
        let value = of.value.as_ref().and_then(|of| of.value.as_ref());
        (&*of.key, text(value.unwrap()))
    });
    pairs.collect()
}

fn named<'a>(spans: &'a [Span], name: &str) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

async fn infer(client: &mut Client, nth: u64, parent: Option<&str>) -> Answer {
    let headers: Vec<_> = parent
        .map(|parent| ("traceparent", parent))
        .into_iter()
        .collect();
    let path = "/v2/models/heart/infer";
    client
        .send_with("POST", path, &headers, beat(nth))
        .await
        .unwrap()
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_with_a_sampled_parent_is_traced_with_its_reason() {
    let collector = Collector::start().await;
    let setup = Setup::new("traced").policy(policy("sneakpeek"));
    let test_bed = setup.server(&collector.lines(0.0)).start().await;
    let mut client = test_bed.client().await;
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = |flags: &str| format!("00-{trace}-00f067aa0ba902b7-{flags}");
    for parent in [None, Some(parent("00")), Some("wrong".to_owned())] {
        assert_eq!(infer(&mut client, 1, parent.as_deref()).await.status, 200);
    }
    let before = now_ns();
    let answer = infer(&mut client, 2, Some(&parent("01"))).await;
    let after = now_ns();
    assert!(answer.policy().starts_with("sneakpeek@"));
    let spans = collector.roots(1).await;

    let [root] = named(&spans, "request")[..] else {
        panic!("only the sampled one: {spans:#?}");
    };
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    assert_eq!(hex(&root.parent_span_id), "00f067aa0ba902b7");
    assert_eq!((root.kind, &root.status), (2, &None));
    let slack_ns = 100_000_000;
    assert!(root.start_time_unix_nano + slack_ns >= before, "{root:?}");
    assert!(root.end_time_unix_nano <= after + slack_ns, "{root:?}");
    let said = answer.json()["parameters"].clone();
    let of_root = attributes(root);
    for key in ["policy", "variant", "exit"] {
        let shown = &of_root[&*format!("switchyard.{key}")];
        assert_eq!(&said[key], shown, "{said} {of_root:?}");
    }
    assert_eq!(of_root["switchyard.app"], "heart");
    assert!(["in_time", "late"].contains(&&*of_root["switchyard.outcome"]));
    assert_eq!(of_root["switchyard.rows"], "1");

    for span in &spans {
        assert_eq!(hex(&span.trace_id), trace);
        assert!(
            span.start_time_unix_nano >= root.start_time_unix_nano,
            "{spans:#?}"
        );
        assert!(
            span.end_time_unix_nano <= root.end_time_unix_nano,
            "{spans:#?}"
        );
        assert!(
            span.start_time_unix_nano <= span.end_time_unix_nano,
            "{span:#?}"
        );
        if span.name != "request" {
            assert_eq!(span.parent_span_id, root.span_id);
        }
    }
    let one = |name: &str| {
        let found = named(&spans, name);
        assert_eq!(found.len(), 1, "{name}: {spans:#?}");
        found[0]
    };
    let (queue, window, compute) = (one("queue"), one("window"), one("compute"));
    assert_eq!(queue.start_time_unix_nano, root.start_time_unix_nano);
    assert_eq!(queue.end_time_unix_nano, compute.start_time_unix_nano);
    assert!(window.end_time_unix_nano <= compute.end_time_unix_nano);

    // As the admin port explains the same window.
    let of_window = attributes(window);
    assert_eq!(of_window["switchyard.window"], said["window"].to_string());
    assert_eq!(
        of_window["switchyard.policy"],
        said["policy"].as_str().unwrap()
    );
    let path = format!("/admin/v1/windows/{}", said["window"]);
    let decision = get(test_bed.admin, &path).await.json();
    let dispatch = &decision["plan"]["dispatches"][0];
    assert_eq!(
        dispatch["reason"]["text"], of_window["switchyard.reason"],
        "{decision}"
    );
    let of_compute = attributes(compute);
    assert!(of_compute["switchyard.worker"].starts_with("traced-"));
    assert_eq!(of_compute["switchyard.batch_size"], "1");
    assert_eq!(of_compute["switchyard.stages"].split(" to ").count(), 2);
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_of_a_share_of_1_has_one_root() {
    let collector = Collector::start().await;
    let setup = Setup::new("all-traced").policy(policy("fcfs"));
    let test_bed = setup.server(&collector.lines(1.0)).start().await;
    let load = Load::start(test_bed.http, 4);
    load.answered_by("fcfs@", 500).await;
    let tally = load.stop().await;
    let answered: u64 = tally.by_policy.values().sum();
    // The last traces are exported before the server has stopped.
    test_bed.stop().await;
    let spans = collector.spans.lock().unwrap().clone();
    let roots = named(&spans, "request");
    assert_eq!(roots.len() as u64, answered);
    let traces: std::collections::BTreeSet<_> = roots.iter().map(|root| &root.trace_id).collect();
    assert_eq!(traces.len(), roots.len());
    assert!(roots.iter().all(|root| root.parent_span_id.is_empty()));
    for name in ["queue", "window", "compute"] {
        let children = named(&spans, name);
        let parents: std::collections::BTreeSet<_> =
            children.iter().map(|span| &span.parent_span_id).collect();
        assert_eq!(parents.len(), roots.len(), "{name}");
    }
}

/// All of its requests are answered, and their traces counted as dropped.
async fn serves_without_traces(test_bed: TestBed, wanted: u64) {
    let load = Load::start(test_bed.http, 2);
    load.answered_by("fcfs@", wanted).await;
    let tally = load.stop().await;
    assert!(tally.failed.is_empty(), "{tally:?}");
    let answered: u64 = tally.by_policy.values().sum();
    let give_up = Instant::now() + PATIENCE;
    loop {
        let exposed = test_bed.exposition().await;
        let mut lines = exposed.lines();
        let dropped = lines.find_map(|line| line.strip_prefix("switchyard_traces_dropped_total "));
        let dropped: u64 = dropped.unwrap().parse().unwrap();
        assert!(dropped <= answered, "{dropped} of {answered}");
        if dropped == answered {
            break;
        }
        assert!(Instant::now() < give_up, "{dropped} of {answered}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_collector_costs_traces_and_nothing_else() {
    let nothing = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nothing.local_addr().unwrap();
    drop(nothing);
    let setup = Setup::new("no-collector").policy(policy("fcfs"));
    let test_bed = setup.server(&lines(address, 1.0)).start().await;
    serves_without_traces(test_bed, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_never_answers_costs_traces_and_nothing_else() {
    // Connects, and no more.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let setup = Setup::new("silent-collector").policy(policy("fcfs"));
    let test_bed = setup.server(&lines(address, 1.0)).start().await;
    // More than the queue holds.
    serves_without_traces(test_bed, 4_000).await;
    drop(silent);
}
