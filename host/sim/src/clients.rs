//! The clients of a run: sources of requests, and the requests under way.

use switchyard_core::catalog::Catalog;
use switchyard_core::ids::RequestId;
use switchyard_core::request::Request;
use switchyard_core::time::Time;

use crate::live::{LiveRequest, LiveRequests};
use crate::random::{Purpose, Stream, running_sums};
use crate::scenario::{Scenario, SimError};
use crate::source::{Arrival, DrawnRequest, SourceId, Sources};

/// Sources, live requests, and the limits of both.
pub(crate) struct Clients {
    pub(crate) live: LiveRequests,
    sources: Sources,
    /// Running sums of class frequencies, by app.
    class_sums: Vec<Vec<f64>>,
    classes: Stream,
    /// No request arrives at this time or later.
    end: Time,
    requests_max: u64,
    skip_first: u64,
    arrived: u64,
    sources_open: usize,
    last_arrival: Time,
}

/// A request that has just arrived.
pub(crate) struct ArrivedRequest {
    pub(crate) request: Request,
    pub(crate) label: u32,
    /// Whether metrics count it.
    pub(crate) is_counted: bool,
}

// === impl Clients ===

impl Clients {
    pub(crate) fn try_new(scenario: &Scenario, seed: u64) -> Result<Self, SimError> {
        let sources = Sources::try_new(&scenario.workload, &scenario.catalog, seed)?;
        let shares = scenario.class_shares()?.into_iter();
        Ok(Self {
            live: LiveRequests::default(),
            class_sums: shares
                .map(|shares| running_sums(shares.iter().copied()))
                .collect(),
            classes: Stream::new(seed, Purpose::Labels, 0),
            end: Time::ZERO + scenario.duration,
            requests_max: scenario.requests_max,
            skip_first: scenario.skip_first,
            arrived: 0,
            sources_open: sources.ids().count(),
            last_arrival: Time::ZERO,
            sources,
        })
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Draws the next arrival of a source; none if the source or the run has ended.
    pub(crate) fn next_arrival(&mut self, source: SourceId) -> Option<Arrival> {
        let next = self.sources.get_mut(source).next();
        // Other sources may each have an arrival under way beyond the limit; `arrive` stops those.
        let is_open = self.arrived < self.requests_max;
        let next = next.filter(|arrival| is_open && arrival.at < self.end);
        if next.is_none() {
            self.sources_open -= 1;
        }
        next
    }

    /// Draws the request that arrives now; none beyond the limit of the run.
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        source: SourceId,
        phase: u32,
        catalog: &Catalog,
    ) -> Option<ArrivedRequest> {
        if self.arrived >= self.requests_max {
            return None;
        }
        let drawn = self.sources.get_mut(source).request(catalog);
        let (app, deadline) = (drawn.app, drawn.deadline);
        let label = self.classes.pick(&self.class_sums[app.index()]) as u32;
        let is_counted = self.arrived >= self.skip_first;
        let id = self.live.insert(LiveRequest {
            deadline,
            label,
            phase,
            hardness: self.classes.uniform(),
            is_counted,
            parked: None,
        });
        self.arrived += 1;
        self.last_arrival = now;
        Some(ArrivedRequest {
            request: request(id, now, drawn),
            label,
            is_counted,
        })
    }

    /// Requests that have arrived, without those that metrics skip.
    pub(crate) fn counted(&self) -> u64 {
        self.arrived.saturating_sub(self.skip_first)
    }

    /// Whether no request will arrive any more.
    pub(crate) fn are_done(&self) -> bool {
        self.sources_open == 0
    }

    pub(crate) fn last_arrival(&self) -> Time {
        self.last_arrival
    }
}

fn request(id: RequestId, now: Time, drawn: DrawnRequest) -> Request {
    Request {
        id,
        app: drawn.app,
        arrival: now,
        deadline: now + drawn.deadline,
        priority: 0,
        min_accuracy: 0.0,
        pinned: None,
        cost: drawn.cost,
    }
}
