//! Routes: a policy's standing distribution of an app's arrivals over lanes. The host draws a
//! lane for each arrival, without a window (PPO router section 3.1).

use std::collections::BTreeSet;

use rand_distr::Distribution;
use rand_distr::weighted::WeightedAliasIndex;
use rand_pcg::Pcg64;

use crate::ids::{AppId, ExitId, VariantId, WorkerId};
use crate::lane::LaneQueue;
use crate::plan::{Lane, Route};
use crate::worker::{Worker, WorkerSet};

/// The routes in force, at most one per app.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    by_app: Vec<Option<RouteInForce>>,
    /// By app: workers that may have lanes of it.
    fed: Vec<BTreeSet<WorkerId>>,
}

/// One route, with its lanes for workers that come back.
#[derive(Debug)]
struct RouteInForce {
    sampler: LaneSampler,
    lanes: Vec<Lane>,
}

/// Draws lanes of a route by their weights.
#[derive(Debug)]
pub struct LaneSampler {
    /// Walker's alias method: constant time per draw.
    weights: WeightedAliasIndex<f64>,
    lanes: Vec<(WorkerId, VariantId, ExitId)>,
}

// === impl Routes ===

impl Routes {
    pub(crate) fn new(apps: usize) -> Self {
        Self {
            by_app: (0..apps).map(|_| None).collect(),
            fed: vec![BTreeSet::new(); apps],
        }
    }

    /// Puts a checked route in force. Requests that wait in lanes of the old one stay there;
    /// lanes that are no longer fed run out in batches of any size.
    pub(crate) fn install(&mut self, route: &Route, workers: &mut WorkerSet) {
        let fed = &mut self.fed[route.app.index()];
        fed.retain(|&worker| {
            let lanes = workers[worker].lanes.iter_mut();
            let lanes = lanes.filter(|lane| lane.app == route.app);
            lanes.map(|lane| lane.min_batch = 1).count() > 0
        });
        for lane in &route.lanes {
            feed(&mut workers[lane.worker], route.app, lane);
            fed.insert(lane.worker);
        }
        let sampler = LaneSampler::new(route);
        self.by_app[route.app.index()] = sampler.map(|sampler| RouteInForce {
            sampler,
            lanes: route.lanes.clone(),
        });
    }

    /// Gives a worker that came back its lanes of the routes in force.
    pub(crate) fn restore(&self, id: WorkerId, worker: &mut Worker) {
        for (app, route) in (0..).map(AppId).zip(&self.by_app) {
            let lanes = route.iter().flat_map(|route| &route.lanes);
            for lane in lanes.filter(|lane| lane.worker == id) {
                feed(worker, app, lane);
            }
        }
    }

    /// Draws the lane of one arrival; none when the app is not routed.
    pub(crate) fn draw(
        &self,
        app: AppId,
        random: &mut Pcg64,
    ) -> Option<(WorkerId, VariantId, ExitId)> {
        let route = self.by_app.get(app.index())?.as_ref()?;
        Some(route.sampler.draw(random))
    }

    /// Forgets all routes; the lanes of all workers are emptied as well.
    pub(crate) fn clear(&mut self) {
        self.by_app.iter_mut().for_each(|route| *route = None);
        self.fed.iter_mut().for_each(BTreeSet::clear);
    }
}

// === impl LaneSampler ===

impl LaneSampler {
    /// The lanes of a route; none when it has no lane with a positive weight.
    pub fn new(route: &Route) -> Option<Self> {
        let weights = route.lanes.iter().map(|lane| lane.weight).collect();
        let lanes = route.lanes.iter();
        Some(Self {
            weights: WeightedAliasIndex::new(weights).ok()?,
            lanes: lanes
                .map(|lane| (lane.worker, lane.variant, lane.exit))
                .collect(),
        })
    }

    /// Draws the lane of one arrival.
    pub fn draw(&self, random: &mut Pcg64) -> (WorkerId, VariantId, ExitId) {
        self.lanes[self.weights.sample(random)]
    }
}

fn feed(worker: &mut Worker, app: AppId, lane: &Lane) {
    let at = worker
        .lanes
        .iter()
        .position(|queue| queue.leads_to(lane.variant, lane.exit));
    let queue = match at {
        Some(at) => &mut worker.lanes[at],
        None => {
            let queue = LaneQueue::new(app, lane.variant, lane.exit);
            worker.lanes.push(queue);
            worker.lanes.last_mut().expect("just pushed")
        }
    };
    queue.min_batch = lane.min_batch;
    queue.max_batch = lane.max_batch;
    queue.capacity = lane.capacity;
}
