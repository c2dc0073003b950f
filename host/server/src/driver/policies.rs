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
                is_active,
            }) => {
                let (kind, reason) = (fault.kind.label(), &fault.reason);
                tracing::warn!(pool, %policy, kind, reason, taken_off, "policy fault");
                if taken_off {
                    let by = self.scheduler.policy_label();
                    tracing::error!(pool, %policy, %by, "policy taken off: another one serves");
                }
                // The active policy stays when its last good version is taken off.
                if taken_off && is_active {
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::Duration;

    use crossbeam_channel::bounded;
    use switchyard_core::SchedulerConfig;
    use switchyard_core::catalog::Catalog;
    use switchyard_core::ids::VariantId;
    use switchyard_core::plan::Plan;
    use switchyard_core::policy::{Description, FaultKind, Policy, PolicyFault};
    use switchyard_core::profile::Profile;
    use switchyard_executor::{Device, LoadError, LoadedModel, ModelSource, Weights};
    use tokio::sync::oneshot;

    use super::*;
    use crate::clock::Clock;
    use crate::driver::{Message, Pool, PoolParts, PoolStatus, PoolWeights, VariantCounters};
    use crate::telemetry::Registry;

    struct NoModels;

    impl ModelSource for NoModels {
        fn name(&self, variant: VariantId) -> String {
            format!("variant {}", variant.0)
        }

        fn memory_bytes(&self, _: VariantId) -> Result<u64, LoadError> {
            Ok(1)
        }

        fn load(&self, variant: VariantId, _: &Device) -> Result<LoadedModel, LoadError> {
            Err(LoadError::new(self.name(variant), "there is none"))
        }
    }

    /// Has a window each millisecond, and faults once when it is told to.
    struct Told {
        description: Description,
        faults: Arc<AtomicBool>,
    }

    impl Policy for Told {
        fn description(&self) -> &Description {
            &self.description
        }

        fn configure(&mut self, _: &Catalog) -> Result<(), PolicyFault> {
            Ok(())
        }

        fn schedule(&mut self, _: &Window, _: &mut Plan) -> Result<(), PolicyFault> {
            match self.faults.swap(false, Ordering::SeqCst) {
                true => Err(PolicyFault::new(FaultKind::Failed, "as told")),
                false => Ok(()),
            }
        }
    }

    fn told(name: &str, faults: &Arc<AtomicBool>) -> Box<dyn Policy> {
        let description = Description {
            name: name.to_owned(),
            version: "1".to_owned(),
            every: Some(Micros(1_000)),
            when_empty: true,
            ..Description::default()
        };
        let faults = Arc::clone(faults);
        Box::new(Told {
            description,
            faults,
        })
    }

    /// A pool without workers.
    fn pool() -> Pool {
        let parts = PoolParts {
            name: "main".to_owned(),
            catalog: Arc::default(),
            scheduler: SchedulerConfig::default(),
            executors: Vec::new(),
            pinned: Vec::new(),
            weights: PoolWeights::new(Weights::new(Arc::new(NoModels)), Vec::new()),
            medians: Profile::default(),
            drift_ratio: 1e9,
            evidence: Vec::new(),
            inbox_max: 16,
            counters: Arc::new(VariantCounters::new(0)),
            traces: None,
        };
        Pool::start(parts, Clock::start(), &Registry::new()).unwrap()
    }

    fn status(pool: &Pool) -> PoolStatus {
        let (reply, status) = oneshot::channel();
        pool.handle().send(Message::Status(reply));
        status.blocking_recv().unwrap()
    }

    #[test]
    fn the_loss_of_the_last_good_version_is_not_that_of_the_active_policy() {
        let pool = pool();
        let [good, new] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        for (name, faults) in [("good", &good), ("new", &new)] {
            let (done, took) = bounded(1);
            let policy = told(name, faults);
            let message = Message::Install(policy, PolicyRecord::default(), done);
            pool.handle().send(message);
            took.recv().unwrap();
        }
        // Asked in the window that the active policy fails.
        good.store(true, Ordering::SeqCst);
        new.store(true, Ordering::SeqCst);
        let give_up = Instant::now() + Duration::from_secs(60);
        while status(&pool).faults.values().sum::<u64>() < 2 {
            assert!(Instant::now() < give_up, "a policy was not asked");
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(status(&pool).policy, "new@1");
        let (done, took) = bounded(1);
        let message = Message::Recompiled(told("new", &new), PolicyRecord::default(), done);
        pool.handle().send(message);
        assert!(took.recv().is_ok(), "the code of the active policy changes");
    }
}
