//! The policy of a pool: its installation, its watch, its faults.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crossbeam_channel::Sender;
use switchyard_core::Event;
use switchyard_core::decision::Decision;
use switchyard_core::event::Notice;
use switchyard_core::guard::Faulted;
use switchyard_core::ids::WorkerId;
use switchyard_core::time::{Micros, Time};
use switchyard_core::window::{Changes, Window};
use switchyard_policy::recording::PolicyRecord;

use super::message::Watch;
use super::turn::Driver;
use crate::recorder::Recorder;

impl Driver {
    pub(super) fn install(
        &mut self,
        now: Time,
        change: Event,
        record: PolicyRecord,
        done: &Sender<Micros>,
    ) {
        let began = Instant::now();
        self.scheduler.handle(now, change);
        let took = Micros::from(began.elapsed());
        self.look_for_evidence();
        self.record_policy(Some(record));
        let _ = done.send(took);
    }

    pub(super) fn remove_policy(&mut self, now: Time) {
        self.scheduler.handle(now, Event::PolicyRemoved);
        self.look_for_evidence();
        self.record_policy(None);
    }

    /// Sends decisions to this watch from now on, or to none.
    pub(super) fn watch(&mut self, now: Time, watch: Option<Watch>) {
        let shows = watch.as_ref().map(|watch| watch.shows);
        self.scheduler.handle(now, Event::Watched(shows));
        self.watch = watch;
        self.look_for_evidence();
    }

    pub(super) fn decided(&mut self, decision: Arc<Decision>) {
        // A watch that lags must not delay the next window: it misses the decision.
        if let Some(watch) = &self.watch
            && watch.decisions.try_send(Arc::clone(&decision)).is_err()
        {
            watch.dropped.increment(1);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.decided(decision);
        }
    }

    pub(super) fn notice(&mut self, notice: Notice) {
        let pool = &self.name;
        match notice {
            Notice::PolicyFaulted(Faulted {
                policy,
                fault,
                taken_off,
            }) => {
                let (kind, reason) = (fault.kind.label(), &fault.reason);
                tracing::warn!(pool, %policy, kind, reason, taken_off, "policy fault");
                if taken_off {
                    let by = self.scheduler.policy_label();
                    tracing::error!(pool, %policy, %by, "policy taken off: another one serves");
                }
                if taken_off {
                    self.record_policy(None);
                }
                self.meters.faulted(&policy, fault.kind);
                *self.faults.entry(fault.kind).or_default() += 1;
                self.last_fault = Some(format!("{policy}: {fault}"));
                self.pacer.faulted();
            }
            Notice::PolicySwitched {
                from,
                to,
                state_lost,
            } => {
                tracing::debug!(pool, %from, %to, "policy switched");
                self.meters.policy(&to);
                self.meters.hold_policies(self.scheduler.policy_labels());
                if let Some(fault) = state_lost {
                    tracing::warn!(pool, %to, %fault, "the policy's state was not handed over");
                }
            }
            Notice::WorkerOverdue {
                worker,
                batch,
                expected,
                ran_for,
            } => {
                let (worker, batch) = (worker.0, batch.0);
                tracing::error!(pool, worker, batch, %expected, %ran_for, "batch overdue");
                self.worker_lost(WorkerId(worker), "its batch does not end");
            }
            Notice::WorkerRecovered {
                worker,
                batch,
                ran_for,
            } => {
                let (worker, batch) = (worker.0, batch.0);
                tracing::warn!(pool, worker, batch, %ran_for, "overdue batch ended");
                self.worker_recovered(WorkerId(worker));
            }
            Notice::PolicyRemoved { from } => {
                let by = self.scheduler.policy_label();
                tracing::error!(pool, %from, %by, "policy removed: the fallback serves");
                self.meters.hold_policies(self.scheduler.policy_labels());
            }
        }
    }

    pub(super) fn windows(&self, most: usize) -> Vec<Window> {
        let kept = self.scheduler.decisions(most);
        let windows = kept.iter().map(|kept| Window {
            // A new policy holds no earlier window.
            changes: Changes::default(),
            ..kept.window.clone()
        });
        windows.collect()
    }

    /// Evidence is counted only while the policy or the watch sees it.
    fn look_for_evidence(&self) {
        let shown = self.scheduler.shown().evidence;
        self.wants_evidence.store(shown, Ordering::Relaxed);
    }

    /// Records windows and plans from now on.
    pub(super) fn record(&mut self, mut recorder: Recorder) {
        recorder.policy(self.policy.clone());
        self.recorder = Some(recorder);
    }

    fn record_policy(&mut self, policy: Option<PolicyRecord>) {
        self.policy.clone_from(&policy);
        if let Some(recorder) = &mut self.recorder {
            recorder.policy(policy);
        }
    }
}
