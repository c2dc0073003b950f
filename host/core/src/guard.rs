//! The order in which policies answer a window: the active one, if it fails its last good version,
//! if that fails too the native fallback. Counts faults and takes off a policy that keeps failing.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::ids::RequestId;
use crate::plan::{CheckedPlan, Plan, PlanError};
use crate::policy::{Description, EarliestDeadlineFirst, FaultKind, Policy, PolicyFault};
use crate::reach::Reach;
use crate::request::{Outcome, Request};
use crate::time::{Micros, Time};
use crate::window::Window;

/// Label of the host's own decisions: routed and pinned requests.
pub const HOST_LABEL: &str = "host";

/// A fault counts towards the sustained limit for this long, one fault after the other: a policy
/// that faults less often than this is never taken off by it.
pub const FAULT_FORGIVEN_AFTER: Micros = Micros::from_millis(10_000);

/// Times [`FaultLimit::faults`]: the faults that may be unforgiven. A policy that stays below the
/// limit per windows may still lose much time, since each fault can cost a restart.
pub const SUSTAINED_FACTOR: u64 = 4;

/// Windows in a row in which a policy may reject everything although an idle worker could answer
/// a request in time. Each further one is a fault. This number does not come by chance from
/// policies that draw a worker and reject requests that it cannot serve in time.
pub const REJECTING_WINDOWS: u32 = 100;

/// The fault rate at which a policy is taken off. Independent of it a policy is taken off when
/// its faults, less one for each [`FAULT_FORGIVEN_AFTER`], reach [`SUSTAINED_FACTOR`] times
/// `faults`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultLimit {
    /// Faults that take it off.
    pub faults: usize,
    /// Windows within which they count.
    pub windows: u64,
}

impl FaultLimit {
    /// Takes no policy off.
    pub const NEVER: Self = Self {
        faults: usize::MAX,
        windows: 1,
    };
}

impl Default for FaultLimit {
    fn default() -> Self {
        Self {
            faults: 5,
            windows: 100,
        }
    }
}

/// A policy that failed to serve a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faulted {
    /// Label of the policy.
    pub policy: Arc<str>,
    /// The fault.
    pub fault: PolicyFault,
    /// It has reached the [`FaultLimit`] and is not asked again.
    pub taken_off: bool,
    /// It was the active policy, or the last good version that had taken its place. Its loss is that of
    /// the pool's policy.
    pub is_active: bool,
}

/// The plan for a window, and the label of the policy that made it.
#[derive(Debug)]
pub(crate) struct ServedWindow {
    pub(crate) by: Arc<str>,
    pub(crate) plan: CheckedPlan,
}

/// The policies of a pool and the faults of the active one.
#[derive(Debug)]
pub(crate) struct Guard {
    active: Option<LabelledPolicy>,
    last_good: Option<LabelledPolicy>,
    fallback: LabelledPolicy,
    limit: FaultLimit,
    /// Windows in which the active policy faulted.
    faults: VecDeque<u64>,
    /// Its faults that are not forgiven, as the time after which they will be.
    unforgiven: Micros,
    /// When `unforgiven` was brought up to date.
    counted: Time,
    /// Windows in a row in which it rejected everything although an idle worker could serve.
    rejecting: u32,
    /// The active policy failed its last window.
    rescuing: bool,
    /// The requests that the active policy is shown.
    reach: Reach,
}

/// A policy and its label.
struct LabelledPolicy {
    label: Arc<str>,
    policy: Box<dyn Policy>,
}

// === impl Guard ===

impl Guard {
    pub(crate) fn new(limit: FaultLimit) -> Self {
        Self {
            active: None,
            last_good: None,
            fallback: LabelledPolicy::new(Box::new(EarliestDeadlineFirst::default())),
            limit,
            faults: VecDeque::new(),
            unforgiven: Micros::ZERO,
            counted: Time::ZERO,
            rejecting: 0,
            rescuing: false,
            reach: Reach::default(),
        }
    }

    /// The policy that is asked first.
    fn first(&self) -> &LabelledPolicy {
        let held = self.active.as_ref().or(self.last_good.as_ref());
        held.unwrap_or(&self.fallback)
    }

    /// The description of the policy that is asked first.
    pub(crate) fn description(&self) -> &Description {
        self.first().policy.description()
    }

    /// The fallback's description while the active policy fails: windows then open for it as well.
    pub(crate) fn rescue(&self) -> Option<&Description> {
        (self.rescuing && self.active.is_some()).then(|| self.fallback.policy.description())
    }

    pub(crate) fn label(&self) -> Arc<str> {
        Arc::clone(&self.first().label)
    }

    /// Labels of the policies that are held: the active one and its last good version.
    pub(crate) fn labels(&self) -> impl Iterator<Item = &Arc<str>> {
        let held = [&self.active, &self.last_good];
        held.into_iter().flatten().map(|policy| &policy.label)
    }

