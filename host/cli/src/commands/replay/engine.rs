//! Runs the policy on every recorded window, in order.

use std::collections::BTreeSet;
use std::sync::Arc;

use switchyard_core::catalog::Catalog;
use switchyard_core::decision::Decision;
use switchyard_core::plan::Plan;
use switchyard_core::policy::WindowFields;
use switchyard_policy::recording::{CutOff, Frame, Header, PolicyRecord};
use switchyard_server::judge::{self, Difference};

use super::case::Case;
use super::challenger::{Challenger, Ready};
use super::requests::RequestTally;
use crate::commands::failure::Failure;

/// The result of a replay.
pub(super) struct Outcome {
    /// Label of the replayed policy.
    pub(super) policy: String,
    /// Labels of the recorded policies.
    pub(super) recorded: BTreeSet<String>,
    pub(super) pools: BTreeSet<String>,
    /// The policy and its settings were the recorded ones in every run.
    pub(super) is_recorded: bool,
    /// Window fields that the policy asks for and the recording lacks.
    pub(super) unseen: BTreeSet<&'static str>,
    pub(super) tally: ReplayTally,
    pub(super) requests: RequestTally,
    /// The first differences other than the time of the next window, each with its run in the
    /// recording, from 1.
    pub(super) differences: Vec<(u64, Difference)>,
    /// The last catalog, for names: lists only grow.
    pub(super) catalog: Arc<Catalog>,
    pub(super) cut_off: Option<CutOff>,
    /// The window of `--window`.
    pub(super) kept: Option<Case>,
}

/// Windows, counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplayTally {
    pub(super) runs: u64,
    /// Windows that the policy decided.
    pub(super) asked: judge::Tally,
    /// Different windows that were recorded without an active policy, or after its failure.
    pub(super) by_others: u64,
    /// Windows of the fallback alone.
    pub(super) not_asked: u64,
    /// Windows that were not recorded for lack of time.
    pub(super) missing: u64,
}

/// Replays frame by frame.
pub(super) struct Engine {
    challenger: Challenger,
    limit: usize,
    run: Option<Run>,
    outcome: Outcome,
    plan: Plan,
    /// Run and window of `--window`.
    wanted: Option<(u64, u64)>,
}

/// The current run of the recording.
struct Run {
    header: Header,
    catalog: Arc<Catalog>,
    ready: Ready,
    /// The recorded policy, if one was active.
    active: Option<PolicyRecord>,
    /// Fields of the recorded windows.
    shown: WindowFields,
}

// === impl Engine ===

impl Engine {
    pub(super) fn new(challenger: Challenger, limit: usize) -> Self {
        Self {
            challenger,
            limit,
            run: None,
            outcome: Outcome {
                policy: String::new(),
                recorded: BTreeSet::new(),
                pools: BTreeSet::new(),
                is_recorded: true,
                unseen: BTreeSet::new(),
                tally: ReplayTally::default(),
                requests: RequestTally::default(),
                differences: Vec::new(),
                catalog: Arc::default(),
                cut_off: None,
                kept: None,
            },
            plan: Plan::default(),
            wanted: None,
        }
    }

    /// Keeps a window, for a test.
    pub(super) fn keep(&mut self, run: u64, window: u64) {
        self.wanted = Some((run, window));
    }

    pub(super) fn take(&mut self, frame: Frame) -> Result<(), Failure> {
        match frame {
            Frame::Start(header) => self.start(*header)?,
            Frame::Policy(policy) => self.switch(policy)?,
            Frame::Catalog(catalog) => {
                if let Some(run) = &mut self.run {
                    run.catalog = Arc::new(*catalog);
                    let configured = run.ready.policy.configure(&run.catalog);
                    configured.map_err(Failure::input)?;
                }
            }
            Frame::Gap(windows) => self.outcome.tally.missing += windows,
            Frame::Decision(decision) if decision.rescue => self.outcome.tally.not_asked += 1,
            Frame::Decision(decision) => self.window(&decision),
        }
        Ok(())
    }

