//! The policy that a scheduler asks while a canary runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::member::MemberPolicy;
use super::merge::{Merge, occupy};
use super::report::{CanaryReport, CanaryWatch, MemberReport};
use super::routing::MemberRoutes;
use super::rule::{CanaryRule, Verdict, Why};
use super::slots::{Member, Slots};
use super::split::Split;
use super::tally::Tally;
use super::test::PairedTest;
use crate::catalog::Catalog;
use crate::ids::RequestId;
use crate::plan::Plan;
use crate::policy::{
    Description, EarliestDeadlineFirst, Policy, PolicyFault, Triggers, WindowFields,
};
use crate::request::{Outcome, Request};
use crate::time::{Micros, Time};
use crate::window::{Window, Workers};

/// Longest time between two reports while nothing is decided: a report costs more than a window.
const REPORT_EVERY: Micros = Micros::from_millis(50);

/// Shortest wait for the requests of a round that is over.
const PATIENCE_MIN: Micros = Micros::from_millis(1_000);

/// The parts of a canary. All policies are configured.
pub struct CanaryParts {
    /// A fresh instance of the policy that serves.
    pub serving: Box<dyn Policy>,
    /// Another one.
    pub baseline: Box<dyn Policy>,
    /// The candidate.
    pub candidate: Box<dyn Policy>,
    /// The catalog that they are configured with.
    pub catalog: Arc<Catalog>,
    /// Share of the requests that the candidate gets, and the baseline too, up to
    /// [`SHARE_MAX`](super::SHARE_MAX).
    pub share: f64,
    /// Length of a slot: how long a member is on duty.
    pub slot: Micros,
    /// Seed of the places of the slots.
    pub seed: u64,
    /// The rule of its end.
    pub rule: CanaryRule,
}

/// Three policies that share a pool, and the comparison of two of them.
#[derive(Debug)]
pub struct Canary {
    description: Description,
    catalog: Arc<Catalog>,
    rule: CanaryRule,
    share: f64,
    slot: Micros,
    seed: u64,
    /// The first window made it.
    slots: Option<(Time, Slots)>,
    /// By [`Member`].
    members: [MemberPolicy; 3],
    /// Serves the windows that baseline or candidate fail.
    rescue: EarliestDeadlineFirst,
    /// Live requests that arrived since the beginning.
    owners: BTreeMap<RequestId, Member>,
    /// Owners of those that ended since the last window.
    ended: BTreeMap<RequestId, Member>,
    tally: Tally,
    test: PairedTest,
    split: Split,
    workers: Workers,
    merge: Merge,
    routes: MemberRoutes,
    verdict: Option<Verdict>,
    /// Another policy took over: the serving policy answers alone.
    is_alone: bool,
    /// When the next report is due.
    report_at: Time,
    watch: CanaryWatch,
}

// === impl Canary ===

impl Canary {
    /// A canary that begins with its first window, and the view of it from outside.
    pub fn new(parts: CanaryParts) -> (Self, CanaryWatch) {
        let members = [parts.serving, parts.baseline, parts.candidate].map(MemberPolicy::new);
        let mut rescue = EarliestDeadlineFirst::default();
        // Takes any valid catalog.
        let _ = rescue.configure(&parts.catalog);
        let watch = CanaryWatch::default();
        let canary = Self {
            description: description(&members),
            catalog: parts.catalog,
            rule: parts.rule,
            share: parts.share,
            slot: parts.slot,
            seed: parts.seed,
            slots: None,
            members,
            rescue,
            owners: BTreeMap::new(),
            ended: BTreeMap::new(),
            tally: Tally::default(),
            test: PairedTest::default(),
            split: Split::default(),
            workers: Workers::default(),
            merge: Merge::default(),
            routes: MemberRoutes::default(),
            verdict: None,
            is_alone: false,
            report_at: Time::ZERO,
            watch: watch.clone(),
        };
        canary.publish(Micros::ZERO);
        (canary, watch)
    }

    fn member(&mut self, member: Member) -> &mut MemberPolicy {
        &mut self.members[member as usize]
    }

    /// The member whose state its successor gets.
    fn winner(&self) -> Member {
        match self.verdict.or(self.watch.verdict()) {
            Some(Verdict::Promote(_)) => Member::Candidate,
            Some(Verdict::RollBack(_)) | None => Member::Serving,
        }
    }

