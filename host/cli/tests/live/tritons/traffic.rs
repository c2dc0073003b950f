//! Requests over gRPC that arrive at random times, and the fate of each.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::header::HeaderMap;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use switchyard_protocol::grpc::frame;
use switchyard_protocol::grpc::messages::inference::infer_parameter::ParameterChoice;
use switchyard_protocol::grpc::messages::inference::model_infer_request::{
    InferInputTensor, InferRequestedOutputTensor,
};
use switchyard_protocol::grpc::messages::inference::{
    InferParameter, ModelInferRequest, ModelInferResponse,
};
use switchyard_sim::random::{Purpose, Stream};
use switchyard_training::data::{Generator, Mix};
use switchyard_training::heart::{Heart, SAMPLES, workload_mix};
use tokio::net::TcpStream;

use super::super::fixture::APP;
use super::servers::SleepingModel;
use super::setup::SLO;

/// Connections to each server; each has at most 128 requests at a time.
const CONNECTIONS: usize = 12;

/// Different inputs.
const INPUTS: usize = 256;

/// Statuses of gRPC with which the scheduler ends a request whose deadline cannot be met.
const REFUSED: [u16; 2] = [4, 8];

/// Triton's status and text of a request that has waited too long.
const TIMED_OUT: (u16, &str) = (14, "Request timeout expired");

/// The servers that requests go to.
pub(super) enum Target<'a> {
    /// Each server in turn.
    InTurn {
        servers: &'a [SocketAddr],
        model: SleepingModel,
        /// Longest wait in a server's queue; then it refuses.
        waits_at_most: Option<Duration>,
    },
    /// The scheduler, which chooses.
    Scheduler(SocketAddr),
}

/// The fates of the requests of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) sent: u64,
    pub(super) in_time: u64,
    pub(super) late: u64,
    /// Ended with a status that says that there is no time for it.
    pub(super) refused: u64,
    /// Ended with another status, by its text.
    pub(super) failed: BTreeMap<String, u64>,
    /// Without an end, or with another request's answer.
    pub(super) lost: Vec<String>,
    /// Answers in time by variant or model.
    pub(super) by_model: BTreeMap<String, u64>,
    /// From the arrival to the end.
    pub(super) longest: Duration,
}

/// The request, and whether the answer has the request's own number.
pub(super) struct Load {
    pub(super) per_s: f64,
    pub(super) length: Duration,
    pub(super) seed: u64,
    /// All servers answer with the first number of the row.
    pub(super) has_marks: bool,
}

