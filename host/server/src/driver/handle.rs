//! The way into a pool, for every other part of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::{AppId, VariantId};
use switchyard_protocol::{TraceParent, VariantStats};
use thiserror::Error;
use tokio::sync::oneshot;

use super::combining::{Combining, NotSent};
use super::message::{CallEnd, Message, PoolCall, SubmittedCall, Ticket};
use super::models::ModelStates;
use super::parts::PoolParts;
use super::pulse::Pulse;
use super::stats::VariantCounters;
use super::turn::Driver;
use crate::clock::Clock;
use crate::readiness::Readiness;
use crate::telemetry::{Counter, Registry, names};
use crate::traces::{CallTrace, Tracer};

/// Sends messages to a pool's driver.
pub struct PoolHandle {
    name: String,
    catalog: Arc<Catalog>,
    clock: Clock,
    driver: Arc<Combining<Driver>>,
    /// Calls that may wait for a turn.
    inbox_max: usize,
    next_ticket: AtomicU64,
    wants_evidence: Arc<AtomicBool>,
    /// By app.
    has_evidence: Vec<bool>,
    counters: Arc<VariantCounters>,
    models: Arc<ModelStates>,
    refused: Counter,
    traces: Option<Arc<Tracer>>,
    pulse: Arc<Pulse>,
    readiness: Arc<Readiness>,
}

/// Why a call had no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotServed {
    /// The queue of the driver is full.
    #[error("{inbox_max} calls wait for the scheduler")]
    Full {
        /// Calls that may wait.
        inbox_max: usize,
    },
    /// The driver has ended.
    #[error("the scheduler has ended")]
    Ended,
}

/// Tells the driver when the future of a call is dropped before its end.
struct CancelOnDrop<'a> {
    pool: &'a PoolHandle,
    /// `None` once the call has ended.
    ticket: Option<Ticket>,
}

// === impl PoolHandle ===

impl PoolHandle {
    pub(super) fn new(
        parts: &PoolParts,
        driver: Arc<Combining<Driver>>,
        clock: Clock,
        registry: &Registry,
    ) -> Self {
        let name = parts.name.clone();
        Self {
            refused: registry.counter(names::INBOX_FULL, [("pool", name.as_str())]),
            traces: parts.traces.clone(),
            pulse: Arc::default(),
            readiness: Arc::new(Readiness::new(&name)),
            name,
            catalog: Arc::clone(&parts.catalog),
            clock,
            driver,
            inbox_max: parts.inbox_max,
            next_ticket: AtomicU64::new(1),
            wants_evidence: Arc::new(AtomicBool::new(false)),
            has_evidence: parts.evidence.iter().map(Option::is_some).collect(),
            counters: Arc::clone(&parts.counters),
            models: Arc::new(ModelStates::new(parts.catalog.apps.len())),
        }
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The catalog that the pool started with.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The pool's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Whether the driver has use for a copy of this app's inputs: the app has an evidence model
    /// and the active policy sees evidence.
    pub fn wants_evidence(&self, app: AppId) -> bool {
        self.wants_evidence.load(Ordering::Relaxed)
            && self.has_evidence.get(app.index()).is_some_and(|has| *has)
    }

    /// Whether requests are traced.
    pub fn traces(&self) -> bool {
        self.traces.is_some()
    }

    /// The place of the next call in a trace, if it is traced.
    pub fn draw_trace(&self, parent: Option<TraceParent>) -> Option<Box<CallTrace>> {
        self.traces.as_ref()?.draw(parent)
    }

    /// Serves a call. Dropping the future cancels the call.
    ///
    /// # Errors
    /// The queue of the driver is full, or the driver has ended.
    pub async fn serve(&self, call: PoolCall) -> Result<CallEnd, NotServed> {
        let ticket = Ticket(self.next_ticket.fetch_add(1, Ordering::Relaxed));
        let (reply, end) = oneshot::channel();
        let submitted = SubmittedCall {
            ticket,
            call,
            reply,
        };
        let mut pending = CancelOnDrop {
            pool: self,
            ticket: Some(ticket),
        };
        let message = Message::Submit(submitted);
        let sent = self.driver.send_in_burst(message, self.inbox_max).await;
        if sent == Err(NotSent::Full) {
            pending.ticket = None;
            self.refused.increment(1);
            let inbox_max = self.inbox_max;
            return Err(NotServed::Full { inbox_max });
        }
        // A driver that has ended drops the call, and so its reply.
        let end = end.await;
        pending.ticket = None;
        end.map_err(|_| NotServed::Ended)
    }

    /// Sends any other message; waits for room, which the driver always makes.
    pub fn send(&self, message: Message) {
        // An error means that the driver has ended: the message and its reply are dropped.
        let _ = self.driver.send(message);
    }

    /// Counters of one variant.
    pub fn stats(&self, variant: VariantId) -> VariantStats {
        self.counters.get(variant)
    }

    /// The states of its apps' models.
    pub fn models(&self) -> &Arc<ModelStates> {
        &self.models
    }

    /// Whether the driver turns. Takes no lock.
    ///
    /// # Errors
    /// Why it does not: it has panicked, or a turn has been stuck for long.
    pub fn live(&self) -> Result<(), String> {
        let checked = self.pulse.check(self.clock.now());
        checked.map_err(|reason| format!("pool {}: {reason}", self.name))
    }

    /// Whether the driver has panicked.
    pub fn has_failed(&self) -> bool {
        self.pulse.has_failed()
    }

    pub(super) fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    /// The conditions that keep it from being ready.
    pub fn readiness(&self) -> &Arc<Readiness> {
        &self.readiness
    }

    /// The counters of its variants.
    pub fn counters(&self) -> &Arc<VariantCounters> {
        &self.counters
    }

    pub(super) fn wants_evidence_flag(&self) -> &Arc<AtomicBool> {
        &self.wants_evidence
    }
}

// === impl CancelOnDrop ===

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            // Without room the call is served although its client has gone.
            let _ = self.pool.driver.try_send(Message::Cancel(ticket));
        }
    }
}
