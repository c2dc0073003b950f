//! Sends each request when it is due, whatever became of the earlier ones.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, StatusCode, Uri};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::inputs::Body;

/// Length of the JSON part of a body with binary tensors.
const JSON_LENGTH: &str = "inference-header-content-length";

/// After this long without a reply a request counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Connections that are opened before the first request is due.
const CONNECTIONS: usize = 64;

/// Least time from the opened connections to the start of the run.
const SETTLE: Duration = Duration::from_millis(300);

/// A run starts at a multiple of this on the server's clock, as a simulation starts at 0: windows of
/// policies end at multiples of their length.
const START_EVERY: Duration = Duration::from_secs(1);

/// A request to send.
pub(super) struct Due {
    /// From the start of the run.
    pub(super) at: Duration,
    pub(super) uri: Uri,
    pub(super) body: Body,
}

/// A request and its reply.
pub(super) struct Exchange {
    /// Its position.
    pub(super) request: usize,
    /// From when it was due until it was sent.
    pub(super) late: Duration,
    /// From when it was due until its reply was there.
    pub(super) latency: Duration,
    /// Status and body; an error without a reply.
    pub(super) reply: Result<(StatusCode, Bytes), String>,
}

#[derive(Clone)]
struct Client {
    http: HttpClient<HttpConnector, Full<Bytes>>,
    exchanges: mpsc::UnboundedSender<Exchange>,
}

/// Sends all requests, from this thread and another one on this core; the exchanges in the order of the
/// replies. The server's clock had its zero at `origin`.
pub(super) fn send(
    address: SocketAddr,
    origin: Instant,
    requests: Vec<Due>,
    core: Option<usize>,
) -> Result<Vec<Exchange>, String> {
    let pin = move || core.map_or(Ok(()), switchyard_threads::pin);
    pin().map_err(|error| format!("core {core:?}: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let (exchanges, mut ended) = mpsc::unbounded_channel();
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client {
        http: HttpClient::builder(TokioExecutor::new()).build(connector),
        exchanges,
    };
    let count = requests.len();
    runtime.block_on(async {
        client.open(address).await?;
        let (handle, sender) = (Handle::current(), client.clone());
        // A thread of its own: the runtime's timers are a millisecond wide.
        let clock = std::thread::spawn(move || {
            let _ = pin().and_then(|()| switchyard_threads::exact_timers());
            sender.send_due(&handle, start_after(origin, Instant::now()), requests);
        });
        let mut all = Vec::with_capacity(count);
        while all.len() < count {
            match ended.recv().await {
                Some(exchange) => all.push(exchange),
                None => break,
            }
        }
        clock
            .join()
            .map_err(|_| "the client's clock panicked".to_owned())?;
        Ok(all)
    })
}

// === impl Client ===

impl Client {
    /// Opens connections, which later requests share.
    async fn open(&self, address: SocketAddr) -> Result<(), String> {
        let uri = format!("http://{address}/v2/health/live");
        let uri: Uri = uri.parse().map_err(|error| format!("{uri}: {error}"))?;
        let looks = (0..CONNECTIONS).map(|_| {
            let (client, uri) = (self.clone(), uri.clone());
            tokio::spawn(async move { client.exchange(Method::GET, uri, None).await })
        });
        for look in looks.collect::<Vec<_>>() {
            look.await.map_err(|error| error.to_string())??;
        }
        Ok(())
    }

    fn send_due(&self, handle: &Handle, start: Instant, requests: Vec<Due>) {
        for (request, due) in requests.into_iter().enumerate() {
            let client = self.clone();
            let at = start + due.at;
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            handle.spawn(async move {
                let late = at.elapsed();
                let sent = client.exchange(Method::POST, due.uri, Some(due.body));
                let reply = match timeout(PATIENCE, sent).await {
                    Ok(reply) => reply,
                    Err(_) => Err(format!("no reply within {} s", PATIENCE.as_secs())),
                };
                // An error: the run was given up.
                let _ = client.exchanges.send(Exchange {
                    request,
                    late,
                    latency: at.elapsed(),
                    reply,
                });
            });
        }
    }

    async fn exchange(
        &self,
        method: Method,
        uri: Uri,
        body: Option<Body>,
    ) -> Result<(StatusCode, Bytes), String> {
        let json_length = body.as_ref().map(|body| body.json_length);
        let bytes = body.map(|body| body.bytes).unwrap_or_default();
        let mut post = hyper::Request::new(Full::new(bytes));
        *post.method_mut() = method;
        *post.uri_mut() = uri;
        if let Some(length) = json_length {
            post.headers_mut().insert(JSON_LENGTH, length.into());
        }
        let response = self.http.request(post).await.map_err(chain)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(chain)?;
        Ok((status, body.to_bytes()))
    }
}

/// The first start on the server's clock that leaves time to settle.
fn start_after(origin: Instant, now: Instant) -> Instant {
    let earliest = (now + SETTLE).saturating_duration_since(origin);
    let starts = earliest.as_nanos().div_ceil(START_EVERY.as_nanos());
    origin + START_EVERY * u32::try_from(starts).unwrap_or(u32::MAX)
}

/// An error with its causes: hyper's own message names only the step.
fn chain(error: impl std::error::Error) -> String {
    let first: &dyn std::error::Error = &error;
    let causes = std::iter::successors(Some(first), |error| error.source());
    let words: Vec<String> = causes.map(ToString::to_string).collect();
    words.join(": ")
}

/// A GET on a connection of its own; the body of a reply with 200.
pub(super) async fn get(uri: &str) -> Result<Bytes, String> {
    let (exchanges, _ended) = mpsc::unbounded_channel();
    let client = Client {
        http: HttpClient::builder(TokioExecutor::new()).build(HttpConnector::new()),
        exchanges,
    };
    let parsed = uri.parse().map_err(|error| format!("{uri}: {error}"))?;
    let (status, body) = client.exchange(Method::GET, parsed, None).await?;
    match status {
        StatusCode::OK => Ok(body),
        other => Err(format!("{uri}: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_starts_at_a_whole_second_of_the_servers_clock() {
        let origin = Instant::now();
        let after = |ms| start_after(origin, origin + Duration::from_millis(ms)) - origin;
        assert_eq!(after(0), Duration::from_secs(1));
        assert_eq!(after(700), Duration::from_secs(1));
        assert_eq!(after(701), Duration::from_secs(2));
    }
}
