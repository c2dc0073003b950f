//! A simulated run that a policy has to get through: the host's scheduler, workers that take as
//! long as the profile says, requests, evidence, and a worker that is away for a while.

use std::sync::{Arc, Mutex, PoisonError};

use switchyard_core::catalog::Catalog;
use switchyard_core::event::Notice;
use switchyard_core::ids::WorkerId;
use switchyard_core::policy::{FaultKind, Policy, PolicyFault};
use switchyard_core::time::{Micros, Time};
use switchyard_sim::{
    Contender, EvidenceTimes, Observer, Outage, Scenario, SimError, Workload, run_observed,
};

/// Requests of the run, over all apps.
const REQUESTS: u64 = 300;

/// Arrivals at equal gaps, 140 per second.
const ARRIVALS: &str = "periodic:140";

/// Time from an arrival to its neighbour counts.
const EVIDENCE_AFTER: Micros = Micros(400);

/// Absence of the first worker; the last request arrives after 2.1 s.
const AWAY: (Time, Time) = (Time(700_000), Time(1_400_000));

/// Time after the last arrival in which every request must end.
const DRAIN_MAX: Micros = Micros::from_millis(28_000);

/// Seed of the run: which app a request is for, its class, its neighbours.
const SEED: u64 = 1;

/// The first fault of the run.
#[derive(Default)]
struct FirstFault(Option<PolicyFault>);

/// Lets a policy serve the run.
///
/// # Errors
/// Its first fault, or how many requests it left without an end.
pub(crate) fn run(policy: Box<dyn Policy>, catalog: &Arc<Catalog>) -> Result<(), String> {
    let mut first_fault = FirstFault::default();
    let left = requests_left(policy, catalog, &mut first_fault);
    if let Some(fault) = first_fault.0 {
        return Err(fault.to_string());
    }
    match left.map_err(|error| error.to_string())? {
        0 => Ok(()),
        left => Err(format!(
            "{left} of {REQUESTS} requests were left without an end"
        )),
    }
}

/// Requests that had not ended [`DRAIN_MAX`] after the last arrival.
fn requests_left(
    policy: Box<dyn Policy>,
    catalog: &Arc<Catalog>,
    first_fault: &mut FirstFault,
) -> Result<u64, SimError> {
    let workload: Workload = ARRIVALS.parse()?;
    let scenario = Scenario {
        requests_max: REQUESTS,
        evidence: EvidenceTimes {
            delay_us: EVIDENCE_AFTER,
            ..EvidenceTimes::default()
        },
        // Every variant pays for its load once.
        preload: false,
        outages: vec![Outage {
            worker: WorkerId(0),
            from: AWAY.0,
            to: AWAY.1,
        }],
        drain_max: DRAIN_MAX,
        ..Scenario::new(Arc::clone(catalog), workload)
    };
    let report = run_observed(&scenario, &only(policy), SEED, first_fault)?;
    Ok(report.abandoned)
}

/// A contender for one run: the simulator takes the policy when it makes it.
fn only(policy: Box<dyn Policy>) -> Contender {
    let policy = Mutex::new(Some(policy));
    Contender {
        name: "examined".to_owned(),
        make: Arc::new(move |_| {
            let mut policy = policy.lock().unwrap_or_else(PoisonError::into_inner);
            let gone = || PolicyFault::new(FaultKind::Failed, "one run has taken the policy");
            policy.take().ok_or_else(gone)
        }),
        foresight: None,
    }
}

// === impl FirstFault ===

impl Observer for FirstFault {
    fn noticed(&mut self, notice: &Notice) {
        if let Notice::PolicyFaulted(faulted) = notice {
            self.0.get_or_insert_with(|| faulted.fault.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use switchyard_core::plan::Plan;
    use switchyard_core::policy::{Description, EarliestDeadlineFirst};
    use switchyard_core::window::Window;
    use switchyard_policy::trial::catalog;

    use super::*;

    /// Never decides.
    struct Idler(Description);

    impl Policy for Idler {
        fn description(&self) -> &Description {
            &self.0
        }

        fn configure(&mut self, _catalog: &Catalog) -> Result<(), PolicyFault> {
            Ok(())
        }

        fn schedule(&mut self, _window: &Window, _plan: &mut Plan) -> Result<(), PolicyFault> {
            Ok(())
        }
    }

    #[test]
    fn the_native_fallback_gets_through() {
        let policy = Box::<EarliestDeadlineFirst>::default();
        assert_eq!(run(policy, &Arc::new(catalog())), Ok(()));
    }

    #[test]
    fn a_policy_that_never_decides_fails() {
        let idler = Box::new(Idler(Description::default()));
        let error = run(idler, &Arc::new(catalog())).unwrap_err();
        assert!(error.starts_with("starved: "), "{error}");
    }
}
