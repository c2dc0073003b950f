//! A client that keeps its connection.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, RETRY_AFTER};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::fixture::APP;

/// One connection.
pub(crate) struct Client {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
}

/// A response, read whole.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) text: String,
}

// === impl Client ===

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { address, sender }
    }

    /// Sends a request and reads the answer; an error says that there was none.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        body: String,
    ) -> Result<Answer, String> {
        self.send_with(method, path, &[], body).await
    }

    /// The same with these headers.
    pub(crate) async fn send_with(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Result<Answer, String> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let no_answer = |error: hyper::Error| error.to_string();
        self.sender.ready().await.map_err(no_answer)?;
        let response = self.sender.send_request(request).await.map_err(no_answer)?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.map(|value| value.to_str().unwrap().to_owned());
        let body = response.into_body().collect().await.map_err(no_answer)?;
        Ok(Answer {
            status,
            retry_after,
            text: String::from_utf8(body.to_bytes().to_vec()).unwrap(),
        })
    }

    /// An inference of the app.
    pub(crate) async fn infer(&mut self, body: String) -> Answer {
        let path = format!("/v2/models/{APP}/infer");
        self.send("POST", &path, body).await.unwrap()
    }
}

/// A request on a connection of its own.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    let mut client = Client::connect(address).await;
    client.send("GET", path, String::new()).await.unwrap()
}

// === impl Answer ===

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Who decided, of an answer.
    pub(crate) fn policy(&self) -> String {
        assert_eq!(self.status, 200, "{}", self.text);
        self.json()["parameters"]["policy"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The message of an error.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }
}
