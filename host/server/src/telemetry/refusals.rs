//! Requests that were refused before scheduling.

use super::meters::Counter;
use super::names;
use super::registry::Registry;

/// Each app's counters by status, from 0, so that a rate has a first value.
pub(crate) struct Refusals {
    apps: Vec<[Counter; STATUSES.len()]>,
    /// Of requests that name no app.
    no_app: [Counter; STATUSES.len()],
    registry: Registry,
}

/// The statuses of wrong requests.
const STATUSES: [u16; 8] = [400, 403, 404, 405, 408, 413, 415, 503];

// === impl Refusals ===

impl Refusals {
    pub(crate) fn new<'a>(registry: &Registry, apps: impl Iterator<Item = &'a str>) -> Self {
        let counters = |app| STATUSES.map(|status| counter(registry, app, status));
        Self {
            apps: apps.map(counters).collect(),
            no_app: counters(""),
            registry: registry.clone(),
        }
    }

    /// A request for the app at this position was refused.
    pub(crate) fn count(&self, app: Option<(usize, &str)>, status: u16) {
        let of_app = app.and_then(|(at, _)| self.apps.get(at));
        let counters = of_app.unwrap_or(&self.no_app);
        match STATUSES.iter().position(|known| *known == status) {
            Some(at) => counters[at].increment(1),
            None => {
                let app = app.map_or("", |(_, name)| name);
                counter(&self.registry, app, status).increment(1);
            }
        }
    }
}

fn counter(registry: &Registry, app: &str, status: u16) -> Counter {
    let labels = [("app", app), ("status", &*status.to_string())];
    registry.counter(names::REFUSED, labels)
}
