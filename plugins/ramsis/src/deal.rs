//! Which sets of tables serve, and on which workers.
//!
//! Sets for the same app, deadline and number of workers make a class: they are for different
//! kinds of workers that share one load (section 4: policies are made per worker). Each class has
//! workers of its own (appendix G).

use switchyard_sdk::{AppId, Catalog, WorkerId};

use crate::class::Class;
use crate::sheet::{Matched, at};

/// Combinations of classes that are looked at, at most.
const COMBINATIONS_MAX: usize = 10_000;

/// A class before its tables were read.
#[derive(Clone, Debug)]
struct Draft {
    app: AppId,
    slo_us: u64,
    workers: u32,
    /// One per kind of worker.
    sets: Vec<Matched>,
}

/// A draft's workers, and which of its sets is for each of them.
type Workers = Vec<(WorkerId, usize)>;

/// What serves, and what does not and why.
#[derive(Debug, Default)]
pub(crate) struct Deal {
    pub(crate) classes: Vec<Class>,
    pub(crate) complaints: Vec<String>,
}

// === impl Deal ===

impl Deal {
    /// Gives the workers to the classes: all of them, unless an app without tables needs some.
    ///
    /// # Errors
    /// The tables of a class that serves cannot be read.
    pub(crate) fn new(catalog: &Catalog, matched: Vec<Matched>) -> Result<Self, String> {
        let mut made = Self::default();
        let mut drafts = Vec::new();
        for set in matched {
            if let Some(unused) = add(&mut drafts, set) {
                let what = "are for the same as tables before them";
                made.complaints.push(at(&unused.index.folder, what));
            }
        }
        let (drafts, wide): (Vec<Draft>, Vec<Draft>) = drafts.iter().cloned().partition(|draft| {
            drafts
                .iter()
                .any(|other| other.app == draft.app && is_met(catalog, other))
        });
        for draft in &wide {
            let app = catalog.app(draft.app);
            let what = format!(
                "are for deadlines of {} us, the SLO of app {} is {} us",
                draft.slo_us, app.name, app.slo
            );
            made.complain(draft, &what);
        }
        let dealt = dealt(catalog, &drafts);
        for draft in drafts.iter().filter(|_| dealt.is_empty()) {
            for set in &draft.sets {
                let (workers, kind) = (draft.workers, &set.index.set.kind);
                let there = catalog
                    .workers()
                    .filter(|worker| is_for(catalog, set, worker.id));
                let there = there.count();
                let what = format!(
                    "are for {workers} workers of kind {kind}, of which the pool has {there}"
                );
                made.complaints.push(at(&set.index.folder, &what));
            }
        }
        for (at, workers) in dealt {
            let draft: Draft = drafts[at].clone();
            let sheets = draft.sets.into_iter().map(Matched::read);
            let sheets = sheets.collect::<Result<_, _>>()?;
            made.classes.push(Class::new(draft.app, sheets, workers));
        }
        // An app's most demanding deadline first.
        made.classes.sort_by_key(|class| (class.app, class.slo_us));
        Ok(made)
    }

    fn complain(&mut self, draft: &Draft, what: &str) {
        let folders = draft.sets.iter().map(|set| at(&set.index.folder, what));
        self.complaints.extend(folders);
    }
}

/// Puts a set with those that are for other kinds of workers of its class; gives it back where
/// there is one for its kind already.
fn add(drafts: &mut Vec<Draft>, set: Matched) -> Option<Matched> {
    let of = &set.index.set;
    let key = (set.app, of.slo_us, of.workers);
    let found = drafts
        .iter_mut()
        .find(|draft| (draft.app, draft.slo_us, draft.workers) == key);
    match found {
        None => {
            let (app, slo_us, workers) = key;
            let sets = vec![set];
            drafts.push(Draft {
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

/// Whether requests that ask for no deadline of their own have the time. Tables for longer
/// deadlines are for those that do, and of use only beside these.
fn is_met(catalog: &Catalog, draft: &Draft) -> bool {
    draft.slo_us <= catalog.app(draft.app).slo
}

/// The first combination of one class per app and deadline that the workers are enough for.
fn dealt(catalog: &Catalog, drafts: &[Draft]) -> Vec<(usize, Workers)> {
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
        deal(catalog, drafts, chosen)
    });
    found.unwrap_or_default()
}

/// Gives each of these classes the first workers that are left and that its tables are for.
fn deal(
    catalog: &Catalog,
    drafts: &[Draft],
    chosen: impl Iterator<Item = usize>,
) -> Option<Vec<(usize, Workers)>> {
    let mut left: Vec<WorkerId> = catalog.workers().map(|worker| worker.id).collect();
    let mut dealt: Vec<(usize, Workers)> = Vec::new();
    for at in chosen {
        let draft = &drafts[at];
        let mut workers = Workers::new();
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
        dealt.push((at, workers));
    }
    let has_tables = |app| dealt.iter().any(|&(at, _)| drafts[at].app == app);
    let is_used = left.is_empty() || catalog.apps().any(|app| !has_tables(app.id));
    is_used.then_some(dealt)
}

/// Whether a set's latencies are the worker's, and it can hold all that the set runs.
fn is_for(catalog: &Catalog, set: &Matched, worker: WorkerId) -> bool {
    let kind = catalog.worker(worker).kind();
    let is_kind = catalog.raw().kinds.get(kind.index()) == Some(&set.index.set.kind);
    let mut variants = set.variants.iter();
    is_kind && variants.all(|&variant| catalog.can_run(worker, variant))
}
