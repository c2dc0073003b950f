//! Sends requests when they are due, without waiting for earlier ones, and records each outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, StatusCode, Uri};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout};

use super::score::{Answered, End, Outcome};
use super::workload::Request;

/// Length of the JSON part of a body with binary tensors.
const JSON_LENGTH: &str = "inference-header-content-length";

/// After this long without an answer a request counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Most requests in flight. Further ones wait here, which counts as latency, because it begins when a
/// request is due. Below the limit of open files of every system.
const CONNECTIONS_MAX: usize = 768;

/// Sends to the apps of one server. Clones share connections.
#[derive(Clone)]
pub(super) struct Client {
    http: HttpClient<HttpConnector, Full<Bytes>>,
    /// Name and address of each app.
    apps: Arc<[(String, Uri)]>,
    connections: Arc<Semaphore>,
    sent: Arc<AtomicU64>,
    in_flight: Arc<AtomicU64>,
}

/// The fields of an answer that the demo reads.
#[derive(Deserialize)]
struct Reply {
    model_version: String,
    parameters: ReplyParameters,
    outputs: Vec<ReplyOutput>,
}

#[derive(Deserialize)]
struct ReplyParameters {
    exit: String,
    policy: String,
    short_circuit: bool,
}

#[derive(Deserialize)]
struct ReplyOutput {
    name: String,
    data: Vec<usize>,
}

#[derive(Deserialize)]
struct Complaint {
    error: String,
}

// === impl Client ===

impl Client {
    /// Sends to `/v2/models/{app}/infer` at `address`.
    pub(super) fn new(
        address: std::net::SocketAddr,
        apps: impl Iterator<Item = String>,
    ) -> Result<Self, String> {
        let target = |app: String| {
            let uri = format!("http://{address}/v2/models/{app}/infer");
            let parsed = uri.parse().map_err(|error| format!("{uri}: {error}"));
            parsed.map(|uri| (app, uri))
        };
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Ok(Self {
            http: HttpClient::builder(TokioExecutor::new()).build(connector),
            apps: apps.map(target).collect::<Result<_, _>>()?,
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            sent: Arc::default(),
            in_flight: Arc::default(),
        })
    }

    /// Requests sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Requests without an outcome.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Sends without waiting; the outcome goes to `outcomes`.
    pub(super) fn send(&self, request: Request, due: Instant, outcomes: UnboundedSender<Outcome>) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let client = self.clone();
        tokio::spawn(async move {
            let (app, deadline) = (request.app, request.deadline);
            let exchange = async {
                // The semaphore is never closed, so the permit always comes.
                let _permit = client.connections.acquire().await;
                client.exchange(request).await
            };
            let end = match timeout(PATIENCE, exchange).await {
                Ok(end) => end,
                Err(_) => End::Lost(format!("no answer within {} s", PATIENCE.as_secs())),
            };
            client.in_flight.fetch_sub(1, Ordering::Relaxed);
            // An error means that the receiver is gone.
            let _ = outcomes.send(Outcome {
                app,
                // From the due time: a server that delays the client is charged for it.
                latency: due.elapsed(),
                deadline,
                end,
            });
        });
    }

    async fn exchange(&self, request: Request) -> End {
        let Some((app, uri)) = self.apps.get(request.app) else {
            return End::Lost(format!("no app {} to send to", request.app));
        };
        let mut post = hyper::Request::new(Full::new(request.body));
        *post.method_mut() = Method::POST;
        *post.uri_mut() = uri.clone();
        if let Some(length) = request.json_length {
            post.headers_mut().insert(JSON_LENGTH, length.into());
        }
        let response = match self.http.request(post).await {
            Ok(response) => response,
            Err(error) => return End::Lost(chain(&error)),
        };
        let status = response.status();
        let body = match response.into_body().collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => return End::Lost(chain(&error)),
        };
        end_of(app, status, &body, request.label)
    }
}

/// An error with all its causes: hyper's own message names only the step.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let words: Vec<String> = causes.map(ToString::to_string).collect();
    words.join(": ")
}

fn end_of(app: &str, status: StatusCode, body: &[u8], label: usize) -> End {
    if status != StatusCode::OK {
        let error = serde_json::from_slice::<Complaint>(body).map_or_else(
            |_| String::from_utf8_lossy(body).into_owned(),
            |it| it.error,
        );
        let status = status.as_u16();
        return End::Refused { status, error };
    }
    // An unreadable answer counts as lost.
    let reply: Reply = match serde_json::from_slice(body) {
        Ok(reply) => reply,
        Err(error) => return End::Lost(format!("unreadable answer: {error}")),
    };
    let labels = reply.outputs.iter().find(|output| output.name == "label");
    let Some([said]) = labels.map(|output| output.data.as_slice()) else {
        return End::Lost("an answer without its label".to_owned());
    };
    let parameters = reply.parameters;
    End::Answered(Answered {
        right: *said == label,
        policy: parameters.policy,
        ran: if parameters.short_circuit {
            format!("{app}/evidence")
        } else {
            format!("{app}/{}:{}", reply.model_version, parameters.exit)
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(status: u16, body: &str) -> End {
        end_of(
            "heart",
            StatusCode::from_u16(status).expect("a status"),
            body.as_bytes(),
            3,
        )
    }

    #[test]
    fn an_answer_is_right_when_its_label_is() {
        let body = r#"{"model_name": "heart", "model_version": "cnn",
            "parameters": {"exit": "final", "policy": "p@1", "short_circuit": false},
            "outputs": [{"name": "label", "datatype": "INT64", "shape": [1, 1], "data": [3]}]}"#;
        let End::Answered(answered) = end(200, body) else {
            panic!("an answer");
        };
        assert!(answered.right);
        assert_eq!(
            (answered.policy.as_str(), answered.ran.as_str()),
            ("p@1", "heart/cnn:final")
        );
        let wrong = body.replace("[3]", "[4]");
        assert!(matches!(
            end(200, &wrong),
            End::Answered(Answered { right: false, .. })
        ));
        let evidence = body.replace("false", "true");
        assert!(matches!(end(200, &evidence), End::Answered(it) if it.ran == "heart/evidence"));
    }

    #[test]
    fn refused_and_lost_requests_are_distinguished() {
        let refused = end(429, r#"{"error": "full"}"#);
        assert!(matches!(refused, End::Refused { status: 429, error } if error == "full"));
        assert!(matches!(end(200, "{}"), End::Lost(_)));
        assert!(matches!(end(502, "gateway"), End::Refused { error, .. } if error == "gateway"));
    }
}
