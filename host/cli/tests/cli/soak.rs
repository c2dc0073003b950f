//! `soak` with components: the shipped policies under faults, and failures that can be run again.

use serde_json::Value;

use super::binary::{Ran, policy, switchyard};

fn soak(more: &[&str]) -> Ran {
    let folder = policy("fcfs");
    let folder = folder.parent().unwrap().to_str().unwrap();
    switchyard(&[&["soak", "--policies", folder][..], more].concat())
}

/// Half of the swaps install one of them.
#[test]
fn no_shipped_policy_breaks_a_rule() {
    let ran = soak(&["--policy", "all", "--faults", "10000", "--json"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let report = &report["report"];
    assert_eq!(report["imbalance"], 0, "{report}");
    assert!(report["failure"].is_null(), "{report}");
    assert!(
        report["faults"]["policy swapped"].as_u64() > Some(50),
        "{report}"
    );
}

#[test]
fn one_policy_is_named_and_one_that_is_missing_too() {
    let ran = soak(&["--policy", "fcfs", "--faults", "300"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("policy swapped"), "{}", ran.stdout);
    let ran = soak(&["--policy", "fcsf", "--faults", "300"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(ran.stderr.contains("fcsf"), "{}", ran.stderr);
}

#[test]
fn a_few_steps_of_a_seed_are_run_again() {
    let ran = soak(&["--seed", "17", "--keep", "0-5"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, "seed 17: 6 steps break no rule\n");
}