    /// Hands the state over and makes `policy` the active one. The one before stays as the last
    /// good version, unless it was failing.
    ///
    /// # Errors
    /// Why the state could not be handed over. The switch itself cannot fail.
    pub(crate) fn install(&mut self, mut policy: Box<dyn Policy>) -> Result<(), PolicyFault> {
        let handed_over = match &mut self.active {
            Some(old) => hand_over(old.policy.as_mut(), policy.as_mut()),
            None => Ok(()),
        };
        let mut old = self.active.replace(LabelledPolicy::new(policy));
        if let Some(old) = &mut old {
            old.policy.superseded();
        }
        self.reach = Reach::default();
        if !self.rescuing && old.is_some() {
            self.last_good = old;
        }
        self.reset_faults();
        handed_over
    }

    /// Hands the state of the active policy over to the same policy in other code, which takes its
    /// place with its faults. None if a policy with another label is active, or none.
    pub(crate) fn recompiled(
        &mut self,
        mut policy: Box<dyn Policy>,
    ) -> Option<Result<(), PolicyFault>> {
        let active = self.active.as_mut()?;
        if *active.label != policy.description().label() {
            return None;
        }
        let handed_over = hand_over(active.policy.as_mut(), policy.as_mut());
        active.policy = policy;
        self.reach = Reach::default();
        Some(handed_over)
    }

    /// Removes the active policy and its last good version: the fallback serves.
    pub(crate) fn remove(&mut self) {
        self.active = None;
        self.last_good = None;
        self.reset_faults();
    }

    /// Configures every policy with a catalog. Drops those that refuse it and returns them.
    pub(crate) fn configure(&mut self, catalog: &Catalog) -> Vec<Faulted> {
        // Cannot fail: the native fallback takes any valid catalog.
        let _ = self.fallback.policy.configure(catalog);
        let mut faulted = Vec::new();
        let mut is_active = true;
        for policy in [&mut self.active, &mut self.last_good] {
            let Some(held) = policy else { continue };
            match held.policy.configure(catalog) {
                Ok(()) => is_active = false,
                Err(fault) => {
                    faulted.push(Faulted {
                        policy: Arc::clone(&held.label),
                        fault,
                        taken_off: true,
                        is_active,
                    });
                    *policy = None;
                }
            }
        }
        faulted
    }

    /// The active policy leaves requests to wait for ever: counted like any other fault.
    pub(crate) fn starved(
        &mut self,
        now: Time,
        window: u64,
        request: RequestId,
    ) -> Option<Faulted> {
        let reason = format!(
            "request {} waits past its deadline although a worker is idle",
            request.0
        );
        let fault = PolicyFault::new(FaultKind::Starved, reason);
        let active = self.active.as_mut()?;
        if active.policy.takes_blame(request, &fault) {
            return None;
        }
        self.charge(now, window, fault)
    }

    /// A request was accepted.
    pub(crate) fn arrived(&mut self, request: &Request) {
        if let Some(active) = &mut self.active {
            active.policy.arrived(request);
        }
    }

    /// A request ended.
    pub(crate) fn ended(&mut self, now: Time, request: &Request, outcome: &Outcome) {
        if let Some(active) = &mut self.active {
            active.policy.ended(now, request, outcome);
        }
    }

    /// The label under which a decision of `by` about a request is known.
    pub(crate) fn author<'a>(&'a self, by: &'a Arc<str>, request: RequestId) -> &'a Arc<str> {
        let active = self
            .active
            .as_ref()
            .filter(|active| Arc::ptr_eq(&active.label, by));
        let author = active.and_then(|active| active.policy.author(request));
        author.unwrap_or(by)
    }

    /// Notes whether the active policy rejected all requests of a window `in_vain`: although an
    /// idle worker could answer one of them in time.
    pub(crate) fn rejected(&mut self, now: Time, window: u64, in_vain: bool) -> Option<Faulted> {
        if !in_vain {
            self.rejecting = 0;
            return None;
        }
        self.rejecting = self.rejecting.saturating_add(1);
        if self.rejecting <= REJECTING_WINDOWS {
            return None;
        }
        let reason = format!(
            "all requests of {} windows in a row are rejected although an idle worker could answer \
             them in time",
            self.rejecting
        );
        self.charge(now, window, PolicyFault::new(FaultKind::Rejecting, reason))
    }

    fn charge(&mut self, now: Time, window: u64, fault: PolicyFault) -> Option<Faulted> {
        let policy = Arc::clone(&self.active.as_ref()?.label);
        Some(Faulted {
            policy,
            fault,
            taken_off: self.count(now, window),
            is_active: true,
        })
    }

    /// The most pending requests that a window shows the active policy.
    pub(crate) fn reach(&self, now: Time) -> usize {
        match self.active {
            Some(_) => self.reach.at(now),
            None => usize::MAX,
        }
    }

    /// Whether the active policy has this label.
    pub(crate) fn is_active(&self, label: &Arc<str>) -> bool {
        let active = self.active.as_ref();
        active.is_some_and(|active| Arc::ptr_eq(&active.label, label))
    }

