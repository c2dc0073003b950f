//! The pending requests of a window, with the utility of each answer.

use switchyard_sdk::accuracy::posterior_into;
use switchyard_sdk::utility::loss;
use switchyard_sdk::{RequestId, RequestRef, Window};

use crate::lanes::Lanes;
use crate::menu::Menu;

/// Lost requests of an app that are looked at: a batch of them at most.
pub(crate) const LOST_MAX: usize = 32;

/// One pending request that has run no stage.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: RequestId,
    pub(crate) lane: usize,
    /// Its cost in rows of the profile, and in usual requests of its lane.
    pub(crate) cost: f64,
    pub(crate) rows: f64,
    /// Time since its arrival.
    pub(crate) age_us: f64,
    /// Time from now to its deadline; negative once it has passed.
    pub(crate) left_us: f64,
    /// Time from arrival to deadline.
    pub(crate) allowed_us: u64,
    /// Choices that reach its least quality, as bits.
    pub(crate) allows: u64,
    /// Utility of an answer from evidence, which needs no worker.
    pub(crate) floor: Option<f64>,
    wait_cost_per_us: f64,
    /// Start of its accuracies in [`Jobs::accuracies`], one per choice of its lane.
    accuracies: usize,
}

/// A request that no batch gains anything for, by its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LostJob {
    pub(crate) deadline_us: u64,
    pub(crate) id: RequestId,
    /// Choices that reach its least quality, as bits.
    pub(crate) allows: u64,
}

/// The jobs of a window, and the queue of each lane, earliest deadline first. Buffers are kept between
/// windows.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    pub(crate) list: Vec<Job>,
    accuracies: Vec<f64>,
    pub(crate) queues: Vec<Vec<usize>>,
    /// Per lane, the oldest requests that no choice could answer with utility on any idle worker.
    pub(crate) lost: Vec<Vec<LostJob>>,
    /// Per lane, the mean time from arrival to deadline of the queue's jobs; the SLO without any.
    pub(crate) allowed_us: Vec<f64>,
    /// Per lane, the least `rows` of its jobs; 1 if that is more.
    pub(crate) lightest: Vec<f64>,
    pub(crate) wait_cost: f64,
    pub(crate) punctuality: f64,
    theta: Vec<f64>,
}

// === impl Jobs ===

impl Jobs {
    /// No jobs; a wait of one SLO costs `wait_cost`, an answer in time earns `punctuality` more than its
    /// accuracy.
    pub(crate) fn new(wait_cost: f64, punctuality: f64) -> Self {
        Self {
            wait_cost,
            punctuality,
            ..Self::default()
        }
    }

    /// Reads the requests of a window that have run no stage.
    pub(crate) fn fill(&mut self, window: &Window, menus: &[Menu], lanes: &Lanes) {
        self.list.clear();
        self.accuracies.clear();
        self.queues.resize(menus.len(), Vec::new());
        self.lost.resize(menus.len(), Vec::new());
        self.queues.iter_mut().for_each(Vec::clear);
        self.lost.iter_mut().for_each(Vec::clear);
        self.lightest.clear();
        self.lightest.resize(menus.len(), 1.0);
        for request in window.requests() {
            let lane = lanes.of(request.app().index(), request.cost());
            let (menu, rows) = (&menus[lane], request.cost() / lanes.unit(lane));
            let allowed_us = request.deadline_us().saturating_sub(request.arrival_us());
            let soonest_us = request.age_us() + (menu.fastest_us * rows.min(1.0)) as u64;
            let is_lost =
                soonest_us > allowed_us && loss(menu.penalty, allowed_us, soonest_us) >= 1.0;
            if request.progress().is_some() {
                continue;
            }
            if is_lost && (menu.from_evidence.is_none() || request.evidence().is_none()) {
                let lost = &mut self.lost[lane];
                if lost.len() < LOST_MAX {
                    lost.push(LostJob {
                        deadline_us: request.deadline_us(),
                        id: request.id(),
                        allows: menu.reaching(request.min_quality()),
                    });
                }
                continue;
            }
            let job = self.job(request, menu, lane, rows);
            self.queues[lane].push(self.list.len());
            self.lightest[lane] = self.lightest[lane].min(rows);
            self.list.push(job);
        }
        let list = &self.list;
        for queue in &mut self.queues {
            let left_us = |&at: &usize| list[at].left_us;
            queue.sort_by(|a, b| left_us(a).total_cmp(&left_us(b)));
        }
        self.allowed_us.clear();
        let means = self.queues.iter().zip(menus).map(|(queue, menu)| {
            let sum: f64 = queue.iter().map(|&at| list[at].allowed_us as f64).sum();
            match queue.len() {
                0 => menu.slo_us,
                count => (sum / count as f64).max(1.0),
            }
        });
        self.allowed_us.extend(means);
    }

    fn job(&mut self, request: RequestRef<'_>, menu: &Menu, lane: usize, rows: f64) -> Job {
        let accuracies = self.accuracies.len();
        let evidence = request.evidence().filter(|_| !menu.prior.is_empty());
        let answered = match evidence {
            None => {
                self.accuracies.extend_from_slice(&menu.unseen);
                None
            }
            Some(counts) => {
                posterior_into(&menu.prior, Some(counts), &mut self.theta);
                let theta = &self.theta;
                let each = menu.choices.iter().map(|choice| choice.accuracy(theta));
                self.accuracies.extend(each);
                menu.answered(theta)
            }
        };
        let allowed_us = request.deadline_us().saturating_sub(request.arrival_us());
        let lost = loss(menu.penalty, allowed_us, request.age_us());
        Job {
            id: request.id(),
            lane,
            cost: request.cost(),
            rows,
            age_us: request.age_us() as f64,
            left_us: request.slack_us() as f64,
            allowed_us,
            allows: menu.reaching(request.min_quality()),
            floor: answered.map(|accuracy| (accuracy + self.punctuality) * (1.0 - lost)),
            wait_cost_per_us: self.wait_cost / (allowed_us as f64).max(1.0),
            accuracies,
        }
    }

    /// Utility of a choice whose batch ends `end_us` from now, less that of an answer from evidence and
    /// the cost of the wait.
    pub(crate) fn gain(&self, at: usize, menu: &Menu, choice: usize, end_us: f64) -> f64 {
        let job = &self.list[at];
        if job.allows & (1 << choice) == 0 {
            return f64::NEG_INFINITY;
        }
        let worth = self.accuracies[job.accuracies + choice] + self.punctuality;
        let more = worth - job.floor.unwrap_or(0.0) - end_us * job.wait_cost_per_us;
        if end_us <= job.left_us {
            return more;
        }
        more - worth * loss(menu.penalty, job.allowed_us, (job.age_us + end_us) as u64)
    }
}
