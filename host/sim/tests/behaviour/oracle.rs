//! A schedule that knows every arrival, and the bound below it.

use switchyard_core::ids::KindId;
use switchyard_core::policy::EarliestDeadlineFirst;
use switchyard_core::profile::Profile;
use switchyard_core::time::Micros;
use switchyard_sim::metrics::Summary;
use switchyard_sim::oracle::Goal;
use switchyard_sim::{Contender, Scenario, run};

use crate::yard::{catalog, scenario};

/// Two workers of unlike kinds under a load that makes queues: the second takes a third longer for
/// one app and less than half for the other.
fn unlike() -> Scenario {
    let mut yard = catalog(2);
    yard.kinds.push("gpu".to_owned());
    yard.workers[1].kind = KindId(1);
    yard.workers
        .iter_mut()
        .for_each(|worker| worker.queue_max = 1_000);
    let fast = |us: u64, v: u32| if v == 2 { us * 2 / 5 } else { us * 4 / 3 };
    let rows = yard.profile.rows().flat_map(|row| {
        let other = switchyard_core::profile::ProfileRow {
            kind: KindId(1),
            latency: Micros(fast(row.latency.0, row.variant.0)),
            ..row
        };
        [row, other]
    });
    yard.profile = Profile::new(0.95, rows.collect::<Vec<_>>(), yard.profile.loads());
    let mut scenario = scenario(yard, "heart=poisson:700; fall=poisson:350");
    scenario.duration = Micros::from_millis(300);
    scenario
}

fn total(scenario: &Scenario, contender: &Contender, seed: u64) -> Summary {
    let report = run(scenario, contender, seed).unwrap();
    assert_eq!(report.faults.len(), 0, "{:?}", report.faults);
    report.total
}

#[test]
fn what_is_found_lies_between_the_bound_and_the_fallback() {
    let scenario = unlike();
    let [antt, slo] = Goal::ALL.map(|goal| Contender::clairvoyant(goal.name(), goal));
    let edf = Contender::new("edf", EarliestDeadlineFirst::default);
    for seed in 1..=4 {
        let (antt, slo) = (total(&scenario, &antt, seed), total(&scenario, &slo, seed));
        let edf = total(&scenario, &edf, seed);
        let least = antt.antt_least.unwrap();
        assert_eq!(
            slo.antt_least,
            Some(least),
            "of the run, not of the schedule"
        );
        assert_eq!(edf.antt_least, None);
        assert_eq!(
            (antt.arrivals, antt.answered()),
            (edf.arrivals, edf.arrivals)
        );
        assert!(least > 1.0, "queues cannot be avoided");
        assert!(least <= antt.antt.unwrap(), "{least} {:?}", antt.antt);
        assert!(antt.antt.unwrap() <= slo.antt.unwrap() * 1.02);
        assert!(antt.antt.unwrap() < edf.antt.unwrap());
        assert!(slo.violation_ratio <= antt.violation_ratio);
        assert!(slo.violation_ratio <= edf.violation_ratio);
    }
}

#[test]
fn alone_nothing_can_be_better_and_nothing_is_worse() {
    let mut scenario = scenario(catalog(1), "heart=periodic:10");
    scenario.duration = Micros::from_millis(1_000);
    let oracle = Contender::clairvoyant("oracle", Goal::Turnaround);
    let total = total(&scenario, &oracle, 1);
    assert_eq!((total.antt, total.antt_least), (Some(1.0), Some(1.0)));
    assert_eq!(total.violation_ratio, 0.0);
}
