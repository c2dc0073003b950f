//! Puts one policy through everything and keeps what came of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use switchyard_core::catalog::Catalog;
use switchyard_core::plan::Plan;
use switchyard_core::policy::{FaultKind, Policy, PolicyFault};
use switchyard_core::window::Window;

use super::windows::Case;
use super::{advice, catalog, changed_catalog, moment, window_of, windows, yard};
use crate::history::PolicyVersion;
use crate::loader::{LoadError, Loaded, Loader, Trial};
use crate::usage::Usage;

/// Whether a plan can be applied to a window, by the host's own check; if not, why not.
pub type CheckPlan = fn(&Arc<Catalog>, &Window, &Plan) -> Result<(), String>;

/// Pending requests of the windows that are timed.
const TIMED_SIZES: [usize; 3] = [1, 64, 1_024];

/// Most calls per size, and most time for them.
const TIMED_CALLS: usize = 400;
const TIMED_FOR: Duration = Duration::from_millis(250);

/// What is special about the changed catalog.
const NEW_CATALOG: &str = "`configure` is called again while the policy serves, with one app, two \
     variants and one worker more; what was sized for the first catalog is too short now";

/// The import by which a policy draws numbers.
const RANDOM: &str = "#random-u64";

/// State that no policy has written.
const FOREIGN_STATE: &[u8] = b"not a state of yours";

/// Checks a plan against a whole window: what the host's own check, which asks about idle
/// workers and fresh requests, leaves out, and then that.
///
/// # Errors
/// Why the plan would be refused.
pub fn check(
    catalog: &Arc<Catalog>,
    window: &Window,
    plan: &Plan,
    host: CheckPlan,
) -> Result<(), String> {
    let (window, plan) = moment::settle(catalog, window, plan)?;
    host(catalog, &window, &plan)
}

/// What came of an examination.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Examination {
    /// One per case, in the order in which they were tried.
    pub findings: Vec<Finding>,
    /// What windows take; a size whose windows fail is left out.
    pub costs: Vec<WindowCost>,
    /// The largest linear memory of an instance, in bytes.
    pub memory_peak_bytes: usize,
    /// What is allowed and may not be meant.
    pub notes: Vec<String>,
}

/// What came of one case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The case.
    pub case: &'static str,
    /// Why the policy failed it; none: it passed.
    pub failure: Option<String>,
    /// What is special about the window that it failed.
    pub special: Option<&'static str>,
    /// What to change, where it failed.
    pub advice: Option<&'static str>,
}

/// What a window call takes, on this machine and at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowCost {
    /// Requests pending.
    pub pending: usize,
    /// Calls that were timed.
    pub calls: usize,
    /// Median, in microseconds.
    pub p50_us: f64,
    /// 99th percentile, in microseconds.
    pub p99_us: f64,
}

struct Examiner<'a> {
    loader: &'a Loader,
    version: &'a PolicyVersion,
    check: CheckPlan,
    catalog: Arc<Catalog>,
    found: Examination,
    usages: Vec<Arc<Usage>>,
    /// It may draw from the host's stream, whose place no state can hand on.
    draws: bool,
}

