//! The rows and calls inside: inputs wait for a batch, clients for their answer.
//!
//! Owned by the driver, so there are no locks.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use smallvec::SmallVec;
use switchyard_core::cost::Cost;
use switchyard_core::event::Launch;
use switchyard_core::ids::{BatchId, ExitId, RequestId, VariantId, WorkerId};
use switchyard_core::time::{Micros, Time};
use switchyard_executor::{BatchOutput, RowTensors};
use switchyard_models::NamedTensor;
use tokio::sync::oneshot;

use super::message::{CallEnd, CallError, RowAnswer, Ticket};
use super::recent::RunKind;
use super::row_trace::RowTrace;
use super::stats::AnsweredCall;

/// Requests whose call has ended by another row; to be cancelled.
pub(super) type Orphans = SmallVec<[RequestId; 4]>;

/// Rows by request, calls by ticket. The server counts all keys up itself, so that no client
/// can make them collide.
#[derive(Default)]
pub(super) struct Waiters {
    rows: HashMap<RequestId, Row, FxBuildHasher>,
    calls: HashMap<Ticket, Open, FxBuildHasher>,
    batches: HashMap<BatchId, Running, FxBuildHasher>,
    /// Requests of all batches together.
    running: usize,
}

/// One row of a call: a request of the core.
pub(super) struct Row {
    call: Ticket,
    position: usize,
    /// Kept until the answer, because a batch may be tried again.
    inputs: RowTensors,
    pub(super) arrival: Time,
    deadline: Time,
    pub(super) probabilities: Vec<f32>,
    pub(super) tensors: Vec<NamedTensor>,
    pub(super) compute: Micros,
    /// The variant that ran it last.
    pub(super) variant: Option<VariantId>,
    /// Its trace so far, if it is traced.
    pub(super) trace: Option<Box<RowTrace>>,
}

struct Open {
    requests: SmallVec<[RequestId; 1]>,
    answers: SmallVec<[Option<RowAnswer>; 1]>,
    unanswered: usize,
    reply: oneshot::Sender<CallEnd>,
}

/// A call whose client waits for the end only: the driver counts it first, so that a client that has its
/// answer finds it counted.
pub(super) struct EndedCall {
    /// `None` if no variant ran: it failed, or evidence alone answered.
    pub(super) counted: Option<AnsweredCall>,
    reply: oneshot::Sender<CallEnd>,
    end: CallEnd,
}

/// A batch that a worker has.
pub(super) struct Running {
    worker: WorkerId,
    pub(super) variant: VariantId,
    pub(super) from_stage: u32,
    pub(super) to_stage: u32,
    pub(super) exit: Option<ExitId>,
    pub(super) requests: Vec<RequestId>,
    /// Their cost together.
    pub(super) cost: Cost,
}

// === impl EndedCall ===

impl EndedCall {
    /// Sends the end to the client.
    pub(super) fn send(self) {
        // An error means that the client has gone.
        let _ = self.reply.send(self.end);
    }
}

// === impl Running ===

impl Running {
    /// The worker, and the part of the variant that it runs.
    pub(super) fn kind(&self) -> RunKind {
        RunKind {
            worker: self.worker,
            variant: self.variant,
            stages: (self.from_stage, self.to_stage),
            exit: self.exit,
        }
    }
}

// === impl Waiters ===

impl Waiters {
    /// Opens a call of `rows` rows; they follow by [`add`](Self::add).
    pub(super) fn open(&mut self, ticket: Ticket, rows: usize, reply: oneshot::Sender<CallEnd>) {
        let open = Open {
            requests: SmallVec::with_capacity(rows),
            answers: SmallVec::with_capacity(rows),
            unanswered: 0,
            reply,
        };
        self.calls.insert(ticket, open);
    }

    /// Adds the next row of an open call, with its arrival and its deadline.
    pub(super) fn add(
        &mut self,
        ticket: Ticket,
        request: RequestId,
        (arrival, deadline): (Time, Time),
        inputs: RowTensors,
        trace: Option<Box<RowTrace>>,
    ) {
        let Some(call) = self.calls.get_mut(&ticket) else {
            return; // Ended by an earlier row; the request is cancelled by its caller.
        };
        call.requests.push(request);
        call.answers.push(None);
        call.unanswered += 1;
        let row = Row {
            call: ticket,
            position: call.answers.len() - 1,
            inputs,
            arrival,
            deadline,
            probabilities: Vec::new(),
            tensors: Vec::new(),
            compute: Micros::ZERO,
            variant: None,
            trace,
        };
        self.rows.insert(request, row);
    }

