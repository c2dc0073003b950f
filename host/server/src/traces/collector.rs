//! The collector, over HTTP without TLS: a connection for each request.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// Where OTLP collectors take spans.
const PATH: &str = "/v1/traces";

/// A collector and the runtime of the thread that sends to it.
pub(super) struct Collector {
    authority: String,
    address: (String, u16),
    path: String,
    runtime: Runtime,
}

// === impl Collector ===

impl Collector {
    /// `endpoint` is `http://HOST`, with a port and a path if there is one.
    pub(super) fn try_new(endpoint: &str) -> io::Result<Self> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "not an http:// URL");
        let uri: Uri = endpoint.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        Ok(Self {
            address: (host, authority.port_u16().unwrap_or(80)),
            authority: authority.to_string(),
            path: format!("{}{PATH}", uri.path().trim_end_matches('/')),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
        })
    }

    /// Address and path.
    pub(super) fn endpoint(&self) -> String {
        format!("http://{}{}", self.authority, self.path)
    }

    /// Sends a message; an error if the collector has not taken it within `limit`.
    pub(super) fn send(&self, message: Vec<u8>, limit: Duration) -> Result<(), String> {
        let exchange = async {
            let sent = timeout(limit, self.exchange(message)).await;
            sent.unwrap_or_else(|_| Err(format!("no answer within {} ms", limit.as_millis())))
        };
        self.runtime.block_on(exchange)
    }

    async fn exchange(&self, message: Vec<u8>) -> Result<(), String> {
        let (host, port) = &self.address;
        let stream = TcpStream::connect((host.as_str(), *port)).await;
        let stream = stream.map_err(|error| error.to_string())?;
        let request = Request::post(&self.path)
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(Full::new(Bytes::from(message)))
            .map_err(|error| error.to_string())?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        let answer = async {
            let answer = sender.send_request(request).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let status = answer.status();
            // The connection is closed only after the answer.
            let _ = answer.into_body().collect().await;
            match status {
                StatusCode::OK | StatusCode::ACCEPTED => Ok(()),
                other => Err(format!("the collector answers {other}")),
            }
        };
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            // It ends first if the collector closes it.
            _ = connection => answer.await,
        }
    }
}
