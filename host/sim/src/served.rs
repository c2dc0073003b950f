//! Runs that a live server serves: the arrivals of a scenario to send to it, and the metrics of its answers,
//! counted as those of a simulation are.

use std::collections::BTreeMap;
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::cost::Cost;
use switchyard_core::event::{Ran, Reply};
use switchyard_core::ids::{AppId, BatchId, RequestId};
use switchyard_core::request::Outcome;
use switchyard_core::time::{Micros, Time};

use crate::clients::Clients;
use crate::events::{EventHeap, SimEvent};
use crate::live::LiveRequest;
use crate::metrics::{Closing, Meters, Report};
use crate::scenario::{Scenario, SimError};
use crate::source::SourceId;
use crate::workload::WorkloadError;

/// The requests of one run: those that [`run`](crate::run) draws with the same seed.
#[derive(Debug)]
pub struct ServedRun {
    catalog: Arc<Catalog>,
    seed: u64,
    arrivals: Vec<ServedArrival>,
    phases: Vec<String>,
}

/// One request to send.
#[derive(Clone, Copy, Debug)]
pub struct ServedArrival {
    /// When it is due.
    pub at: Time,
    /// Its app.
    pub app: AppId,
    live: LiveRequest,
}

/// How the server ended a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedEnd {
    /// Position among the arrivals.
    pub arrival: usize,
    /// The outcome; in time or not by the client's clock.
    pub outcome: Outcome,
    /// From when it was due to the end of its reply.
    pub latency: Micros,
    /// From when it was due to the start of the batch that answered.
    pub waited: Micros,
    /// Requests in that batch; 0 without a batch.
    pub batch_size: u32,
}

/// The server's part of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServedTotals {
    /// Label of the policy.
    pub policy: String,
    /// From the first due time to the last reply.
    pub length: Micros,
    /// Windows opened.
    pub windows: u64,
    /// Windows that the policy failed, by kind.
    pub faults: BTreeMap<String, u64>,
    /// Whether it was taken off for them.
    pub is_taken_off: bool,
    /// Ended requests by outcome.
    pub ledger: BTreeMap<String, u64>,
}

// === impl ServedArrival ===

impl ServedArrival {
    /// From its arrival to its deadline.
    pub fn deadline(&self) -> Micros {
        self.live.deadline
    }

    /// Its class.
    pub fn label(&self) -> usize {
        self.live.label as usize
    }
}

// === impl ServedRun ===

impl ServedRun {
    /// Draws every request of a run.
    ///
    /// # Errors
    /// The workload is wrong, or has requests of several lengths.
    pub fn draw(scenario: &Scenario, seed: u64) -> Result<Self, SimError> {
        let catalog = Arc::clone(&scenario.catalog);
        let mut clients = Clients::try_new(scenario, seed)?;
        let mut events = EventHeap::default();
        let sources: Vec<SourceId> = clients.sources().ids().collect();
        let mut arrivals = Vec::new();
        for source in sources {
            expect(&mut clients, &mut events, source);
        }
        while let Some(at) = events.next_time() {
            let Some(SimEvent::Arrival { source, phase }) = events.pop_due(at) else {
                break;
            };
            if let Some(arrived) = clients.arrive(at, source, phase, &catalog) {
                let request = arrived.request;
                if request.cost != Cost::ONE {
                    let reason = "a live run takes requests of one length only";
                    return Err(WorkloadError::value("length", reason).into());
                }
                let live = clients.live.remove(request.id);
                arrivals.extend(live.map(|live| ServedArrival {
                    at,
                    app: request.app,
                    live,
                }));
            }
            expect(&mut clients, &mut events, source);
        }
        let phases = clients.sources().phases().to_vec();
        Ok(Self {
            catalog,
            seed,
            arrivals,
            phases,
        })
    }

    /// In the order of their due times.
    pub fn arrivals(&self) -> &[ServedArrival] {
        &self.arrivals
    }

    /// The metrics of the answers. A request without an end counts as failed. Which answers are right is
    /// drawn as in a simulation; of short-circuits only the expected accuracy is known.
    pub fn report(&self, ends: &[ServedEnd], totals: &ServedTotals) -> Report {
        let mut meters = Meters::new(&self.catalog, self.phases.len());
        let mut is_ended = vec![false; self.arrivals.len()];
        let counted = |at: &usize| self.arrivals.get(*at).filter(|it| it.live.is_counted);
        for arrival in self.arrivals.iter().filter(|it| it.live.is_counted) {
            meters.arrived(arrival.app, arrival.live.phase);
        }
        let mut answers = Vec::new();
        for end in ends {
            let Some(arrival) = counted(&end.arrival) else {
                continue;
            };
            is_ended[end.arrival] = true;
            let size = end.batch_size as usize;
            answers.resize(answers.len().max(size + 1), 0);
            answers[size] += 1;
            self.count(&mut meters, arrival, end);
        }
        for at in (0..self.arrivals.len()).filter(|&at| !is_ended[at]) {
            let Some(arrival) = counted(&at) else {
                continue;
            };
            let lost = ServedEnd {
                arrival: at,
                outcome: Outcome::Failed("no reply".to_owned()),
                latency: Micros::ZERO,
                waited: Micros::ZERO,
                batch_size: 0,
            };
            self.count(&mut meters, arrival, &lost);
        }
        meters.answered_in_batches(&answers);
        meters.faulted(&totals.faults, totals.is_taken_off);
        let closing = Closing {
            policy: totals.policy.clone(),
            seed: self.seed,
            simulated: totals.length,
            windows: totals.windows,
            abandoned: 0,
            phases: &self.phases,
            ledger: &BTreeMap::new(),
        };
        Report {
            ledger: totals.ledger.clone(),
            // Answers do not tell the times of batches.
            workers: Vec::new(),
            ..closing.report(meters, &self.catalog)
        }
    }

    fn count(&self, meters: &mut Meters, arrival: &ServedArrival, end: &ServedEnd) {
        let reply = Reply {
            request: RequestId(end.arrival as u64),
            app: arrival.app,
            outcome: end.outcome.clone(),
            latency: end.latency,
            decided: None,
            ran: (end.batch_size > 0).then_some(Ran {
                batch: BatchId(0),
                size: end.batch_size,
                since: arrival.at + end.waited.min(end.latency),
            }),
            evidence: None,
        };
        let now = arrival.at + end.latency;
        meters.ended(now, &arrival.live, &reply, &self.catalog);
    }
}

fn expect(clients: &mut Clients, events: &mut EventHeap, source: SourceId) {
    if let Some(next) = clients.next_arrival(source) {
        let phase = next.phase;
        events.push(next.at, SimEvent::Arrival { source, phase });
    }
}
