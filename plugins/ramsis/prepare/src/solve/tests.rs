#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use ramsis_tables::{Batching, Objective};

use super::*;
use crate::law::Poisson;
use crate::model::Model;
use crate::problem::{Offer, ProcessInputs};
use crate::robin::RoundRobin;
use crate::space::StateSpace;

fn models() -> Vec<Model> {
    [
        ("small", 0.6, [22, 39, 57]),
        ("middle", 0.77, [54, 81, 141]),
        ("large", 0.84, [98, 190, 269]),
    ]
    .map(|(name, accuracy, latency_us)| Model {
        name: name.to_owned(),
        accuracy,
        latency_us: latency_us.to_vec(),
    })
    .to_vec()
}

fn problem(
    space: &StateSpace,
    rate_per_us: f64,
    objective: Objective,
    batching: Batching,
) -> DecisionProcess {
    let models = models();
    let parts = ProcessInputs {
        space,
        models: &models,
        objective,
        offer: Offer::Feasible(batching),
    };
    let robin = RoundRobin::new(Poisson { rate_per_us }, 4, space);
    parts.build(&robin, CancelFlag::default()).unwrap()
}

fn space(queue_max: usize, steps: u64) -> StateSpace {
    StateSpace {
        slo_us: 150,
        slack_us: (0..=steps).map(|step| 150 * step / steps).collect(),
        queue_max,
    }
}

/// All policies.
fn policies(problem: &DecisionProcess) -> Vec<Vec<usize>> {
    (0..problem.space.len()).fold(vec![Vec::new()], |policies, state| {
        let with = |policy: &Vec<usize>| {
            let policy = policy.clone();
            problem.choices(state).map(move |choice| {
                let mut policy = policy.clone();
                policy.push(choice);
                policy
            })
        };
        policies.iter().flat_map(with).collect()
    })
}

#[test]
fn no_policy_is_better() {
    for objective in [Objective::Decision, Objective::Query] {
        for rate_per_us in [0.005, 0.05, 0.11, 0.4] {
            let problem = problem(&space(2, 3), rate_per_us, objective, Batching::Maximal);
            let mut solver = Solver::new(&problem, CancelFlag::default());
            let found = solver.solve(1.0).unwrap();
            let policies = policies(&problem);
            assert!(policies.len() > 10);
            let best = policies
                .into_iter()
                .map(|policy| solver.evaluate(policy, 1.0).unwrap().gain)
                .fold(0.0, f64::max);
            assert!((found.gain - best).abs() < 1e-9, "{} < {best}", found.gain);
        }
    }
}

#[test]
fn a_set_flag_cancels() {
    let problem = problem(&space(2, 3), 0.1, Objective::Query, Batching::Maximal);
    let flag = std::sync::atomic::AtomicBool::new(true);
    let solved = Solver::new(&problem, CancelFlag(Some(&flag))).solve(1.0);
    assert!(matches!(solved, Err(PrepareError::Cancelled)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_distribution_is_stationary_and_rows_sum_to_1(
        rate_per_us in 1e-4..0.6f64,
        queue_max in 1..4usize,
        steps in 1..12u64,
        query in any::<bool>(),
        variable in any::<bool>(),
    ) {
        let objective = if query { Objective::Query } else { Objective::Decision };
        let batching = if variable { Batching::Variable } else { Batching::Maximal };
        let space = space(queue_max, steps);
        let problem = problem(&space, rate_per_us, objective, batching);
        for kernel in &problem.kernels {
            for phase in 0..kernel.phases() {
                let sum: f64 = kernel.row(phase).flat_map(|(_, chances)| chances).sum();
                prop_assert!((sum - 1.0).abs() < 1e-12);
            }
        }
        let mut solver = Solver::new(&problem, CancelFlag::default());
        let solution = solver.solve(1.0).unwrap();
        let total: f64 = solution.stationary.iter().sum();
        prop_assert!((total - 1.0).abs() < 1e-12);
        let used = solver.used(&solution.policy);
        let mut next = vec![0.0; space.len()];
        solver.step(&solution.policy, &used, &solution.stationary, &mut next);
        for (before, after) in solution.stationary.iter().zip(next) {
            prop_assert!((before - after).abs() < 1e-12);
        }
    }
}
