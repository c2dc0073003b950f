//! Cases worked out by hand from the paper's equations, and the search against brute force.

mod baselines;
mod exact;
mod groups;
mod policy;

use switchyard_sdk::bindings::exports::switchyard::policy::scheduling as raw;
use switchyard_sdk::testing::{Batch, CatalogBuilder, Decisions, WindowBuilder, run};
use switchyard_sdk::window::Index;
use switchyard_sdk::{Penalty, Policy};

use super::*;

/// Everything a window's [`Problem`] rests on.
struct Scene {
    catalog: Catalog,
    apps: Vec<AppModels>,
    jobs: Jobs,
    groups: Groups,
    lines: Vec<Line>,
    now_us: u64,
}

impl Scene {
    /// Groups a window as the policy does for `workers` that could start at once.
    fn new(catalog: &Catalog, json: &str, window: &raw::Window, workers: usize) -> Self {
        let settings = Settings::try_new(json).unwrap();
        let apps = AppModels::of_catalog(catalog, &settings).unwrap();
        let mut index = Index::default();
        index.fill(catalog, window).unwrap();
        let view = Window::new(catalog, window, &index);
        let (mut jobs, mut groups) = (Jobs::default(), Groups::default());
        jobs.fill(&view, &apps, &settings);
        groups.fill(&mut jobs.live, &jobs.accuracies, &apps, workers);
        Self {
            lines: view
                .workers()
                .map(|worker| Line::new(worker, catalog))
                .collect(),
            catalog: catalog.clone(),
            now_us: view.now_us(),
            apps,
            jobs,
            groups,
        }
    }

    fn problem(&self) -> Problem<'_> {
        Problem {
            now_us: self.now_us,
            apps: &self.apps,
            jobs: &self.jobs.live,
            accuracies: &self.jobs.accuracies,
            groups: &self.groups.list,
            sums: &self.groups.sums,
            charge_swap: true,
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