/// Sends all requests of a load, none of which waits for another, and waits for all ends.
pub(super) async fn run(target: Target<'_>, load: Load) -> Tally {
    let servers = match &target {
        Target::InTurn { servers, .. } => servers.to_vec(),
        Target::Scheduler(at) => vec![*at],
    };
    let mut senders = Vec::new();
    // Neighbours belong to different servers.
    for _ in 0..CONNECTIONS {
        for &server in &servers {
            senders.push(connect(server).await);
        }
    }
    let inputs = inputs();
    let tally = Arc::new(Mutex::new(Tally::default()));
    let mut random = Stream::new(load.seed, Purpose::Arrivals, 0);
    let (began, mut due, mut tasks) = (Instant::now(), Duration::ZERO, Vec::new());
    for nth in 0_u32.. {
        due += Duration::from_secs_f64(random.exponential() / load.per_s);
        if due >= load.length {
            break;
        }
        // A number that FP32 has.
        let mark = (nth % (1 << 16)) as f32 / 65_536.0;
        let message = message(&target, mark, &inputs[nth as usize % INPUTS]);
        tokio::time::sleep_until((began + due).into()).await;
        let sender = senders[nth as usize % senders.len()].clone();
        let (at, tally) = (began + due, Arc::clone(&tally));
        tally.lock().unwrap().sent += 1;
        let mark = load.has_marks.then_some(mark);
        tasks.push(tokio::spawn(async move {
            let end = ask(sender, message).await;
            tally.lock().unwrap().count(at.elapsed(), end, mark);
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let tally = tally.lock().unwrap();
    tally.clone()
}

/// Answers per second of servers that are never idle, this many requests at each.
pub(super) async fn capacity(servers: &[SocketAddr], model: SleepingModel, at_each: usize) -> f64 {
    const LENGTH: Duration = Duration::from_secs(4);
    let inputs = inputs();
    let began = Instant::now();
    let mut tasks = Vec::new();
    for &server in servers {
        let sender = connect(server).await;
        let of_one = [server];
        let target = Target::InTurn {
            servers: &of_one,
            model,
            waits_at_most: None,
        };
        let message = message(&target, 0.5, &inputs[0]);
        for _ in 0..at_each {
            let (sender, message) = (sender.clone(), message.clone());
            tasks.push(tokio::spawn(async move {
                let mut answers = 0_u32;
                while began.elapsed() < LENGTH {
                    ask(sender.clone(), message.clone()).await.unwrap().unwrap();
                    answers += 1;
                }
                (answers, began.elapsed())
            }));
        }
    }
    let mut per_s = 0.0;
    for task in tasks {
        let (answers, took) = task.await.unwrap();
        per_s += f64::from(answers) / took.as_secs_f64();
    }
    per_s
}

async fn connect(at: SocketAddr) -> SendRequest<Full<Bytes>> {
    let stream = TcpStream::connect(at).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

fn inputs() -> Vec<Vec<f32>> {
    let mix = Mix::try_new(&workload_mix()).unwrap();
    let beats = Generator::new(&Heart, 11, mix).samples(0, INPUTS);
    beats.into_iter().map(|beat| beat.values).collect()
}

/// A request of one row, whose first number is its mark.
fn message(target: &Target<'_>, mark: f32, beat: &[f32]) -> Bytes {
    let (model, input) = match target {
        Target::InTurn { model, .. } => (model.name, "x"),
        Target::Scheduler(_) => (APP, "beat"),
    };
    let row = std::iter::once(&mark).chain(&beat[1..]);
    let row: Vec<u8> = row.flat_map(|value| value.to_le_bytes()).collect();
    let mut request = ModelInferRequest {
        model_name: model.to_owned(),
        inputs: vec![InferInputTensor {
            name: input.to_owned(),
            datatype: "FP32".to_owned(),
            shape: vec![1, SAMPLES as i64],
            ..InferInputTensor::default()
        }],
        outputs: vec![InferRequestedOutputTensor {
            name: "probabilities".to_owned(),
            ..InferRequestedOutputTensor::default()
        }],
        raw_input_contents: vec![row.into()],
        ..ModelInferRequest::default()
    };
    if let Target::InTurn {
        waits_at_most: Some(waits),
        ..
    } = target
    {
        let us = ParameterChoice::Int64Param(waits.as_micros() as i64);
        let timeout = InferParameter {
            parameter_choice: Some(us),
        };
        request.parameters.insert("timeout".to_owned(), timeout);
    }
    frame(&request).unwrap().into()
}

/// The answer, or the status; an error if there is neither.
async fn ask(
    mut sender: SendRequest<Full<Bytes>>,
    message: Bytes,
) -> Result<Result<ModelInferResponse, (u16, String)>, String> {
    let no_end = |error: hyper::Error| error.to_string();
    sender.ready().await.map_err(no_end)?;
    let request = Request::post("http://test/inference.GRPCInferenceService/ModelInfer")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(message))
        .unwrap();
    let response = sender.send_request(request).await.map_err(no_end)?;
    let headers = response.headers().clone();
    let body = response.into_body().collect().await.map_err(no_end)?;
    let trailers = body.trailers().cloned().unwrap_or(headers);
    let text = |name: &str| {
        let value = HeaderMap::get(&trailers, name);
        value
            .map_or("", |value| value.to_str().unwrap_or(""))
            .to_owned()
    };
    match text("grpc-status").parse::<u16>() {
        Ok(0) => {
            let bytes = body.to_bytes();
            let answer = bytes.get(5..).ok_or("an answer without a message")?;
            let answer = ModelInferResponse::decode(answer);
            answer.map(Ok).map_err(|error| error.to_string())
        }
        Ok(status) => Ok(Err((status, text("grpc-message")))),
        Err(_) => Err("an end without a status".to_owned()),
    }
}

// === impl Tally ===

impl Tally {
    fn count(
        &mut self,
        after: Duration,
        end: Result<Result<ModelInferResponse, (u16, String)>, String>,
        mark: Option<f32>,
    ) {
        self.longest = self.longest.max(after);
        match end {
            Err(reason) => self.lost.push(reason),
            Ok(Err((status, text))) => {
                let timed_out = status == TIMED_OUT.0 && text.contains(TIMED_OUT.1);
                if timed_out || REFUSED.contains(&status) {
                    self.refused += 1;
                    return;
                }
                *self.failed.entry(format!("{status}: {text}")).or_default() += 1;
            }
            Ok(Ok(answer)) => {
                let found = answer.raw_output_contents[0].first_chunk();
                let found = f32::from_le_bytes(*found.unwrap());
                if mark.is_some_and(|mark| mark != found) {
                    self.lost
                        .push(format!("the answer of {found}, not {mark:?}"));
                } else if after <= SLO {
                    self.in_time += 1;
                    let model = match &*answer.model_name {
                        APP => answer.model_version,
                        _ => answer.model_name,
                    };
                    *self.by_model.entry(model).or_default() += 1;
                } else {
                    self.late += 1;
                }
            }
        }
    }

    /// Requests whose end the client has.
    pub(super) fn ended(&self) -> u64 {
        let failed: u64 = self.failed.values().sum();
        self.in_time + self.late + self.refused + failed
    }

    /// The share of the answers in time that are of this model.
    pub(super) fn share(&self, model: SleepingModel) -> f64 {
        let of = self.by_model.iter();
        let of = of.filter(|(name, _)| **name == model.name || **name == model.variant);
        let of: u64 = of.map(|(_, count)| count).sum();
        of as f64 / self.in_time.max(1) as f64
    }
}
