//! Options of `switchyard ctl canary`, and a canary for people.

use std::fmt::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};
use switchyard_core::canary::{Member, PromoteIf};
use switchyard_server::policies::{CanarySettings, CanaryStatus};

/// The settings of a canary.
#[derive(Debug, Args)]
pub(super) struct CanaryArgs {
    /// Name of the candidate in the folder of policies, without `.wasm`
    pub(super) policy: String,
    /// Share of the requests for the candidate, at most 50%; as many go to a second instance of the
    /// policy that serves, which it is compared with
    #[arg(long, value_name = "SHARE", default_value = "10%", value_parser = share)]
    share: f64,
    /// When the candidate takes over by itself
    #[arg(long, value_name = "RULE", default_value = "better")]
    promote_if: Promotion,
    /// When it is rolled back by itself, apart from faults and the end of its time
    #[arg(long, value_name = "RULE", default_value = "worse")]
    rollback_if: RollBack,
    /// Longest time: then it is rolled back
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    within: Duration,
    /// Probability that a candidate that equals the policy is ever called better or worse
    #[arg(long, value_name = "P", default_value_t = CanarySettings::default().error)]
    error: f64,
    /// Utility that the candidate may lose and still count as not worse
    #[arg(long, value_name = "U", default_value_t = CanarySettings::default().margin)]
    margin: f64,
    /// Faults at which it is rolled back
    #[arg(long, value_name = "N", default_value_t = CanarySettings::default().faults_max)]
    faults_max: u64,
    /// Time for which a policy gets all arrivals, before another one's turn [default: a third of the
    /// shortest deadline of the apps, 10ms to 100ms]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    slot: Option<Duration>,
}

/// When a candidate is promoted.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Promotion {
    /// Its utility is higher
    Better,
    /// Its utility is at most --margin lower
    NotWorse,
    /// Only on `ctl promote`
    Never,
}

/// When a candidate is rolled back.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RollBack {
    /// Its utility is lower
    Worse,
    /// Only on `ctl rollback`
    Never,
}

fn share(text: &str) -> Result<f64, String> {
    let number = |text: &str| {
        text.trim()
            .parse::<f64>()
            .map_err(|error| error.to_string())
    };
    match text.strip_suffix('%') {
        Some(percent) => Ok(number(percent)? / 100.0),
        None => number(text),
    }
}

// === impl CanaryArgs ===

impl CanaryArgs {
    /// As an order has them. The server checks their ranges.
    pub(super) fn settings(&self) -> CanarySettings {
        CanarySettings {
            share: self.share,
            promote_if: match self.promote_if {
                Promotion::Better => PromoteIf::Better,
                Promotion::NotWorse => PromoteIf::NotWorse,
                Promotion::Never => PromoteIf::Never,
            },
            rollback_if_worse: matches!(self.rollback_if, RollBack::Worse),
            error: self.error,
            margin: self.margin,
            faults_max: self.faults_max,
            within_s: self.within.as_secs(),
            slot_ms: self.slot.map(|slot| slot.as_millis() as u64),
        }
    }
}

/// A canary that runs, or the last one.
pub(super) fn text(canary: &CanaryStatus) -> String {
    let report = &canary.report;
    let mut text = String::new();
    let state = match (canary.runs, report.verdict) {
        (true, _) => "runs".to_owned(),
        (false, Some(verdict)) => verdict.to_string(),
        (false, None) => "ended".to_owned(),
    };
    let (low, high) = report.interval;
    let _ = writeln!(
        text,
        "  canary of {} by {}: {state} after {:.1} s; utility {:+.4} ({low:+.4} to {high:+.4}) over {} \
         rounds, evidence {:.3} of {:.0}",
        canary.candidate.policy,
        canary.by,
        report.ran_for.as_secs_f64(),
        report.difference,
        report.pairs,
        report.evidence,
        1.0 / canary.settings.error,
    );
    for member in Member::ALL {
        let of = report.member(member);
        let late = 1.0 - of.in_time as f64 / of.ended.max(1) as f64;
        let mean = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
        let _ = writeln!(
            text,
            "    {:9} {}: {} requests, utility {}, quality {}, {:.2} % not in time, {} faults",
            member.label(),
            of.policy,
            of.arrived,
            mean(of.utility),
            mean(of.quality),
            late * 100.0,
            of.faults,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_numbers_or_percents() {
        assert_eq!(share("10%"), Ok(0.1));
        assert_eq!(share("0.25"), Ok(0.25));
        assert!(share("ten").is_err());
    }
}
