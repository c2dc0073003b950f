//! The evaluation phase.

use proptest::prelude::*;

use crate::problem::{MappingProblem, TaskTimes};
use crate::score::{MappingScore, ScoreRule};
use crate::search::{self, Optimality};
use crate::settings::WaitRule;

/// Tasks of age 0, each with SLO and latencies.
fn problem(rule: ScoreRule, waits: &[f64], tasks: &[(f64, &[f64])]) -> MappingProblem {
    let task = |&(slo_us, _): &(f64, &[f64])| TaskTimes {
        age_us: 0.0,
        slo_us,
    };
    MappingProblem {
        rule,
        wait: WaitRule::Placed,
        tasks: tasks.iter().map(task).collect(),
        waits: waits.to_vec(),
        latencies: tasks
            .iter()
            .flat_map(|(_, latencies)| latencies.iter().copied())
            .collect(),
    }
}

fn exact(problem: &MappingProblem) -> (Vec<usize>, f64) {
    let (best, found) = search::best(problem, 64, usize::MAX);
    assert_eq!(found, Optimality::Exact);
    (best.to, best.score.value())
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

#[test]
fn mael_by_hand() {
    // Two processors, idle. Two tasks of 10 and 12, then 10 and 30:
    //   both on the first     1/10 + 1/20 = 0.15
    //   second, first         1/12 + 1/10 = 0.1833
    //   first, second         1/10 + 1/30 = 0.1333
    //   both on the second    1/12 + 1/42 = 0.1071
    // Alone, each task would go to the first processor.
    let two = problem(
        ScoreRule::Latency,
        &[0.0, 0.0],
        &[(100.0, &[10.0, 12.0]), (100.0, &[10.0, 30.0])],
    );
    let (to, value) = exact(&two);
    assert_eq!(to, [1, 0]);
    assert!(close(value, 1.0 / 12.0 + 1.0 / 10.0));
    assert_eq!(two.fastest(), [0, 0]);
    assert!(close(two.mapping(vec![0, 0]).score.value(), 0.15));
    // With 30 of work on the second processor: 1/42 + 1/10 = 0.1238 < 0.15.
    let busy = MappingProblem {
        waits: vec![0.0, 30.0],
        ..two
    };
    assert_eq!(exact(&busy).0, [0, 0]);
}

#[test]
fn pending_waits_ignore_the_mapping_itself() {
    // As above, but as Algorithm 1 prints line 9: the two tasks do not wait for each other.
    //   both on the first     1/10 + 1/10 = 0.2
    //   second, first         1/12 + 1/10 = 0.1833
    // With 5 of work on the first: 1/15 + 1/15 = 0.1333 < 1/12 + 1/15 = 0.15.
    let two = MappingProblem {
        wait: WaitRule::Pending,
        ..problem(
            ScoreRule::Latency,
            &[0.0, 0.0],
            &[(100.0, &[10.0, 12.0]), (100.0, &[10.0, 30.0])],
        )
    };
    let (to, value) = exact(&two);
    assert_eq!(to, [0, 0]);
    assert!(close(value, 0.2));
    let busy = MappingProblem {
        waits: vec![5.0, 0.0],
        ..two
    };
    assert_eq!(exact(&busy).0, [1, 0]);
}

#[test]
fn slo_mael_by_hand() {
    // A long task (50, SLO 500), then a short one (10, SLO 40); the second processor is three times
    // slower.
    //   (0, 0): the short one ends at 60 > 40: -60/40 = -1.5
    //   (0, 1): no violation: 1/50 + 1/30 = 0.0533
    //   (1, 0): no violation: 1/150 + 1/10 = 0.1067
    //   (1, 1): the short one ends at 180: -4.5
    let tasks: &[(f64, &[f64])] = &[(500.0, &[50.0, 150.0]), (40.0, &[10.0, 30.0])];
    let two = problem(ScoreRule::Slo, &[0.0, 0.0], tasks);
    let value = |to: [usize; 2]| two.mapping(to.to_vec()).score.value();
    assert!(close(value([0, 0]), -1.5) && close(value([1, 1]), -4.5));
    assert!(close(value([0, 1]), 1.0 / 50.0 + 1.0 / 30.0));
    assert_eq!(exact(&two).0, [1, 0]);
    // If every mapping has violations, the least degree decides: with waits of 400 and 20 the short
    // task is late everywhere, by 50/40 at best, alone on the second processor.
    let late = problem(ScoreRule::Slo, &[400.0, 20.0], tasks);
    let (to, value) = exact(&late);
    assert_eq!(to, [0, 1]);
    assert!(close(value, -1.25));
}

#[test]
fn a_mapping_without_violations_is_above_all_with_some() {
    let none = MappingScore {
        slo: 0.0,
        ael: 1e-9,
    };
    let one = MappingScore {
        slo: -1.01,
        ael: 1e9,
    };
    assert!(none.is_above(one) && !one.is_above(none));
    let better = MappingScore {
        slo: -1.01,
        ael: 2e9,
    };
    assert!(
        better.is_above(one),
        "score_ael decides between equal violations"
    );
}

#[test]
fn the_exact_search_tries_every_one_of_65_processors() {
    // Task A ends at 1.0 on processor 64, at 1.1 on 0; task B at 2 on 64, at 100 on 0.
    //   A and B on 64         1/1 + 1/3 = 1.3333
    //   A on 0, B on 64       1/1.1 + 1/2 = 1.4091
    let mut latencies = [[1_000.0; 65]; 2];
    (latencies[0][64], latencies[0][0]) = (1.0, 1.1);
    (latencies[1][64], latencies[1][0]) = (2.0, 100.0);
    let tasks = latencies.each_ref().map(|row| (1e6, &row[..]));
    let (to, value) = exact(&problem(ScoreRule::Latency, &[0.0; 65], &tasks));
    assert_eq!(to, [0, 64]);
    assert!(close(value, 1.0 / 1.1 + 1.0 / 2.0));
}

/// Random problems; some processors cannot run some tasks.
fn problems(tasks_max: usize) -> impl Strategy<Value = MappingProblem> {
    let sizes = (1..=tasks_max, 1..=3_usize, any::<bool>());
    sizes.prop_flat_map(|(tasks, processors, with_slos)| {
        let latency = prop_oneof![8 => (1..60_u32).prop_map(f64::from), 1 => Just(f64::INFINITY)];
        let row = proptest::collection::vec(latency, processors);
        let row = row.prop_map(|mut row| {
            if row.iter().all(|latency| latency.is_infinite()) {
                row[0] = 7.0;
            }
            row
        });
        let task = ((0..20_u32), (5..200_u32), row);
        let waits = proptest::collection::vec((0..80_u32).prop_map(f64::from), processors);
        (proptest::collection::vec(task, tasks), waits).prop_map(move |(tasks, waits)| {
            MappingProblem {
                rule: if with_slos {
                    ScoreRule::Slo
                } else {
                    ScoreRule::Latency
                },
                wait: WaitRule::Placed,
                waits,
                latencies: tasks.iter().flat_map(|(_, _, row)| row.clone()).collect(),
                tasks: tasks
                    .iter()
                    .map(|&(age, slo, _)| TaskTimes {
                        age_us: f64::from(age),
                        slo_us: f64::from(slo),
                    })
                    .collect(),
            }
        })
    })
}

/// The highest score of all mappings.
fn brute_force(problem: &MappingProblem) -> f64 {
    let (tasks, processors) = (problem.tasks.len(), problem.processors());
    let mappings = 0..processors.pow(tasks as u32);
    let all = mappings.map(|code| {
        let to = (0..tasks).map(|task| code / processors.pow(task as u32) % processors);
        to.collect::<Vec<_>>()
    });
    let runs = |to: &Vec<usize>| {
        let mut latencies = to.iter().enumerate().map(|(t, &p)| problem.latency(t, p));
        latencies.all(f64::is_finite)
    };
    let values = all.filter(runs).map(|to| problem.mapping(to).score.value());
    values.fold(f64::NEG_INFINITY, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_exact_search_equals_brute_force(problem in problems(6)) {
        let (to, value) = exact(&problem);
        prop_assert!(close(problem.mapping(to).score.value(), value));
        prop_assert!(close(value, brute_force(&problem)), "{value} {}", brute_force(&problem));
    }

    #[test]
    fn the_score_is_never_below_aff(
        problem in problems(40),
        exact_max in 0..12_usize,
        nodes_max in 0..200_usize,
    ) {
        let (best, _) = search::best(&problem, exact_max, nodes_max);
        let aff = problem.mapping(problem.fastest());
        prop_assert!(!aff.score.is_above(best.score), "{:?} {:?}", aff.score, best.score);
        prop_assert_eq!(problem.score(&best.to, &mut Vec::new()), best.score);
    }
}
