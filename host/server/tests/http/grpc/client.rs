//! A client of gRPC on hyper, which can also be a bad one.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::HeaderMap;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use switchyard_protocol::grpc::messages::inference::model_infer_request::InferInputTensor;
use switchyard_protocol::grpc::messages::inference::{
    InferTensorContents, ModelInferRequest, ModelInferResponse,
};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::http::test_bed::TestServer;

/// Path of the calls of Triton's service.
pub(super) const SERVICE: &str = "/inference.GRPCInferenceService/";

/// One connection.
pub(super) struct Client {
    pub(super) sender: SendRequest<Messages>,
    /// Ends with the connection.
    pub(super) driving: JoinHandle<hyper::Result<()>>,
    socket: std::net::TcpStream,
}

/// The body of a request: frames as they are sent.
pub(super) struct Messages(mpsc::UnboundedReceiver<Bytes>);

/// An answer with everything that the client reads.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: u16,
    pub(super) text: String,
    pub(super) trailers: HeaderMap,
    pub(super) messages: Vec<Bytes>,
}

// === impl Client ===

impl Client {
    pub(super) async fn of(server: &TestServer) -> Self {
        Self::with(server, |_| {}).await
    }

    /// With options of its own.
    pub(super) async fn with(
        server: &TestServer,
        options: impl FnOnce(&mut http2::Builder<TokioExecutor>),
    ) -> Self {
        let stream = TcpStream::connect(server.grpc).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let stream = stream.into_std().unwrap();
        let socket = stream.try_clone().unwrap();
        let stream = TcpStream::from_std(stream).unwrap();
        let mut builder = http2::Builder::new(TokioExecutor::new());
        options(&mut builder);
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        Self {
            sender,
            driving: tokio::spawn(connection),
            socket,
        }
    }

    /// Closes the connection in the middle of all calls.
    pub(super) fn go(&self) {
        self.socket.shutdown(std::net::Shutdown::Both).unwrap();
    }

    /// Sends the headers of a call; its messages follow.
    pub(super) async fn open(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (
        mpsc::UnboundedSender<Bytes>,
        impl Future<Output = hyper::Result<Response<Incoming>>> + use<>,
    ) {
        let (messages, body) = mpsc::unbounded_channel();
        let mut request = Request::post(format!("http://test{path}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Messages::of(body)).unwrap();
        self.sender.ready().await.unwrap();
        (messages, self.sender.send_request(request))
    }

    /// A call of one message and its end.
    pub(super) async fn call(&mut self, path: &str, message: &impl Message) -> Ended {
        self.call_with(path, &[], frame(message)).await
    }

    pub(super) async fn call_with(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Ended {
        let (messages, answer) = self.open(path, headers).await;
        messages.send(body).unwrap();
        drop(messages);
        Ended::read(answer.await.unwrap()).await
    }

    /// An inference that succeeds.
    pub(super) async fn infer(&mut self, request: &ModelInferRequest) -> ModelInferResponse {
        let ended = self.call(&format!("{SERVICE}ModelInfer"), request).await;
        ended.message()
    }
}

/// A message with its prefix.
pub(super) fn frame(message: &impl Message) -> Bytes {
    let message = message.encode_to_vec();
    let mut bytes = BytesMut::from(&[0][..]);
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&message);
    bytes.freeze()
}

/// One raw row of three numbers.
pub(super) fn one_row(app: &str) -> ModelInferRequest {
    rows(app, &[1.0, 2.0, 3.0])
}

/// Raw rows of three numbers.
pub(super) fn rows(app: &str, values: &[f32]) -> ModelInferRequest {
    let raw: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    ModelInferRequest {
        raw_input_contents: vec![raw.into()],
        ..with_contents(app, values.len() / 3, None)
    }
}

/// The same with typed elements.
pub(super) fn typed_rows(app: &str, values: &[f32]) -> ModelInferRequest {
    let contents = InferTensorContents {
        fp32_contents: values.to_vec(),
        ..InferTensorContents::default()
    };
    with_contents(app, values.len() / 3, Some(contents))
}

fn with_contents(
    app: &str,
    rows: usize,
    contents: Option<InferTensorContents>,
) -> ModelInferRequest {
    ModelInferRequest {
        model_name: app.to_owned(),
        inputs: vec![InferInputTensor {
            name: "x".to_owned(),
            datatype: "FP32".to_owned(),
            shape: vec![rows as i64, 3],
            contents,
            ..InferInputTensor::default()
        }],
        ..ModelInferRequest::default()
    }
}

// === impl Ended ===

impl Ended {
    pub(super) async fn read(response: Response<Incoming>) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "application/grpc");
        let (head, body) = response.into_parts();
        let collected = body.collect().await.unwrap();
        // Without a message the headers are the trailers.
        let trailers = collected.trailers().cloned().unwrap_or(head.headers);
        let mut messages = Vec::new();
        let mut rest = collected.to_bytes();
        while !rest.is_empty() {
            assert_eq!(rest.get_u8(), 0, "compressed");
            let length = rest.get_u32() as usize;
            messages.push(rest.split_to(length));
        }
        let text = trailers
            .get("grpc-message")
            .map(|text| text.to_str().unwrap());
        Self {
            code: trailers["grpc-status"].to_str().unwrap().parse().unwrap(),
            text: text.unwrap_or_default().to_owned(),
            trailers,
            messages,
        }
    }

    /// The only message of a call that succeeded.
    pub(super) fn message<M: Message + Default>(&self) -> M {
        assert_eq!((self.code, &*self.text), (0, ""), "{self:?}");
        assert_eq!(self.messages.len(), 1);
        M::decode(self.messages[0].clone()).unwrap()
    }

    /// Code and text of a call that failed.
    pub(super) fn failure(&self) -> (u16, &str) {
        assert!(self.messages.is_empty());
        (self.code, &self.text)
    }
}

// === impl Messages ===

impl Messages {
    pub(super) fn of(messages: mpsc::UnboundedReceiver<Bytes>) -> Self {
        Self(messages)
    }
}

impl Body for Messages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.0.poll_recv(context);
        message.map(|message| message.map(|message| Ok(Frame::data(message))))
    }
}
