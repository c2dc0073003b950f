//! The expected accuracy of each pending request with each candidate (section 4), and its priority
//! (eq. 12).

use switchyard_sdk::accuracy::{label, posterior_into};
use switchyard_sdk::priority::{priority, variance};
use switchyard_sdk::utility::loss;
use switchyard_sdk::{AppId, RequestId, RequestRef, Window};

use crate::model::AppModels;
use crate::settings::SneakPeekSettings;

/// One pending request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Job {
    pub(crate) id: RequestId,
    pub(crate) app: AppId,
    pub(crate) arrival_us: u64,
    /// From arrival to the deadline: d of eq. 2.
    pub(crate) due_us: u64,
    /// Eq. 12.
    pub(crate) priority: f64,
    /// The likely class, if groups are split by it.
    pub(crate) label: Option<u32>,
    /// Allowed candidates, as bits.
    pub(crate) models: u64,
    /// Whether its evidence is ready, so that the SneakPeek model can answer.
    pub(crate) has_evidence: bool,
    /// Start of its accuracies in [`Jobs::accuracies`], one per candidate of its app.
    pub(crate) accuracies: usize,
}

/// The pending requests of a window. Buffers are kept between windows.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// Jobs with a utility above 0.
    pub(crate) live: Vec<Job>,
    /// Jobs of utility 0 with every candidate; oldest first.
    pub(crate) lost: Vec<Job>,
    /// Per job, the accuracy of each candidate of its app.
    pub(crate) accuracies: Vec<f64>,
    theta: Vec<f64>,
}

// === impl Jobs ===

impl Jobs {
    /// Reads the requests of a window that have run no stage.
    pub(crate) fn fill(
        &mut self,
        window: &Window,
        apps: &[AppModels],
        settings: &SneakPeekSettings,
    ) {
        self.live.clear();
        self.lost.clear();
        self.accuracies.clear();
        let now_us = window.now_us();
        for request in window
            .requests()
            .filter(|request| request.progress().is_none())
        {
            let app = &apps[request.app().index()];
            let job = self.estimate(request, app, settings);
            let runs_us = match job.has_evidence && app.sneakpeek().is_some() {
                true => 0,
                false => app.fastest_us,
            };
            let soonest_us = (now_us + runs_us).saturating_sub(job.arrival_us);
            if loss(app.penalty, job.due_us, soonest_us) < 1.0 {
                self.live.push(job);
            } else {
                self.lost.push(job);
            }
        }
    }

    fn estimate(
        &mut self,
        request: RequestRef<'_>,
        app: &AppModels,
        settings: &SneakPeekSettings,
    ) -> Job {
        let accuracies = self.accuracies.len();
        let evidence = request.evidence();
        let mut spread = app.unseen_variance;
        let mut class = None;
        match evidence.filter(|_| settings.is_data_aware()) {
            None => self.accuracies.extend_from_slice(&app.unseen),
            Some(counts) => {
                posterior_into(&app.prior, Some(counts), &mut self.theta);
                let theta = &self.theta;
                let models = app.models.iter().map(|model| model.accuracy(Some(theta)));
                self.accuracies.extend(models);
                let runs = &self.accuracies[accuracies..accuracies + app.runs()];
                spread = variance(runs);
                class = label(theta)
                    .filter(|_| settings.splits_by_label())
                    .map(|class| class as u32);
            }
        }
        Job {
            id: request.id(),
            app: request.app(),
            arrival_us: request.arrival_us(),
            due_us: request.deadline_us().saturating_sub(request.arrival_us()),
            priority: priority(spread, request.slack_us(), settings.priority_unit_us()),
            label: class,
            models: app.reaching(request.min_quality()),
            has_evidence: evidence.is_some(),
            accuracies,
        }
    }
}
