//! The way into a pool, shared by everybody who talks to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use metrics::Counter;
use switchyard_core::catalog::Catalog;
use switchyard_core::ids::VariantId;
use switchyard_protocol::VariantStats;

use super::inbox::{NotSent, Sender, WakeOnDrop};
use super::message::{Call, Message, Ticket};
use super::models::ModelStates;
use super::seat::Seat;
use super::stats::VariantCounters;
use super::{INBOX_RESERVE, PoolParts};
use crate::clock::Clock;
use crate::telemetry::{Registry, names};

/// Sends messages to a driver thread.
pub struct PoolHandle {
    name: String,
    catalog: Arc<Catalog>,
    clock: Clock,
    inbox: Sender<Message>,
    seat: Arc<Seat>,
    next_ticket: AtomicU64,
    wants_evidence: Arc<AtomicBool>,
    has_evidence: Vec<bool>,
    counters: Arc<VariantCounters>,
    models: Arc<ModelStates>,
    refused: Counter,
}

/// As many calls wait to be taken in as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The bound.
    pub inbox_max: usize,
}

// === impl PoolHandle ===

impl PoolHandle {
    pub(super) fn new(
        parts: &PoolParts,
        inbox: Sender<Message>,
        seat: Arc<Seat>,
        clock: Clock,
        registry: &Registry,
    ) -> Self {
        let name = parts.name.clone();
        Self {
            refused: registry.counter(names::INBOX_FULL, [("pool", name.as_str())]),
            name,
            catalog: Arc::clone(&parts.catalog),
            clock,
            inbox,
            seat,
            next_ticket: AtomicU64::new(1),
            wants_evidence: Arc::new(AtomicBool::new(false)),
            has_evidence: parts.evidence.iter().map(Option::is_some).collect(),
            counters: Arc::new(VariantCounters::new(parts.catalog.variants.len())),
            models: Arc::new(ModelStates::new(parts.catalog.apps.len())),
        }
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the pool started with.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The pool's clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// A name for a new call.
    pub fn ticket(&self) -> Ticket {
        Ticket(self.next_ticket.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether a copy of this app's input is worth making: it has an evidence model and the
    /// active policy wants to see evidence.
    pub fn wants_evidence(&self, app: usize) -> bool {
        self.wants_evidence.load(Ordering::Relaxed)
            && self.has_evidence.get(app).is_some_and(|has| *has)
    }

    /// Hands a call over. Where this gives a promise to wake the driver, it is to be
    /// [kept](Self::keep) after the calls that come in together with this one.
    ///
    /// # Errors
    /// Too many wait already.
    pub(crate) fn submit(&self, call: Call) -> Result<Option<WakeOnDrop<'_, Message>>, Full> {
        let inbox_max = self.inbox.capacity() - INBOX_RESERVE;
        match self.inbox.try_leave(Message::Submit(call), inbox_max) {
            Ok(wake) => Ok(wake),
            // A driver that has ended takes no call, and its client sees the reply closed.
            Err(NotSent::Closed(_)) => Ok(None),
            Err(NotSent::Full(_)) => {
                self.refused.increment(1);
                Err(Full { inbox_max })
            }
        }
    }

    /// Has the driver see what was [submitted](Self::submit).
    pub(crate) fn keep(&self, promise: WakeOnDrop<'_, Message>) {
        self.seat.keep(promise);
    }

    /// Says that a call's client has gone. When the inbox has no room the call is served all
    /// the same, for nobody.
    pub fn cancel(&self, ticket: Ticket) {
        let _ = self
            .inbox
            .try_send(Message::Cancel(ticket), self.inbox.capacity());
    }

    /// Sends anything else; waits for room, which the driver always makes.
    pub fn send(&self, message: Message) {
        // An error means that the driver has ended: whoever waits sees the reply closed.
        let _ = self.inbox.send(message);
    }

    /// Counters of one variant.
    pub fn stats(&self, variant: VariantId) -> VariantStats {
        self.counters.get(variant)
    }

    /// What becomes of its apps' models.
    pub fn models(&self) -> &Arc<ModelStates> {
        &self.models
    }

    pub(super) fn counters(&self) -> &Arc<VariantCounters> {
        &self.counters
    }

    pub(super) fn wants_evidence_flag(&self) -> &Arc<AtomicBool> {
        &self.wants_evidence
    }
}