/// Examines a version under the loader's limits. Instances are loaded anew several times, so
/// a loader with a code cache is quicker.
///
/// # Errors
/// It cannot be loaded: then there is nothing to examine.
pub fn examine(
    loader: &Loader,
    version: &PolicyVersion,
    check: CheckPlan,
) -> Result<Examination, LoadError> {
    let mut examiner = Examiner {
        loader,
        version,
        check,
        catalog: Arc::new(catalog()),
        found: Examination::default(),
        usages: Vec::new(),
        draws: false,
    };
    examiner.windows()?;
    examiner.change_of_catalog()?;
    examiner.state()?;
    if examiner.found.passed() {
        // A policy that fails windows fails here too, and has been told why.
        let policy = examiner.fresh()?;
        let ran = yard::run(policy, &examiner.catalog);
        examiner.note("runs a yard by itself", ran);
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
        let trial = Trial {
            catalog: &self.catalog,
            windows: &[],
            check: &mut |_, _| Ok(()),
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
        for case in windows(&self.catalog, wants) {
            let plan = self.answer(&self.catalog, one.as_mut(), &case.window);
            // Asked whatever came of the other, so that both have seen the same windows.
            let again = ask(two.as_mut(), &case.window);
            if let Ok(plan) = &plan
                && again.as_ref() != Ok(plan)
            {
                differs.get_or_insert(format!("{}: two instances gave two plans", case.name));
            }
            self.note_special(case.name, Some(case.special), plan.map(|_| ()));
        }
        self.note("the same input twice", differs.map_or(Ok(()), Err));
        Ok(())
    }

    fn answer(
        &self,
        catalog: &Arc<Catalog>,
        policy: &mut dyn Policy,
        window: &Window,
    ) -> Result<Plan, String> {
        let plan = ask(policy, window).map_err(|fault| fault.to_string())?;
        check(catalog, window, &plan, self.check)
            .map_err(|reason| format!("its plan is refused: {reason}"))?;
        Ok(plan)
    }

    /// A policy that serves is told of a new catalog and goes on with that.
    fn change_of_catalog(&mut self) -> Result<(), LoadError> {
        let mut policy = self.fresh()?;
        let wants = policy.description().wants;
        let before = window_of(&self.catalog, wants, 4);
        // What it does with this one has been looked at.
        let _ = ask(policy.as_mut(), &before);
        let changed = Arc::new(changed_catalog());
        let mut result = policy
            .configure(&changed)
            .map_err(|fault| fault.to_string());
        for Case { name, window, .. } in windows(&changed, wants) {
            result = result.and_then(|()| {
                let answer = self.answer(&changed, policy.as_mut(), &window);
                answer
                    .map(|_| ())
                    .map_err(|reason| format!("{name}: {reason}"))
            });
        }
        // What fails on the first catalog too has another cause.
        let special = self.found.passed().then_some(NEW_CATALOG);
        self.note_special("a new catalog", special, result);
        Ok(())
    }

    /// What it saves, its next version must take, and go on from; what it cannot read must not
    /// hurt it.
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
        for pending in TIMED_SIZES {
            let window = window_of(&self.catalog, wants, pending);
            self.found.costs.extend(cost(policy.as_mut(), window));
        }
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

/// The version that comes decides as the one that left would have.
fn goes_on(old: &mut dyn Policy, new: &mut dyn Policy, window: &Window) -> Result<(), String> {
    match (ask(old, window), ask(new, window)) {
        (Ok(old), Ok(new)) if old != new => {
            let words = "another plan after `save` and `restore` than without them";
            Err(words.to_owned())
        }
        // What it cannot answer has been told.
        _ => Ok(()),
    }
}

/// Says so when a policy decides by what it remembers and hands none of that on.
fn unsaved(policy: &mut dyn Policy, window: &Window) -> Option<String> {
    let first = ask(policy, window).ok()?;
    let again = (0..3).map(|_| ask(policy, window));
    let differs = again
        .into_iter()
        .any(|plan| plan.is_ok_and(|plan| plan != first));
    differs.then(|| {
        "the same window asked again got another plan: it decides by what it remembers, and `save` \
         hands nothing on, so that each new version starts afresh; if that is not meant, decide \
         from the window alone"
            .to_owned()
    })
}

fn ask(policy: &mut dyn Policy, window: &Window) -> Result<Plan, PolicyFault> {
    let mut plan = Plan::default();
    policy.schedule(window, &mut plan)?;
    Ok(plan)
}

/// Times one window again and again; none when
/// the policy fails it.
fn cost(policy: &mut dyn Policy, mut window: Window) -> Option<WindowCost> {
    let (mut plan, mut took_us) = (Plan::default(), Vec::with_capacity(TIMED_CALLS));
    let end = Instant::now() + TIMED_FOR;
    while took_us.len() < TIMED_CALLS && Instant::now() < end {
        plan.clear();
        let began = Instant::now();
        let answer = policy.schedule(&window, &mut plan);
        took_us.push(began.elapsed().as_secs_f64() * 1e6);
        answer.ok()?;
        window.id += 1;
    }
    took_us.sort_by(f64::total_cmp);
    let rank = |percent: usize| {
        let rank = (took_us.len() * percent).div_ceil(100).saturating_sub(1);
        took_us.get(rank).copied()
    };
    Some(WindowCost {
        pending: window.len(),
        calls: took_us.len(),
        p50_us: rank(50)?,
        p99_us: rank(99)?,
    })
}