    /// Asks one member. A fault of the serving policy is one of the pool's policy; the windows that another
    /// one fails are the fallback's.
    fn ask(&mut self, member: Member, whole: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let Self {
            members,
            owners,
            ended,
            split,
            workers,
            catalog,
            ..
        } = self;
        let of_member = &mut members[member as usize];
        let wants = of_member.description().wants;
        split.show(whole, workers, wants, catalog, |id| {
            let owner = owners.get(&id).or_else(|| ended.get(&id));
            owner.copied().unwrap_or(Member::Serving) == member
        });
        let Some(because) = of_member.wants(whole, &split.part) else {
            return Ok(());
        };
        split.part.because = because;
        let asked = of_member.ask(split, catalog);
        if let Err(fault) = asked {
            if member == Member::Serving {
                return Err(fault);
            }
            // The other members place batches too.
            self.rescue.forget_batches();
            // Cannot fail, and its plan keeps the rules.
            let _ = self.rescue.schedule(&split.part, &mut of_member.plan);
        }
        self.routes.learn(member, &mut of_member.plan.routes);
        occupy(workers, whole.now, &of_member.plan, catalog);
        self.merge.add(&mut of_member.plan, plan);
        Ok(())
    }

    /// Closes rounds, and ends the comparison once the rule says so.
    fn judge(&mut self, now: Time) {
        let Some((began, slots)) = &mut self.slots else {
            return;
        };
        let ran_for = now.since(*began);
        if self.is_alone || self.watch.verdict().is_some() {
            return;
        }
        let patience = patience(&self.catalog);
        let end_of = |round| slots.end_of(round);
        self.tally.close(now, end_of, patience, &mut self.test);
        let faults = self.members[Member::Candidate as usize].faults;
        self.verdict = (self.verdict).or_else(|| self.rule.judge(&self.test, faults, ran_for));
        if let Some(verdict) = self.verdict {
            let winner = match verdict {
                Verdict::Promote(_) => Member::Candidate,
                Verdict::RollBack(_) => Member::Serving,
            };
            slots.end(now, winner);
        }
        if self.verdict.is_some() || now >= self.report_at {
            self.report_at = now + REPORT_EVERY;
            self.publish(ran_for);
        }
    }

    fn publish(&self, ran_for: Micros) {
        let report = CanaryReport {
            ran_for,
            members: Member::ALL.map(|member| self.report_of(member)),
            pairs: self.test.pairs(),
            difference: self.test.mean(),
            interval: self.test.interval(self.rule.error),
            evidence: self.test.evidence_against(0.0),
            verdict: self.verdict,
            dropped: false,
        };
        self.watch.update(|shared| {
            // An order may have come in between.
            let verdict = shared.verdict.or(report.verdict);
            *shared = CanaryReport { verdict, ..report };
        });
    }

    fn report_of(&self, member: Member) -> MemberReport {
        let sums = self.tally.total(member);
        let policy = &self.members[member as usize];
        let mean = |sum: f64, count: u64| (count > 0).then(|| sum / count as f64);
        MemberReport {
            policy: policy.label.to_string(),
            arrived: sums.arrived,
            ended: sums.ended,
            in_time: sums.in_time,
            quality: mean(sums.quality, sums.answered),
            utility: mean(sums.utility, sums.ended),
            faults: policy.faults,
            last_fault: policy.last_fault.clone(),
        }
    }

    /// The next time at which a member wants a window, the routes of another one come in force, or a
    /// round can be closed.
    fn next_time(&self, now: Time) -> Option<Time> {
        let (began, slots) = self.slots.as_ref()?;
        let close = self.tally.next_close(|round| slots.end_of(round));
        let close = close.map(|end| match end > now {
            true => end,
            // A request of the round has not ended.
            false => end + patience(&self.catalog),
        });
        let over = *began + self.rule.within;
        let judge = close.into_iter().chain([over]);
        let is_judged = self.is_alone || self.verdict.or(self.watch.verdict()).is_some();
        let judge = judge.filter(|_| !is_judged);
        let members = self.members.iter().filter_map(MemberPolicy::next_time);
        let change = slots.next_change(now).filter(|_| self.routes.any());
        members.chain(judge).chain(change).min()
    }
}

impl Policy for Canary {
    fn description(&self) -> &Description {
        &self.description
    }

    fn configure(&mut self, catalog: &Catalog) -> Result<(), PolicyFault> {
        self.catalog = Arc::new(catalog.clone());
        self.routes.forget();
        let _ = self.rescue.configure(catalog);
        self.member(Member::Serving).policy().configure(catalog)?;
        for member in [Member::Baseline, Member::Candidate] {
            if let Err(fault) = self.member(member).policy().configure(catalog) {
                self.member(member).charge(&fault);
                self.verdict.get_or_insert(Verdict::RollBack(Why::Faults));
            }
        }
        Ok(())
    }