    /// Inputs of a request that starts.
    pub(super) fn inputs(&self, request: RequestId) -> Option<RowTensors> {
        Some(self.rows.get(&request)?.inputs.clone())
    }

    /// The latest deadline of requests.
    pub(super) fn last_deadline(&self, requests: &[RequestId]) -> Option<Time> {
        let rows = requests.iter().filter_map(|id| self.rows.get(id));
        rows.map(|row| row.deadline).max()
    }

    /// A worker has a batch.
    pub(super) fn started(&mut self, launch: &Launch) {
        let running = Running {
            worker: launch.worker,
            variant: launch.variant,
            from_stage: launch.from_stage,
            to_stage: launch.to_stage,
            exit: launch.exit,
            requests: launch.requests.to_vec(),
            cost: launch.cost,
        };
        self.running += running.requests.len();
        self.batches.insert(launch.batch, running);
    }

    /// A worker has finished a batch: its output goes to the rows that have not ended.
    pub(super) fn finished(
        &mut self,
        batch: BatchId,
        output: Option<&BatchOutput>,
        compute: Micros,
    ) -> Option<Running> {
        let running = self.batches.remove(&batch)?;
        self.running -= running.requests.len();
        for request in &running.requests {
            if let Some(row) = self.rows.get_mut(request) {
                row.compute += compute;
                row.variant = Some(running.variant);
            }
        }
        if let Some(BatchOutput::Tensors(outputs)) = output {
            for (request, output) in running.requests.iter().zip(outputs) {
                if let Some(row) = self.rows.get_mut(request) {
                    row.tensors.clone_from(output);
                }
            }
        }
        let outputs = output.into_iter().flat_map(BatchOutput::rows);
        for (request, output) in running.requests.iter().zip(outputs) {
            if let Some(row) = self.rows.get_mut(request) {
                row.probabilities = output.to_vec();
            }
        }
        Some(running)
    }

    /// A worker is lost: its batches have no end.
    pub(super) fn forget(&mut self, worker: WorkerId) {
        let Self {
            batches, running, ..
        } = self;
        for (_, batch) in batches.extract_if(|_, batch| batch.worker == worker) {
            *running -= batch.requests.len();
        }
    }

    /// The trace of a request, if it is traced.
    pub(super) fn trace(&mut self, request: RequestId) -> Option<&mut RowTrace> {
        self.rows.get_mut(&request)?.trace.as_deref_mut()
    }

    /// A request has ended; its row.
    pub(super) fn take(&mut self, request: RequestId) -> Option<Row> {
        self.rows.remove(&request)
    }

    /// A row got its answer; the call ends with its last one. `None`: other rows have no answer yet.
    pub(super) fn answer(&mut self, row: &Row, answer: RowAnswer) -> Option<EndedCall> {
        let call = self.calls.get_mut(&row.call)?;
        let slot = call.answers.get_mut(row.position)?;
        call.unanswered -= usize::from(slot.is_none());
        *slot = Some(answer);
        if call.unanswered > 0 {
            return None;
        }
        let call = self.calls.remove(&row.call)?;
        let rows = call.answers.iter().flatten();
        let counted = rows
            .filter_map(|row| {
                Some(AnsweredCall {
                    variant: row.ran?.0,
                    queue: row.queue,
                    compute: row.compute,
                })
            })
            .max_by_key(|row| row.queue.0.saturating_add(row.compute.0));
        Some(EndedCall {
            counted,
            reply: call.reply,
            end: Ok(call.answers.into_iter().flatten().collect()),
        })
    }

    /// A row got no answer: the call ends with this, and its other rows need not run. `None`: it has
    /// ended by another row.
    pub(super) fn fail(&mut self, row: &Row, error: CallError) -> Option<(EndedCall, Orphans)> {
        let call = self.calls.remove(&row.call)?;
        let orphans = self.unended(&call.requests);
        let ended = EndedCall {
            counted: None,
            reply: call.reply,
            end: Err(error),
        };
        Some((ended, orphans))
    }

    /// The client has gone: none of its rows needs to run.
    pub(super) fn abandon(&mut self, ticket: Ticket) -> Orphans {
        match self.calls.remove(&ticket) {
            Some(call) => self.unended(&call.requests),
            None => Orphans::new(),
        }
    }

    /// Requests that have not ended, lowest id first.
    pub(super) fn all(&self) -> Vec<RequestId> {
        let mut requests: Vec<_> = self.rows.keys().copied().collect();
        requests.sort_unstable();
        requests
    }

    /// Requests in batches that workers have.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    fn unended(&self, requests: &[RequestId]) -> Orphans {
        let live = |request: &&RequestId| self.rows.contains_key(request);
        requests.iter().filter(live).copied().collect()
    }
}
