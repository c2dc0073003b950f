//! Schedules by an oracle, and the lower bound of any schedule.

use switchyard_core::ids::KindId;
use switchyard_core::policy::EarliestDeadlineFirst;
use switchyard_core::profile::Profile;
use switchyard_core::time::Micros;
use switchyard_sim::metrics::Summary;
use switchyard_sim::oracle::Goal;
use switchyard_sim::{Contender, Scenario, run};

use crate::test_bed::{catalog, scenario};

/// Two workers of different kinds under a load that makes queues: the second takes a third longer for
/// one app and less than half as long for the other.
fn two_kinds() -> Scenario {
    let mut bed = catalog(2);
    bed.kinds.push("gpu".to_owned());
    bed.workers[1].kind = KindId(1);
    bed.workers
        .iter_mut()
        .for_each(|worker| worker.queue_max = 1_000);
    let fast = |us: u64, v: u32| if v == 2 { us * 2 / 5 } else { us * 4 / 3 };
    let rows = bed.profile.rows().flat_map(|row| {
        let other = switchyard_core::profile::ProfileRow {
            kind: KindId(1),
            latency: Micros(fast(row.latency.0, row.variant.0)),
            ..row
        };
        [row, other]
    });
    bed.profile = Profile::new(0.95, rows.collect::<Vec<_>>(), bed.profile.loads());
    let mut scenario = scenario(bed, "heart=poisson:700; fall=poisson:350");
    scenario.duration = Micros::from_millis(300);
    scenario
}

fn total(scenario: &Scenario, contender: &Contender, seed: u64) -> Summary {
    let report = run(scenario, contender, seed).unwrap();
    assert_eq!(report.faults.len(), 0, "{:?}", report.faults);
    report.total
}

#[test]
fn the_schedule_lies_between_the_bound_and_the_fallback() {
    let scenario = two_kinds();
    let [antt, slo] = Goal::ALL.map(|goal| Contender::clairvoyant(goal.name(), goal));
    let edf = Contender::new("edf", EarliestDeadlineFirst::default);
    for seed in 1..=4 {
        let (antt, slo) = (total(&scenario, &antt, seed), total(&scenario, &slo, seed));
        let edf = total(&scenario, &edf, seed);
        let least = antt.antt_least.unwrap();
        assert_eq!(
            slo.antt_least,
            Some(least),
            "the bound is of the run, not of the schedule"
        );
        assert_eq!(edf.antt_least, None);
        assert_eq!(
            (antt.arrivals, antt.answered()),
            (edf.arrivals, edf.arrivals)
        );
        assert!(least > 1.0, "queues are unavoidable");
        assert!(least <= antt.antt.unwrap(), "{least} {:?}", antt.antt);
        assert!(antt.antt.unwrap() <= slo.antt.unwrap() * 1.02);
        assert!(antt.antt.unwrap() < edf.antt.unwrap());
        assert!(slo.violation_ratio <= antt.violation_ratio);
        assert!(slo.violation_ratio <= edf.violation_ratio);
    }
}

#[test]
fn requests_without_queues_have_an_antt_of_1() {
    let mut scenario = scenario(catalog(1), "heart=periodic:10");
    scenario.duration = Micros::from_millis(1_000);
    let oracle = Contender::clairvoyant("oracle", Goal::Turnaround);
    let total = total(&scenario, &oracle, 1);
    assert_eq!((total.antt, total.antt_least), (Some(1.0), Some(1.0)));
    assert_eq!(total.violation_ratio, 0.0);
}
