//! The costs of the requests that arrived.

use crate::cost::Cost;
use crate::ids::{AppId, RequestId};
use crate::table::RequestTable;

/// Of the mean cost of an app's requests, a new one makes up one part in this many.
const MEAN_OF: f64 = 64.0;

/// The costs of a pool's requests. In most pools all are 1, and then no request is looked up.
#[derive(Debug, Default)]
pub(crate) struct ArrivedCosts {
    differ: bool,
    /// By app, in rows of the profile.
    means: Vec<f64>,
}

// === impl ArrivedCosts ===

impl ArrivedCosts {
    pub(crate) fn new(apps: usize) -> Self {
        Self {
            differ: false,
            means: vec![1.0; apps],
        }
    }

    /// Another catalog; the requests stay.
    pub(crate) fn resize(&mut self, apps: usize) {
        self.means.resize(apps, 1.0);
    }

    pub(crate) fn record(&mut self, app: AppId, cost: Cost) {
        self.differ |= cost != Cost::ONE;
        if let Some(mean) = self.means.get_mut(app.index()).filter(|_| self.differ) {
            *mean += (cost.as_f64() - *mean) / MEAN_OF;
        }
    }

    /// Whether any request has cost anything but 1.
    pub(crate) fn differ(&self) -> bool {
        self.differ
    }

    /// The mean cost of an app's last requests, in rows of the profile.
    pub(crate) fn mean(&self, app: AppId) -> f64 {
        self.means.get(app.index()).copied().unwrap_or(1.0)
    }

    /// The cost of these requests together.
    pub(crate) fn of_all(&self, table: &RequestTable, members: &[RequestId]) -> Cost {
        if !self.differ {
            return Cost::rows(members.len());
        }
        let costs = members.iter().map(|&id| table.cost(id));
        costs.sum()
    }
}
