//! Puts one policy through all cases and collects the findings.

use std::sync::Arc;

use serde::Serialize;
use switchyard_core::catalog::Catalog;
use switchyard_core::plan::{Plan, check_window};
use switchyard_core::policy::{FaultKind, Policy, PolicyFault};
use switchyard_core::window::Window;
use switchyard_policy::loader::{LoadError, Loaded, Loader, PolicyTrial};
use switchyard_policy::trial::{MadeWindow, catalog, changed_catalog, made_windows, window_of};
use switchyard_policy::{PolicyUsage, PolicyVersion};

use crate::advice::advice;
use crate::cost::{WindowCost, window_costs};
use crate::run;

/// The particularity of the changed catalog.
const NEW_CATALOG: &str = "`configure` is called again while the policy serves, with one app, two \
     variants and one worker more; lists sized for the first catalog are too short now";

/// The import by which a policy draws numbers.
const RANDOM: &str = "#random-u64";

/// A state that no policy has written.
const FOREIGN_STATE: &[u8] = b"not a state of yours";

/// The findings of an examination.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Examination {
    /// One per case, in the order in which they were tried.
    pub findings: Vec<Finding>,
    /// Times of window calls; sizes whose windows fail are left out.
    pub costs: Vec<WindowCost>,
    /// The largest linear memory of an instance, in bytes.
    pub memory_peak_bytes: usize,
    /// Behaviour that is allowed and may not be intended.
    pub notes: Vec<String>,
}

/// The finding of one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The case.
    pub case: &'static str,
    /// Why the policy failed it; none: it passed.
    pub failure: Option<String>,
    /// The particularity of the window that it failed.
    pub special: Option<&'static str>,
    /// The change to make, if it failed.
    pub advice: Option<&'static str>,
}

/// The examination under way.
struct Examiner<'a> {
    loader: &'a Loader,
    version: &'a PolicyVersion,
    catalog: Arc<Catalog>,
    found: Examination,
    usages: Vec<Arc<PolicyUsage>>,
    /// It may draw from the host's random stream, which `save` and `restore` do not carry.
    draws: bool,
}

/// Examines a version under the loader's limits. Instances are loaded anew several times, so
/// a loader with a code cache is quicker.
///
/// # Errors
/// It cannot be loaded: then there is nothing to examine.
pub fn examine(loader: &Loader, version: &PolicyVersion) -> Result<Examination, LoadError> {
    let mut examiner = Examiner {
        loader,
        version,
        catalog: Arc::new(catalog()),
        found: Examination::default(),
        usages: Vec::new(),
        draws: false,
    };
    examiner.windows()?;
    examiner.change_of_catalog()?;
    examiner.state()?;
    if examiner.found.passed() {
        // A policy that fails windows would fail here for the same reason.
        let policy = examiner.fresh()?;
        let ran = run::run(policy, &examiner.catalog);
        examiner.note("a simulated run", ran);
    }
    examiner.costs()?;
    Ok(examiner.conclude())
}

// === impl Examination ===

impl Examination {
    /// No case failed.
    pub fn passed(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.failure.is_none())
    }
}

// === impl Examiner ===

