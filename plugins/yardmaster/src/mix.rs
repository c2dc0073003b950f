//! The class mix of an app's requests, learned from their evidence: a request without evidence is expected to be like
//! those before it, and one with evidence is judged by a prior of that mix.

use switchyard_sdk::{RequestId, Window};

use crate::lanes::Lanes;
use crate::menu::Menu;

/// Requests that the mix remembers: older ones fade.
const MEMORY: f64 = 1_000.0;

/// The class mix of one app.
#[derive(Clone, Debug)]
pub(crate) struct ClassMix {
    /// The catalog's Dirichlet parameters; empty unless the app classifies.
    prior: Vec<f64>,
    /// Requests by class, in shares of their neighbours' votes.
    seen: Vec<f64>,
    /// The latest request that was counted.
    until: Option<RequestId>,
    /// The menu does not know it yet.
    is_news: bool,
}

/// Counts the requests of a window that came after those counted before, and tells the menus of
/// the app's lanes. A request whose evidence
/// comes later than that of a younger one is left out.
pub(crate) fn learn(mixes: &mut [ClassMix], window: &Window, menus: &mut [Menu], lanes: &Lanes) {
    if window.raw().evidence.is_none() {
        return;
    }
    for request in window.requests() {
        let mix = &mut mixes[request.app().index()];
        if mix.until.is_none_or(|until| request.id() > until)
            && let Some(votes) = request.evidence()
        {
            mix.see(request.id(), votes);
        }
    }
    for (lane, menu) in menus.iter_mut().enumerate() {
        let mix = &mixes[lanes.app(lane)];
        if mix.is_news {
            menu.expect(mix.prior());
        }
    }
    mixes.iter_mut().for_each(|mix| mix.is_news = false);
}

// === impl ClassMix ===

impl ClassMix {
    pub(crate) fn new(prior: &[f64]) -> Self {
        Self {
            prior: prior.to_vec(),
            seen: vec![0.0; prior.len()],
            until: None,
            is_news: false,
        }
    }

    fn see(&mut self, id: RequestId, votes: &[u32]) {
        let sum: u32 = votes.iter().sum();
        if sum == 0 || votes.len() != self.seen.len() {
            return;
        }
        self.until = Some(id);
        self.is_news = true;
        let total: f64 = self.seen.iter().sum();
        let keep = (MEMORY / (total + 1.0)).min(1.0);
        for (seen, &votes) in self.seen.iter_mut().zip(votes) {
            *seen = keep * (*seen + f64::from(votes) / f64::from(sum));
        }
    }

    /// Dirichlet parameters with the mean of the mix and the sum of the catalog's.
    fn prior(&self) -> impl Iterator<Item = f64> + '_ {
        let weight: f64 = self.prior.iter().sum();
        let total = weight + self.seen.iter().sum::<f64>();
        let counts = self.prior.iter().zip(&self.seen);
        counts.map(move |(prior, seen)| weight * (prior + seen) / total)
    }
}
