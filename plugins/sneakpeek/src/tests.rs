//! Cases computed by hand from the paper's equations, and the search against brute force.

mod baselines;
mod exact;
mod foresight;
mod groups;
mod policy;
mod windows;

use switchyard_sdk::bindings::exports::switchyard::policy::scheduling as raw;
use switchyard_sdk::testing::{Batch, CatalogBuilder, Decisions, WindowBuilder, run};
use switchyard_sdk::window::Index;
use switchyard_sdk::{Penalty, Policy};

use super::*;

/// The data of a window's [`SchedulingProblem`].
struct TestBed {
    catalog: Catalog,
    apps: Vec<AppModels>,
    jobs: Jobs,
    groups: Groups,
    timelines: Vec<WorkerTimeline>,
    now_us: u64,
}

impl TestBed {
    /// Groups a window as the policy does with `workers` that can start now.
    fn new(catalog: &Catalog, json: &str, window: &raw::Window, workers: usize) -> Self {
        let settings = SneakPeekSettings::try_new(json).unwrap();
        let apps = AppModels::of_catalog(catalog, &settings).unwrap();
        let mut index = Index::default();
        index.fill(catalog, window).unwrap();
        let view = Window::new(catalog, window, &index);
        let (mut jobs, mut groups) = (Jobs::default(), Groups::default());
        jobs.fill(&view, &apps, &settings);
        groups.fill(&mut jobs.live, &jobs.accuracies, &apps, workers);
        Self {
            timelines: view
                .workers()
                .map(|worker| WorkerTimeline::new(worker, catalog))
                .collect(),
            catalog: catalog.clone(),
            now_us: view.now_us(),
            apps,
            jobs,
            groups,
        }
    }

    fn problem(&self) -> SchedulingProblem<'_> {
        SchedulingProblem {
            now_us: self.now_us,
            apps: &self.apps,
            jobs: &self.jobs.live,
            accuracies: &self.jobs.accuracies,
            groups: &self.groups.list,
            sums: &self.groups.sums,
            charge_swap: true,
            joins: false,
            price: 0.0,
        }
    }

    /// Ids of the jobs of each group, in order.
    fn members(&self) -> Vec<Vec<u64>> {
        let ids = |group: &group::Group| {
            self.jobs.live[group.jobs.clone()]
                .iter()
                .map(|job| job.id.0)
                .collect()
        };
        self.groups.list.iter().map(ids).collect()
    }
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}