    /// A policy other than the native fallback is asked first.
    pub(crate) fn has_policy(&self) -> bool {
        self.active.is_some() || self.last_good.is_some()
    }

    /// Asks until a plan passes `check`. The fallback's plan always does.
    pub(crate) fn serve(
        &mut self,
        window: &Window,
        rescue_only: bool,
        mut plan: Plan,
        mut check: impl FnMut(Plan) -> Result<CheckedPlan, Box<(Plan, PlanError)>>,
        faulted: &mut Vec<Faulted>,
    ) -> ServedWindow {
        if let Some(active) = self.active.as_mut().filter(|_| !rescue_only) {
            match active.ask(window, plan, &mut check) {
                Ok(served) => {
                    self.rescuing = false;
                    return served;
                }
                Err(failed) => {
                    let fault;
                    (plan, fault) = *failed;
                    let policy = Arc::clone(&active.label);
                    self.rescuing = true;
                    let is_excused = fault.kind == FaultKind::Overrun
                        && self.reach.overran(window.now, window.len());
                    let taken_off = !is_excused && self.count(window.now, window.id);
                    faulted.push(Faulted {
                        policy,
                        fault,
                        taken_off,
                        is_active: true,
                    });
                }
            }
        }
        if let Some(last_good) = self.last_good.as_mut().filter(|_| !rescue_only) {
            match last_good.ask(window, plan, &mut check) {
                Ok(served) => return served,
                Err(failed) => {
                    let fault;
                    (plan, fault) = *failed;
                    faulted.push(Faulted {
                        policy: Arc::clone(&last_good.label),
                        fault,
                        taken_off: true,
                        is_active: self.active.is_none(),
                    });
                    self.last_good = None;
                }
            }
        }
        match self.fallback.ask(window, plan, &mut check) {
            Ok(served) => served,
            Err(failed) => {
                let (mut plan, fault) = *failed;
                // A defect of the core. With an empty plan everything stays pending.
                faulted.push(Faulted {
                    policy: Arc::clone(&self.fallback.label),
                    fault,
                    taken_off: false,
                    is_active: false,
                });
                plan.clear();
                let by = Arc::clone(&self.fallback.label);
                match check(plan) {
                    Ok(plan) => ServedWindow { by, plan },
                    Err(_) => unreachable!("an empty plan names nothing that could be wrong"),
                }
            }
        }
    }

    /// Counts a fault of the active policy; true when that takes it off.
    fn count(&mut self, now: Time, window: u64) -> bool {
        let limit = self.limit;
        self.rescuing = true;
        self.faults.push_back(window);
        while self
            .faults
            .front()
            .is_some_and(|&w| window.saturating_sub(w) >= limit.windows)
        {
            self.faults.pop_front();
        }
        let forgiven = now.since(self.counted).0;
        let left = self.unforgiven.0.saturating_sub(forgiven);
        self.unforgiven = Micros(left) + FAULT_FORGIVEN_AFTER;
        self.counted = now;
        let most = (limit.faults as u64).saturating_mul(SUSTAINED_FACTOR);
        let most = most
            .saturating_sub(1)
            .saturating_mul(FAULT_FORGIVEN_AFTER.0);
        let taken_off = self.faults.len() >= limit.faults || self.unforgiven.0 > most;
        if taken_off {
            self.active = None;
            self.reset_faults();
        }
        taken_off
    }

    fn reset_faults(&mut self) {
        self.faults.clear();
        self.unforgiven = Micros::ZERO;
        self.rejecting = 0;
        self.rescuing = false;
    }
}

/// An empty state is not handed over.
fn hand_over(from: &mut dyn Policy, to: &mut dyn Policy) -> Result<(), PolicyFault> {
    match from.save()?.as_slice() {
        [] => Ok(()),
        state => to.restore(state),
    }
}

// === impl LabelledPolicy ===

impl LabelledPolicy {
    fn new(policy: Box<dyn Policy>) -> Self {
        Self {
            label: policy.description().label().into(),
            policy,
        }
    }

    fn ask(
        &mut self,
        window: &Window,
        mut plan: Plan,
        check: &mut impl FnMut(Plan) -> Result<CheckedPlan, Box<(Plan, PlanError)>>,
    ) -> Result<ServedWindow, Box<(Plan, PolicyFault)>> {
        plan.clear();
        if let Err(fault) = self.policy.schedule(window, &mut plan) {
            return Err(Box::new((plan, fault)));
        }
        match check(plan) {
            Ok(plan) => Ok(ServedWindow {
                by: Arc::clone(&self.label),
                plan,
            }),
            Err(refused) => {
                let (plan, error) = *refused;
                let fault = PolicyFault::new(FaultKind::Refused, error.to_string());
                Err(Box::new((plan, fault)))
            }
        }
    }
}

impl std::fmt::Debug for LabelledPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.label)
    }
}
