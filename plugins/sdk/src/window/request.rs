//! Pending requests.

use super::Window;
use crate::bindings::exports::switchyard::policy::scheduling as raw;
use crate::ids::{AppId, RequestId, VariantId, WorkerId};

/// One pending request.
#[derive(Clone, Copy)]
pub struct RequestRef<'a> {
    pub(super) window: Window<'a>,
    pub(super) at: usize,
}

/// The stages that a parked request has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Progress {
    /// The worker that holds its activations; it can go on nowhere else.
    pub worker: WorkerId,
    /// The variant it must go on with.
    pub variant: VariantId,
    /// Stages it has run.
    pub stages_run: u32,
}

// === impl RequestRef ===

impl<'a> RequestRef<'a> {
    /// Its position in the window, oldest arrival first.
    pub fn index(self) -> usize {
        self.at
    }

    /// Its id.
    pub fn id(self) -> RequestId {
        RequestId(self.columns().id[self.at])
    }

    /// The app it asks for.
    pub fn app(self) -> AppId {
        AppId(self.columns().app[self.at])
    }

    /// When it arrived, on the host's clock.
    pub fn arrival_us(self) -> u64 {
        self.columns().arrival[self.at]
    }

    /// When its answer loses worth, on the host's clock.
    pub fn deadline_us(self) -> u64 {
        self.columns().deadline[self.at]
    }

    /// Time left to the deadline, negative once it has passed.
    pub fn slack_us(self) -> i64 {
        self.deadline_us()
            .wrapping_sub(self.window.raw.now)
            .cast_signed()
    }

    /// Time since it arrived.
    pub fn age_us(self) -> u64 {
        self.window.raw.now.saturating_sub(self.arrival_us())
    }

    /// 0 = unspecified, 1 = highest, larger = lower.
    pub fn priority(self) -> u32 {
        self.columns().priority[self.at]
    }

    /// Least quality that the client asks for; 0 asks for none.
    pub fn min_quality(self) -> f64 {
        f64::from(self.columns().min_quality[self.at])
    }

    /// Its cost in rows of the profile: a batch takes as long as a profiled one of as many requests
    /// as the costs of its requests add up to. 1 for a request as long as those of the profile.
    pub fn cost(self) -> f64 {
        let costs = self.window.raw.cost.as_ref();
        let cost = costs.and_then(|costs| costs.get(self.at).copied());
        cost.map_or(1.0, f64::from)
    }

    /// The stages it has run; none if it has run no stage.
    pub fn progress(self) -> Option<Progress> {
        let at = self.window.index.progress_of(self.at)?;
        let progress = self.window.raw.progress.as_deref()?;
        progress.get(at).map(Progress::from_raw)
    }

    /// Labels of its nearest neighbours, one count per class of its app; none until they are ready.
    /// Needs `WindowFields::EVIDENCE`.
    pub fn evidence(self) -> Option<&'a [u32]> {
        let start = self.window.index.evidence_of(self.at)?;
        let classes = self.window.catalog.app(self.app()).classes.len();
        let evidence = self.window.raw.evidence.as_ref()?;
        evidence.counts.get(start..start + classes)
    }

    fn columns(self) -> &'a raw::Requests {
        self.window.requests
    }
}

impl From<RequestRef<'_>> for RequestId {
    fn from(request: RequestRef<'_>) -> Self {
        request.id()
    }
}

// === impl Progress ===

impl Progress {
    pub(super) fn from_raw(raw: &raw::Progress) -> Self {
        Self {
            worker: WorkerId(raw.worker),
            variant: VariantId(raw.variant),
            stages_run: raw.stages_run,
        }
    }
}
