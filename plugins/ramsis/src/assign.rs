//! Assigns workers to sets of tables.
//!
//! Sets of one app, deadline and number of workers are a class, one set per kind of worker; the
//! workers share one load (section 4: policies are per worker). Each class has its own workers
//! (appendix G).

use switchyard_sdk::{AppId, Catalog, WorkerId};

use crate::artifacts::{MatchedSet, at};
use crate::class::RequestClass;

/// Largest number of combinations of classes that is tried.
const COMBINATIONS_MAX: usize = 10_000;

/// A class whose tables are not read yet.
#[derive(Clone, Debug)]
struct ClassDraft {
    app: AppId,
    slo_us: u64,
    workers: u32,
    /// One per kind of worker.
    sets: Vec<MatchedSet>,
}

/// A draft's workers, each with the index of its set.
type DraftWorkers = Vec<(WorkerId, usize)>;

/// The classes that serve, and the reasons why other folders do not.
#[derive(Debug, Default)]
pub(crate) struct Assignment {
    pub(crate) classes: Vec<RequestClass>,
    pub(crate) unused: Vec<String>,
}

// === impl Assignment ===

impl Assignment {
    /// Assigns all workers to classes, unless an app without tables needs some.
    ///
    /// # Errors
    /// The tables of a class that serves cannot be read.
    pub(crate) fn new(catalog: &Catalog, matched: Vec<MatchedSet>) -> Result<Self, String> {
        let mut made = Self::default();
        let mut drafts = Vec::new();
        for set in matched {
            if let Some(unused) = add(&mut drafts, set) {
                let reason = "same app, deadline, workers and kind as an earlier folder";
                made.unused.push(at(&unused.index.folder, reason));
            }
        }
        let (drafts, wide): (Vec<ClassDraft>, Vec<ClassDraft>) =
            drafts.iter().cloned().partition(|draft| {
                drafts
                    .iter()
                    .any(|other| other.app == draft.app && is_met(catalog, other))
            });
        for draft in &wide {
            let app = catalog.app(draft.app);
            let reason = format!(
                "`slo_us`: is {}, longer than the SLO of app {}, {}",
                draft.slo_us, app.name, app.slo
            );
            made.skip(draft, &reason);
        }
        let assigned = first_fitting(catalog, &drafts);
        for draft in drafts.iter().filter(|_| assigned.is_empty()) {
            for set in &draft.sets {
                let (workers, kind) = (draft.workers, &set.index.set.kind);
                let there = catalog
                    .workers()
                    .filter(|worker| is_for(catalog, set, worker.id));
                let there = there.count();
                let reason =
                    format!("`workers`: is {workers} of kind {kind}, but the pool has {there}");
                made.unused.push(at(&set.index.folder, &reason));
            }
        }
        for (at, workers) in assigned {
            let draft: ClassDraft = drafts[at].clone();
            let kinds = draft.sets.into_iter().map(MatchedSet::read);
            let kinds = kinds.collect::<Result<_, _>>()?;
            made.classes
                .push(RequestClass::new(draft.app, kinds, workers));
        }
        // An app's shortest deadline first.
        made.classes.sort_by_key(|class| (class.app, class.slo_us));
        Ok(made)
    }

    fn skip(&mut self, draft: &ClassDraft, reason: &str) {
        let folders = draft.sets.iter().map(|set| at(&set.index.folder, reason));
        self.unused.extend(folders);
    }
}

/// Adds a set to the draft of its class; returns it if the draft has a set of its kind.
fn add(drafts: &mut Vec<ClassDraft>, set: MatchedSet) -> Option<MatchedSet> {
    let of = &set.index.set;
    let key = (set.app, of.slo_us, of.workers);
    let found = drafts
        .iter_mut()
        .find(|draft| (draft.app, draft.slo_us, draft.workers) == key);
    match found {
        None => {
            let (app, slo_us, workers) = key;
            let sets = vec![set];
            drafts.push(ClassDraft {
                app,
                slo_us,
                workers,
                sets,
            });
        }
        Some(draft)
            if draft
                .sets
                .iter()
                .any(|other| other.index.set.kind == of.kind) =>
        {
            return Some(set);
        }
        Some(draft) => draft.sets.push(set),
    }
    None
}

/// Whether requests with the app's SLO have the time. Tables for longer deadlines are for requests
/// with their own deadlines, and are used only in addition.
fn is_met(catalog: &Catalog, draft: &ClassDraft) -> bool {
    draft.slo_us <= catalog.app(draft.app).slo
}

/// The first combination of one class per app and deadline for which there are enough workers.
fn first_fitting(catalog: &Catalog, drafts: &[ClassDraft]) -> Vec<(usize, DraftWorkers)> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, draft) in drafts.iter().enumerate() {
        let is_same = |group: &&mut Vec<usize>| {
            let first = &drafts[group[0]];
            (first.app, first.slo_us) == (draft.app, draft.slo_us)
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    let combinations = groups.iter().map(Vec::len).product::<usize>();
    let found = (0..combinations.min(COMBINATIONS_MAX)).find_map(|number| {
        let mut rest = number;
        let chosen = groups.iter().map(|group| {
            let at = group[rest % group.len()];
            rest /= group.len();
            at
        });
        assign(catalog, drafts, chosen)
    });
    found.unwrap_or_default()
}

/// Assigns to each of these classes the first workers that are left and that its tables are for.
fn assign(
    catalog: &Catalog,
    drafts: &[ClassDraft],
    chosen: impl Iterator<Item = usize>,
) -> Option<Vec<(usize, DraftWorkers)>> {
    let mut left: Vec<WorkerId> = catalog.workers().map(|worker| worker.id).collect();
    let mut assigned: Vec<(usize, DraftWorkers)> = Vec::new();
    for at in chosen {
        let draft = &drafts[at];
        let mut workers = DraftWorkers::new();
        left.retain(|&worker| {
            let set = draft
                .sets
                .iter()
                .position(|set| is_for(catalog, set, worker));
            match set {
                Some(set) if workers.len() < draft.workers as usize => {
                    workers.push((worker, set));
                    false
                }
                _ => true,
            }
        });
        if workers.len() < draft.workers as usize {
            return None;
        }
        assigned.push((at, workers));
    }
    let has_tables = |app| assigned.iter().any(|&(at, _)| drafts[at].app == app);
    let is_used = left.is_empty() || catalog.apps().any(|app| !has_tables(app.id));
    is_used.then_some(assigned)
}

/// Whether a set is for the worker's kind, and all its variants fit on the worker.
fn is_for(catalog: &Catalog, set: &MatchedSet, worker: WorkerId) -> bool {
    let kind = catalog.worker(worker).kind();
    let is_kind = catalog.raw().kinds.get(kind.index()) == Some(&set.index.set.kind);
    let mut variants = set.variants.iter();
    is_kind && variants.all(|&variant| catalog.can_run(worker, variant))
}
