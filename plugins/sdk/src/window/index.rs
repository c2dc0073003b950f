//! Positions in a window's columns, built once per window into kept buffers.

use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::catalog::Catalog;
use crate::ids::{AppId, VariantId, WorkerId};

/// No position: the request has no progress or no evidence.
const NONE: u32 = u32::MAX;

/// Positions of the requests by app, and of each request's progress and evidence.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// Positions of the requests, app by app, in arrival order.
    by_app: Vec<u32>,
    /// Where each app's positions end in `by_app`.
    ends: Vec<u32>,
    /// Per request; empty when nothing is parked.
    progress: Vec<u32>,
    /// Per request, start of its counts; empty when no evidence is ready.
    evidence: Vec<u32>,
    /// Per worker and variant; empty when nothing is known to be resident.
    resident: Vec<bool>,
    variants: usize,
    /// The workers that changed; none: any may have changed.
    changed: Option<Vec<u32>>,
}

// === impl Index ===

impl Index {
    /// Builds the index of a window.
    ///
    /// # Errors
    /// The window does not fit the catalog: columns of unequal length, or an app or a worker
    /// that is not there. A host does not send such windows.
    pub fn fill(&mut self, catalog: &Catalog, window: &raw::Window) -> Result<(), String> {
        self.fill_changed(catalog, window, None)
    }

    /// As [`fill`](Self::fill) for a window whose residents are those of the workers that changed since
    /// the window before.
    pub(crate) fn fill_changed(
        &mut self,
        catalog: &Catalog,
        window: &raw::Window,
        changed: Option<Vec<u32>>,
    ) -> Result<(), String> {
        check_lengths(catalog, window)?;
        let apps = window.requests.as_ref().map(|requests| &*requests.app);
        let apps = apps.unwrap_or_default();
        self.fill_apps(catalog, apps)?;
        self.fill_progress(apps.len(), window.progress.as_deref().unwrap_or_default());
        self.fill_evidence(catalog, apps, window.evidence.as_ref())?;
        self.changed = changed;
        self.fill_residents(catalog, window.residents.as_deref().unwrap_or_default());
        Ok(())
    }

    pub(super) fn of_app(&self, app: AppId) -> &[u32] {
        let start = match app.index() {
            0 => 0,
            i => self.ends[i - 1] as usize,
        };
        &self.by_app[start..self.ends[app.index()] as usize]
    }

    pub(super) fn progress_of(&self, request: usize) -> Option<usize> {
        self.progress
            .get(request)
            .filter(|&&at| at != NONE)
            .map(|&at| at as usize)
    }

    pub(super) fn evidence_of(&self, request: usize) -> Option<usize> {
        self.evidence
            .get(request)
            .filter(|&&at| at != NONE)
            .map(|&at| at as usize)
    }

    pub(super) fn changed_workers(&self) -> Option<&[u32]> {
        self.changed.as_deref()
    }

    pub(super) fn holds(&self, worker: WorkerId, variant: VariantId) -> bool {
        let at = worker.index() * self.variants + variant.index();
        variant.index() < self.variants && self.resident.get(at).copied().unwrap_or(false)
    }

    /// A counting sort by app, stable, so that arrival order is kept.
    fn fill_apps(&mut self, catalog: &Catalog, apps: &[u32]) -> Result<(), String> {
        self.ends.clear();
        self.ends.resize(catalog.apps().len(), 0);
        for &app in apps {
            let count = self.ends.get_mut(app as usize);
            *count.ok_or_else(|| format!("window: requests.app: there is no app {app}"))? += 1;
        }
        let mut start = 0;
        for end in &mut self.ends {
            start += *end;
            // For now where the app begins; each request placed moves it on.
            *end = start - *end;
        }
        self.by_app.clear();
        self.by_app.resize(apps.len(), 0);
        for (position, &app) in (0u32..).zip(apps) {
            let next = &mut self.ends[app as usize];
            self.by_app[*next as usize] = position;
            *next += 1;
        }
        Ok(())
    }

    fn fill_progress(&mut self, requests: usize, progress: &[raw::Progress]) {
        self.progress.clear();
        if !progress.is_empty() {
            self.progress.resize(requests, NONE);
        }
        for (at, progress) in (0u32..).zip(progress) {
            if let Some(slot) = self.progress.get_mut(progress.index as usize) {
                *slot = at;
            }
        }
    }

    fn fill_evidence(
        &mut self,
        catalog: &Catalog,
        apps: &[u32],
        evidence: Option<&raw::Evidence>,
    ) -> Result<(), String> {
        self.evidence.clear();
        let Some(evidence) = evidence else {
            return Ok(());
        };
        self.evidence.resize(apps.len(), NONE);
        let mut start = 0;
        for &request in &evidence.index {
            let Some(&app) = apps.get(request as usize) else {
                return Err(format!("window: evidence.index: no request {request}"));
            };
            self.evidence[request as usize] = start;
            start += catalog.app(AppId(app)).classes.len() as u32;
        }
        if start as usize != evidence.counts.len() {
            return Err("window: evidence.counts: not one count per class".to_owned());
        }
        Ok(())
    }

    fn fill_residents(&mut self, catalog: &Catalog, residents: &[raw::Resident]) {
        self.variants = catalog.variants().len();
        match &self.changed {
            None => self.resident.clear(),
            Some(changed) => forget(&mut self.resident, self.variants, changed),
        }
        if !residents.is_empty() {
            self.resident
                .resize(catalog.workers().len() * self.variants, false);
        }
        for resident in residents {
            let at = resident.worker as usize * self.variants + resident.variant as usize;
            if let Some(slot) = self.resident.get_mut(at) {
                *slot = true;
            }
        }
    }
}

/// These workers hold nothing, as far as is known.
fn forget(resident: &mut [bool], variants: usize, workers: &[u32]) {
    for &worker in workers {
        let start = worker as usize * variants;
        if let Some(row) = resident.get_mut(start..start + variants) {
            row.fill(false);
        }
    }
}

/// The views index all columns alike.
fn check_lengths(catalog: &Catalog, window: &raw::Window) -> Result<(), String> {
    let equal = |name, len: usize, lens: &[usize]| match lens.iter().all(|&l| l == len) {
        true => Ok(()),
        false => Err(format!("window: {name}: columns of unequal length")),
    };
    let pending = window.requests.as_ref().map_or(0, |r| r.id.len());
    if let Some(r) = &window.requests {
        let columns = [
            r.app.len(),
            r.arrival.len(),
            r.deadline.len(),
            r.priority.len(),
            r.min_quality.len(),
        ];
        equal("requests", pending, &columns)?;
    }
    if let Some(costs) = &window.cost {
        equal("cost", pending, &[costs.len()])?;
    }
    let w = &window.workers;
    let workers = [
        w.busy_until.len(),
        w.free_at.len(),
        w.running_since.len(),
        w.running_variant.len(),
        w.queued.len(),
        w.parked.len(),
        w.free_memory.len(),
        w.up.len(),
    ];
    equal("workers", catalog.workers().len(), &workers)?;
    if let Some(c) = &window.completions {
        let completions = [
            c.app.len(),
            c.outcome.len(),
            c.variant.len(),
            c.exit.len(),
            c.latency.len(),
        ];
        equal("completions", c.id.len(), &completions)?;
    }
    let Some(p) = &window.placed else {
        return Ok(());
    };
    let placed = [
        p.app.len(),
        p.arrival.len(),
        p.deadline.len(),
        p.worker.len(),
        p.variant.len(),
        p.batch.len(),
        p.state.len(),
    ];
    equal("placed", p.id.len(), &placed)
}
