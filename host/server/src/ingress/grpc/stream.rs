//! `ModelStreamInfer`: inferences of one call, answered in their order.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;

use hyper::Response;
use switchyard_protocol::grpc::messages::inference::ModelStreamInferResponse;
use switchyard_protocol::grpc::{Envelope, Status};
use switchyard_protocol::{InferError, RequestFailure};
use tokio::task::{JoinError, JoinHandle};

use super::super::backend::Backend;
use super::answer::{AnswerBody, Outbound};
use super::call::Call;
use super::calls::written;
use super::inbound::{Inbound, Message};
use super::infer::infer_message;

/// Inferences of one stream at a time; further messages wait in the client.
const UNDER_WAY_MAX: usize = 32;

/// An inference of the stream, which ends when the stream does.
struct Running(JoinHandle<Result<Vec<u8>, RequestFailure>>);

/// Begins the stream.
pub(super) fn infer<B: Backend>(call: Call<B>, inbound: Inbound) -> Response<AnswerBody> {
    let (response, outbound) = AnswerBody::many(&call.connection);
    tokio::spawn(serve(call, inbound, outbound));
    response
}

async fn serve<B: Backend>(call: Call<B>, mut inbound: Inbound, outbound: Outbound) {
    let call = Arc::new(call);
    let mut draining = pin!(call.service.draining());
    let mut running = VecDeque::new();
    // How the stream ends once the running inferences have.
    let mut end = None;
    while end.is_none() || !running.is_empty() {
        let reads = end.is_none() && running.len() < UNDER_WAY_MAX;
        tokio::select! {
            biased;
            () = outbound.closed() => return,
            answered = ended(&mut running) => {
                if outbound.send(message_of(answered)).await.is_err() {
                    return;
                }
            }
            () = draining.as_mut(), if end.is_none() => {
                end = Some(Status::from(&InferError::Draining.into()));
            }
            message = inbound.next(&call.service, &call.connection), if reads => match message {
                Ok(Some(message)) => running.push_back(Running::start(&call, message)),
                Ok(None) => end = Some(Status::OK),
                Err(error) => {
                    let failure = error.into();
                    call.service.begin().on_failure(None, &failure, "ModelStreamInfer");
                    end = Some(Status::from(&failure));
                }
            },
        }
    }
    outbound.end(end.unwrap_or(Status::OK)).await;
}

/// The end of the first inference, or never. Cancel safe.
async fn ended(
    running: &mut VecDeque<Running>,
) -> Result<Result<Vec<u8>, RequestFailure>, JoinError> {
    let Some(first) = running.front_mut() else {
        return std::future::pending().await;
    };
    let ended = (&mut first.0).await;
    running.pop_front();
    ended
}

/// The stream goes on after an inference that failed: its message has the text.
fn message_of(answered: Result<Result<Vec<u8>, RequestFailure>, JoinError>) -> Vec<u8> {
    let failure = match answered {
        Ok(Ok(message)) => return message,
        Ok(Err(failure)) => failure,
        Err(error) => InferError::Failed(format!("the inference stopped: {error}")).into(),
    };
    let message = ModelStreamInferResponse {
        error_message: failure.message(),
        infer_response: None,
    };
    // A message of two kilobytes has a frame.
    written(&message).unwrap_or_default()
}

// === impl Running ===

impl Running {
    fn start<B: Backend>(call: &Arc<Call<B>>, message: Message) -> Self {
        let call = Arc::clone(call);
        let exchange = call.exchange();
        Self(tokio::spawn(async move {
            let _exchange = exchange;
            let mut app = None;
            let answered = infer_message(&call, message, Envelope::Stream, &mut app).await;
            answered.inspect_err(|failure| {
                call.service
                    .begin()
                    .on_failure(app, failure, "ModelStreamInfer");
            })
        }))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}
