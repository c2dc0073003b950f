//! The options.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;

/// Inject faults in virtual time and check the scheduler after every event
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  switchyard soak
  switchyard soak --faults 20000000 --seed 1000000
  switchyard soak --policy all
  switchyard soak --seed 17 --keep 3,7-9

A seed gives a pool and 400 steps: policies that trap, stall, lie, hoard or change their mind; workers
that slow down, die, return or answer late, twice or for another; late evidence, cancelled requests,
changed catalogs, swaps, canaries, a drain. After every event: each accepted request has one answer or
is live, queues keep their bounds, a worker has one batch, no due request waits while all workers are
idle, no wake-up is in the past. One seed in 16 is run twice and must give the same commands.

A seed that breaks a rule is cut down to the steps that it needs, and printed as a test. Exit code 1
if a rule is broken.")]
pub(crate) struct SoakArgs {
    /// Faults to inject
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(super) faults: u64,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// Run only these steps of the seed, such as 3,7-9
    #[arg(long, value_name = "STEPS", value_parser = steps)]
    pub(super) keep: Option<Steps>,
    /// A component that half of the swaps install: a file, a name or `all`; repeat the option for more
    #[arg(long = "policy", value_name = "NAME")]
    pub(super) names: Vec<String>,
    /// Folder of policies
    #[arg(long, value_name = "DIR", default_value = "target/policies")]
    pub(super) policies: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Positions of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Steps(pub(super) Vec<usize>);

// === impl SoakArgs ===

impl SoakArgs {
    /// The options that choose policies, as typed.
    pub(super) fn policy_options(&self) -> String {
        let mut text = String::new();
        for name in &self.names {
            // Writing into a text cannot fail.
            let _ = write!(text, " --policy {name}");
        }
        if !self.names.is_empty() {
            let _ = write!(text, " --policies {}", self.policies.display());
        }
        text
    }
}

impl std::ops::Deref for Steps {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

/// Largest position of a step that can be named.
const STEP_MAX: usize = 10_000;

fn steps(text: &str) -> Result<Steps, String> {
    let number = |text: &str| {
        let at = text.trim().parse::<usize>().ok();
        at.filter(|at| *at <= STEP_MAX).ok_or_else(|| {
            format!("`{text}` must be a position from 0 to {STEP_MAX}, or a range such as 7-9")
        })
    };
    let mut kept = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        kept.extend(number(from)?..=number(to)?);
    }
    Ok(Steps(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_as_they_are_typed() {
        assert_eq!(steps("3,7-9"), Ok(Steps(vec![3, 7, 8, 9])));
        assert_eq!(steps(""), Ok(Steps(vec![])));
        for wrong in ["x", "3-", "-3", "3,x", "1-99999999"] {
            let error = steps(wrong).unwrap_err();
            assert!(
                error.contains("must be a position from 0 to 10000"),
                "{error}"
            );
        }
    }
}