    pub(super) fn conclude(mut self, cut_off: Option<CutOff>) -> Result<Outcome, Failure> {
        let Some(run) = self.run else {
            return Err(Failure::input("the recording is empty"));
        };
        self.outcome.catalog = run.catalog;
        self.outcome.cut_off = cut_off;
        Ok(self.outcome)
    }

    fn start(&mut self, header: Header) -> Result<(), Failure> {
        let catalog = Arc::new(header.catalog.clone());
        let active = header.policy.clone();
        let ready = self.challenger.fresh(&header, active.as_ref(), &catalog)?;
        self.outcome.tally.runs += 1;
        self.outcome.requests.begin_run();
        self.outcome.pools.insert(header.pool.clone());
        self.outcome.policy.clone_from(&ready.record.label);
        self.run = Some(Run {
            header,
            catalog,
            ready,
            shown: WindowFields::default(),
            active,
        });
        self.met();
        Ok(())
    }

    /// Repeats a recorded swap: a new instance, which gets the state of the one before if a policy
    /// was active.
    fn switch(&mut self, policy: Option<PolicyRecord>) -> Result<(), Failure> {
        let Some(run) = &mut self.run else {
            return Ok(());
        };
        if policy.is_some() {
            let fresh = self
                .challenger
                .fresh(&run.header, policy.as_ref(), &run.catalog)?;
            let mut left = std::mem::replace(&mut run.ready, fresh);
            // An error here also happened in the recorded swap, if the policy is the same.
            if run.active.is_some()
                && let Ok(state) = left.policy.save()
                && !state.is_empty()
            {
                let _ = run.ready.policy.restore(&state);
            }
        }
        run.active = policy;
        self.met();
        Ok(())
    }

    /// Notes the policy of the following windows.
    fn met(&mut self) {
        let Some(run) = &mut self.run else { return };
        let wants = run.ready.policy.description().wants;
        let Some(active) = &run.active else {
            run.shown = WindowFields::default();
            return;
        };
        run.shown = active.wants;
        let outcome = &mut self.outcome;
        outcome.recorded.insert(active.label.clone());
        outcome.is_recorded &=
            active.hash == run.ready.record.hash && active.label == run.ready.record.label;
        let fields = [
            ("evidence", wants.evidence && !run.shown.evidence),
            ("completions", wants.completions && !run.shown.completions),
            ("placed requests", wants.placed && !run.shown.placed),
            ("resident models", wants.residents && !run.shown.residents),
        ];
        let unseen = fields.into_iter().filter(|(_, unseen)| *unseen);
        outcome.unseen.extend(unseen.map(|(field, _)| field));
    }

    fn window(&mut self, decision: &Decision) {
        let Some(run) = &mut self.run else { return };
        let tally = &mut self.outcome.tally;
        let policy = run.ready.policy.as_mut();
        let residents = run.shown.residents;
        let asked = &mut tally.asked;
        let found = asked.ask(policy, &run.catalog, decision, residents, &mut self.plan);
        if self.wanted == Some((tally.runs, decision.window.id)) {
            self.outcome.kept = Some(Case {
                run: tally.runs,
                policy: run.ready.record.clone(),
                catalog: Arc::clone(&run.catalog),
                window: decision.window.clone(),
                decided: match found.as_ref().and_then(|found| found.failure.clone()) {
                    Some(failure) => Err(failure),
                    None => Ok(self.plan.members.clone()),
                },
            });
        }
        self.outcome.requests.add(&decision.window, found.as_ref());
        let Some(found) = found else { return };
        let active = run.active.as_ref().map(|active| active.label.as_str());
        tally.by_others += u64::from(active != Some(&*decision.by));
        if !found.is_wake_only() && self.outcome.differences.len() < self.limit {
            self.outcome.differences.push((tally.runs, found));
        }
    }
}