impl Examiner<'_> {
    fn fresh(&mut self) -> Result<Box<dyn Policy>, LoadError> {
        let trial = PolicyTrial {
            catalog: &self.catalog,
            windows: &[],
        };
        let Loaded {
            policy,
            usage,
            interface,
            ..
        } = self.loader.load_version(self.version, trial)?;
        self.usages.push(usage);
        self.draws = interface.imports.iter().any(|name| name.ends_with(RANDOM));
        Ok(policy)
    }

    fn note(&mut self, case: &'static str, result: Result<(), String>) {
        self.note_special(case, None, result);
    }

    fn note_special(
        &mut self,
        case: &'static str,
        special: Option<&'static str>,
        result: Result<(), String>,
    ) {
        let failure = result.err();
        self.found.findings.push(Finding {
            case,
            special: special.filter(|_| failure.is_some()),
            advice: failure.as_deref().and_then(advice),
            failure,
        });
    }

    /// Every window, and every window again on another instance.
    fn windows(&mut self) -> Result<(), LoadError> {
        let (mut one, mut two) = (self.fresh()?, self.fresh()?);
        let wants = one.description().wants;
        let mut differs = None;
        for case in made_windows(&self.catalog, wants) {
            let plan = answer(&self.catalog, one.as_mut(), &case.window);
            // Asked even if the other one failed, so that both have seen the same windows.
            let again = ask(two.as_mut(), &case.window);
            if let Ok(plan) = &plan
                && again.as_ref() != Ok(plan)
            {
                differs.get_or_insert(format!("{}: two instances gave two plans", case.name));
            }
            self.note_special(case.name, Some(case.special), plan.map(|_| ()));
        }
        self.note("the same input twice", differs.map_or(Ok(()), Err));
        if one.description().changed_workers {
            self.changed_workers()?;
        }
        Ok(())
    }

    /// A policy that is sent only the workers that changed decides as if it were sent all of them.
    fn changed_workers(&mut self) -> Result<(), LoadError> {
        let mut changed = self.fresh()?;
        let showing_all = self.loader.showing_all_workers();
        let trial = PolicyTrial {
            catalog: &self.catalog,
            windows: &[],
        };
        let mut whole = showing_all.load_version(self.version, trial)?.policy;
        let wants = whole.description().wants;
        let mut differs = None;
        // Every window twice: the second time no worker has changed.
        for case in made_windows(&self.catalog, wants) {
            for _ in 0..2 {
                let plans = [&mut changed, &mut whole].map(|p| ask(p.as_mut(), &case.window));
                if let [Ok(one), Ok(other)] = &plans
                    && one != other
                {
                    differs.get_or_insert(format!(
                        "{}: another plan with the changed workers than with all of them",
                        case.name
                    ));
                }
            }
        }
        self.note("only changed workers", differs.map_or(Ok(()), Err));
        Ok(())
    }

    /// A serving policy is configured with a new catalog and goes on with it.
    fn change_of_catalog(&mut self) -> Result<(), LoadError> {
        let mut policy = self.fresh()?;
        let wants = policy.description().wants;
        let before = window_of(&self.catalog, wants, 4);
        // Its plan for this window has been checked already.
        let _ = ask(policy.as_mut(), &before);
        let changed = Arc::new(changed_catalog());
        let mut result = policy
            .configure(&changed)
            .map_err(|fault| fault.to_string());
        for MadeWindow { name, window, .. } in made_windows(&changed, wants) {
            result = result.and_then(|()| {
                let answer = answer(&changed, policy.as_mut(), &window);
                answer
                    .map(|_| ())
                    .map_err(|reason| format!("{name}: {reason}"))
            });
        }
        // A policy that fails on the first catalog too fails for another reason.
        let special = self.found.passed().then_some(NEW_CATALOG);
        self.note_special("a new catalog", special, result);
        Ok(())
    }

    /// The next version must take the state that the policy saves and go on from it. A state that
    /// it cannot read must not make it fault.
    fn state(&mut self) -> Result<(), LoadError> {
        let (mut old, mut new) = (self.fresh()?, self.fresh()?);
        let wants = old.description().wants;
        let (before, after) = (
            window_of(&self.catalog, wants, 4),
            window_of(&self.catalog, wants, 24),
        );
        let _ = ask(old.as_mut(), &before);
        let saved = old.save();
        let is_empty = saved.as_ref().is_ok_and(Vec::is_empty);
        let handed = saved.and_then(|state| match state.is_empty() {
            true => Ok(()),
            false => new.restore(&state),
        });
        let is_handed = handed.is_ok() && !is_empty;
        self.note(
            "hands its state on",
            handed.map_err(|fault| fault.to_string()),
        );
        let went_on = if is_handed && !self.draws {
            goes_on(old.as_mut(), new.as_mut(), &after)
        } else {
            Ok(())
        };
        self.note("goes on from its state", went_on);
        let mut other = self.fresh()?;
        let foreign = match other.restore(FOREIGN_STATE) {
            Err(fault) if fault.kind != FaultKind::Failed => Err(fault.to_string()),
            _ => Ok(()),
        };
        self.note("state of another policy", foreign);
        if is_empty && !self.draws {
            let mut policy = self.fresh()?;
            self.found.notes.extend(unsaved(policy.as_mut(), &before));
        }
        Ok(())
    }

    fn costs(&mut self) -> Result<(), LoadError> {
        let mut policy = self.fresh()?;
        let wants = policy.description().wants;
        self.found.costs = window_costs(policy.as_mut(), |pending| {
            window_of(&self.catalog, wants, pending)
        });
        Ok(())
    }

    fn conclude(mut self) -> Examination {
        let dropped: u64 = self
            .usages
            .iter()
            .map(|usage| usage.log_lines_dropped())
            .sum();
        let limit = self.loader.limits().log_lines;
        let logs = if dropped == 0 {
            Ok(())
        } else {
            Err(format!(
                "more than {limit} log lines in one call; {dropped} lines were dropped"
            ))
        };
        self.note("logs within its limit", logs);
        let peaks = self.usages.iter().map(|usage| usage.memory_peak_bytes());
        self.found.memory_peak_bytes = peaks.max().unwrap_or(0);
        self.found
    }
}

/// The new version decides as the old one would have.
fn goes_on(old: &mut dyn Policy, new: &mut dyn Policy, window: &Window) -> Result<(), String> {
    match (ask(old, window), ask(new, window)) {
        (Ok(old), Ok(new)) if old != new => {
            let words = "another plan after `save` and `restore` than without them";
            Err(words.to_owned())
        }
        // Faults are findings of other cases.
        _ => Ok(()),
    }
}

/// A note about a policy that decides by its memory and saves none of it.
fn unsaved(policy: &mut dyn Policy, window: &Window) -> Option<String> {
    let first = ask(policy, window).ok()?;
    let again = (0..3).map(|_| ask(policy, window));
    let differs = again
        .into_iter()
        .any(|plan| plan.is_ok_and(|plan| plan != first));
    differs.then(|| {
        "the same window asked again got another plan: the policy decides by its memory, and `save` \
         returns nothing, so that each new version starts afresh; if that is not intended, decide \
         from the window alone"
            .to_owned()
    })
}

/// A plan that the host would apply.
fn answer(catalog: &Catalog, policy: &mut dyn Policy, window: &Window) -> Result<Plan, String> {
    let plan = ask(policy, window).map_err(|fault| fault.to_string())?;
    check_window(window, catalog, &plan)
        .map_err(|error| format!("its plan is refused: {error}"))?;
    Ok(plan)
}

fn ask(policy: &mut dyn Policy, window: &Window) -> Result<Plan, PolicyFault> {
    let mut plan = Plan::default();
    policy.schedule(window, &mut plan)?;
    Ok(plan)
}