    fn schedule(&mut self, window: &Window, plan: &mut Plan) -> Result<(), PolicyFault> {
        let now = window.now;
        if window.because.changed {
            self.routes.ended();
        }
        if self.slots.is_none() {
            let mut slots = Slots::new(self.seed, self.slot, self.share, now);
            if self.is_alone {
                slots.end(Time::ZERO, Member::Serving);
            }
            self.slots = Some((now, slots));
            self.members.iter_mut().for_each(|member| member.begin(now));
        }
        self.judge(now);
        self.workers.clone_from(&window.workers);
        // Baseline and candidate take turns in planning first.
        let order = match window.id % 2 {
            0 => [Member::Serving, Member::Baseline, Member::Candidate],
            _ => [Member::Serving, Member::Candidate, Member::Baseline],
        };
        let asked = (order.into_iter()).try_for_each(|member| self.ask(member, window, plan));
        self.merge.finish(plan);
        self.ended.clear();
        if let Some((_, slots)) = &mut self.slots {
            self.routes.put_in_force(slots.on_duty(now), plan);
        }
        plan.wake = self.next_time(now);
        asked
    }

    fn save(&mut self) -> Result<Vec<u8>, PolicyFault> {
        let winner = self.winner();
        self.member(winner).policy().save()
    }

    /// All begin with the same state.
    fn restore(&mut self, state: &[u8]) -> Result<(), PolicyFault> {
        for member in [Member::Baseline, Member::Candidate] {
            // One that cannot take it begins fresh, as it would after a swap.
            let _ = self.member(member).policy().restore(state);
        }
        self.member(Member::Serving).policy().restore(state)
    }

    fn arrived(&mut self, request: &Request) {
        let Some((_, slots)) = self.slots.as_mut().filter(|_| request.pinned.is_none()) else {
            return;
        };
        let member = self.routes.in_force();
        let member = member.unwrap_or_else(|| slots.on_duty(request.arrival));
        self.owners.insert(request.id, member);
        self.tally.arrived(member, slots.round_of(request.arrival));
    }

    fn ended(&mut self, now: Time, request: &Request, outcome: &Outcome) {
        let Some(member) = self.owners.remove(&request.id) else {
            return;
        };
        let Some((_, slots)) = &self.slots else {
            return;
        };
        if self.description.wants.completions {
            self.ended.insert(request.id, member);
        }
        let round = slots.round_of(request.arrival);
        let end = (request, outcome);
        self.tally.ended(now, member, round, end, &self.catalog);
    }

    /// The serving policy answers alone: baseline and candidate give their memory back.
    fn superseded(&mut self) {
        for member in [Member::Baseline, Member::Candidate] {
            self.member(member).let_go();
        }
        if let Some((_, slots)) = &mut self.slots {
            slots.end(Time::ZERO, Member::Serving);
        }
        self.is_alone = true;
        self.routes.keep_serving();
        self.owners.clear();
        self.watch.update(|report| report.dropped = true);
    }

    fn author(&self, request: RequestId) -> Option<&Arc<str>> {
        let owner = self.owners.get(&request).copied();
        let owner = owner.unwrap_or(Member::Serving);
        Some(&self.members[owner as usize].label)
    }

    /// Faults that concern a request of the candidate or the baseline are theirs.
    fn takes_blame(&mut self, request: RequestId, fault: &PolicyFault) -> bool {
        match self.owners.get(&request).copied() {
            None | Some(Member::Serving) => false,
            Some(member) => {
                self.member(member).charge(fault);
                true
            }
        }
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        self.watch.update(|report| report.dropped = true);
    }
}

/// The wishes of all members.
fn description(members: &[MemberPolicy; 3]) -> Description {
    let [serving, _, candidate] = members;
    let both = [serving.description(), candidate.description()];
    let any = |wish: fn(&Triggers) -> bool| both.iter().any(|of| wish(&of.on));
    Description {
        name: format!("{} or {}", serving.label, both[1].name),
        version: both[1].version.clone(),
        summary: format!("a canary of {} against {}", candidate.label, serving.label),
        // Wakes are lost with a window that fails: the shortest period goes on.
        every: both.iter().filter_map(|of| of.every).min(),
        when_empty: both.iter().any(|of| of.when_empty),
        on: Triggers {
            arrival: any(|on| on.arrival),
            worker_idle: any(|on| on.worker_idle),
            completion: any(|on| on.completion),
            evidence: any(|on| on.evidence),
        },
        wants: WindowFields::or(both[0].wants, both[1].wants),
        // Each member is sent its part by itself.
        changed_workers: false,
    }
}

/// How long the requests of a round that is over are waited for: twice the longest deadline of the apps.
fn patience(catalog: &Catalog) -> Micros {
    let slos = catalog.apps.iter().map(|app| app.slo.0.saturating_mul(2));
    Micros(slos.max().unwrap_or_default()).max(PATIENCE_MIN)
}
