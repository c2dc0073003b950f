//! `switchyard soak`: faults of policies, workers, clients and operators in virtual time.

mod arguments;
mod components;
mod print_report;

use std::time::Instant;

use switchyard_sim::soak::{CaseRun, SoakCase, SoakOptions, soak};

pub(super) use self::arguments::SoakArgs;
use super::failure::Failure;
use super::print;

/// Runs and prints; an error if a rule is broken.
pub(super) fn run(args: &SoakArgs) -> Result<(), Failure> {
    let components = components::load(&args.policies, &args.names)?;
    // A panic of the core is a broken rule, and is reported once, with its steps.
    std::panic::set_hook(Box::new(|_| {}));
    if let Some(keep) = &args.keep {
        let run = CaseRun {
            policies: &components.list,
            ..CaseRun::default()
        };
        let case = SoakCase::of(args.seed).kept(keep);
        return match case.run(run).violation {
            None => print::line(format_args!(
                "seed {}: {} steps break no rule",
                args.seed,
                case.steps.len()
            )),
            Some(violation) => {
                print::line(case.as_test(&violation))?;
                Err(Failure::check(violation))
            }
        };
    }
    let options = SoakOptions {
        seed: args.seed,
        faults: args.faults,
        policies: components.list.clone(),
        ..SoakOptions::default()
    };
    let began = Instant::now();
    let report = soak(&options);
    let seconds = began.elapsed().as_secs_f64();
    match args.json {
        true => print::json(&print_report::as_json(&report, seconds))?,
        false => print::line(print_report::as_text(&report, seconds))?,
    }
    match &report.failure {
        None => Ok(()),
        Some(failure) => Err(Failure::check(format!(
            "seed {}: {}; run again with: switchyard soak --seed {} --keep {}{}",
            failure.seed,
            failure.violation,
            failure.seed,
            failure.keep,
            args.policy_options()
        ))),
    }
}
