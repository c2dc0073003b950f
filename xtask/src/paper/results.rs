//! Results of a figure's program.

mod run;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

pub(crate) use self::run::Estimate;
use self::run::{Run, SeedReport};
use super::sample::Sample;

/// Means by point, policy and metric; the part of `simulate --json` that claims are about.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results {
    runs: Vec<Run>,
}

/// As `simulate --json` has them.
#[derive(Debug, Deserialize)]
struct Simulated {
    runs: Vec<Run>,
    /// Window times on this machine.
    #[serde(default)]
    scheduling: Vec<Scheduling>,
}

#[derive(Debug, Deserialize)]
struct Scheduling {
    point: String,
    policy: String,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
}

/// Promises of tables; the part of `prepare ramsis --json` that claims are about.
#[derive(Debug, Deserialize)]
struct Promises {
    tables: Vec<Promise>,
}

#[derive(Debug, Deserialize)]
struct Promise {
    load: f64,
    expected_accuracy: f64,
    expected_violation_rate: f64,
}

/// Host time of a policy's windows in microseconds: of this machine, and so only in figures that
/// are [timed](super::figure::Simulate::timed).
pub(crate) const WINDOW_METRICS: [&str; 4] = [
    "window_mean_us",
    "window_p50_us",
    "window_p99_us",
    "window_max_us",
];

// === impl Results ===

impl Results {
    /// Reads the output of `--json`.
    pub(crate) fn parse(json: &str) -> Result<Self> {
        let read: Simulated = serde_json::from_str(json).context("unexpected JSON")?;
        let Simulated {
            mut runs,
            scheduling,
        } = read;
        if runs.is_empty() {
            bail!("no runs");
        }
        for run in &mut runs {
            run.add_exit_shares();
            run.add_phases();
            let is_of = |of: &&Scheduling| of.point == run.point && of.policy == run.policy;
            let Some(times) = scheduling.iter().find(is_of) else {
                continue;
            };
            let times = [times.mean_us, times.p50_us, times.p99_us, times.max_us];
            for (metric, us) in WINDOW_METRICS.iter().zip(times) {
                let metric = (*metric).to_owned();
                run.estimates.insert(metric, Estimate::of(us));
            }
        }
        Ok(Self { runs })
    }

    /// The tables of `prepare --json`, as runs of a policy at the points `load=LOAD`.
    pub(crate) fn of_tables(json: &str, policy: &str) -> Result<Self> {
        let promises: Promises = serde_json::from_str(json).context("unexpected JSON")?;
        let runs = promises.tables.iter().map(|table| Run {
            point: format!("load={}", table.load),
            policy: policy.to_owned(),
            estimates: BTreeMap::from([
                (
                    "accuracy_per_satisfied".to_owned(),
                    Estimate::of(table.expected_accuracy),
                ),
                (
                    "violation_ratio".to_owned(),
                    Estimate::of(table.expected_violation_rate),
                ),
            ]),
            by_seed: BTreeMap::new(),
            phases: Vec::new(),
            reports: Vec::new(),
        });
        Ok(Self {
            runs: runs.collect(),
        })
    }

    /// The same runs at this point; points of a sweep follow it after a comma.
    pub(crate) fn at(mut self, point: &str) -> Self {
        for run in &mut self.runs {
            run.point = match run.point.as_str() {
                "" => point.to_owned(),
                swept => format!("{point},{swept}"),
            };
        }
        self
    }

    /// Adds one run.
    pub(crate) fn add(&mut self, point: &str, policy: &str, estimates: BTreeMap<String, Estimate>) {
        self.runs.push(Run {
            point: point.to_owned(),
            policy: policy.to_owned(),
            estimates,
            by_seed: BTreeMap::new(),
            phases: Vec::new(),
            reports: Vec::new(),
        });
    }

    /// Adds runs of further points.
    pub(crate) fn append(&mut self, more: Self) {
        self.runs.extend(more.runs);
    }

    /// Adds runs at existing points, each after the runs of its point; drops the others. A run at `load=1` is
    /// also one at `load=1,live`.
    pub(crate) fn join(&mut self, more: Self) {
        for run in more.runs {
            let is_below = |point: &str| {
                let rest = point.strip_prefix(&run.point);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
            };
            let points: Vec<String> = self
                .points()
                .filter(|at| is_below(at))
                .map(str::to_owned)
                .collect();
            for point in points {
                let last = self.runs.iter().rposition(|at| at.point == point);
                let run = Run {
                    point,
                    ..run.clone()
                };
                self.runs
                    .insert(last.map_or(self.runs.len(), |last| last + 1), run);
            }
        }
    }

    /// In the order of the sweep.
    pub(crate) fn points(&self) -> impl Iterator<Item = &str> {
        let mut last = None;
        let points = self.runs.iter().map(|run| run.point.as_str());
        points.filter(move |&point| last.replace(point) != Some(point))
    }

    /// Fails if a policy was taken off for its faults in any run: the native fallback served the rest, so
    /// that the results are not the policy's.
    ///
    /// # Errors
    /// Names the policy, the point and the number of runs.
    pub(crate) fn check_in_charge(&self) -> Result<()> {
        for run in &self.runs {
            let (all, of) = (run.reports.len(), |report: &&SeedReport| {
                report.taken_off > 0
            });
            let off = run.reports.iter().filter(of).count();
            if off > 0 {
                bail!(
                    "policy `{}` was taken off in {off} of {all} runs at point `{}`; raise \
                     window_budget_ms or patience_ms of the pool, or bound the policy's search",
                    run.policy,
                    run.point,
                );
            }
        }
        Ok(())
    }

    /// Point, policy and estimates of each run.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, &str, &BTreeMap<String, Estimate>)> {
        self.runs
            .iter()
            .map(|run| (run.point.as_str(), run.policy.as_str(), &run.estimates))
    }

    /// Seeds of the runs; 1 if their values by seed are not known.
    pub(crate) fn seeds(&self) -> usize {
        let seeds = self.runs.iter().flat_map(|run| run.by_seed.values());
        seeds.map(Vec::len).max().unwrap_or(1).max(1)
    }

    /// The value of one metric for one seed, or the reason why it is missing.
    pub(crate) fn of_seed(
        &self,
        point: &str,
        policy: &str,
        metric: &str,
        seed: usize,
    ) -> Result<Option<f64>, String> {
        let (run, estimate) = self.found(point, policy, metric)?;
        let by_seed = run.by_seed.get(metric);
        Ok(by_seed.map_or(Some(estimate.mean), |values| {
            values.get(seed).copied().flatten()
        }))
    }

    /// The values of one metric, or the reason why they are missing.
    pub(crate) fn sample(&self, point: &str, policy: &str, metric: &str) -> Result<Sample, String> {
        let (run, estimate) = self.found(point, policy, metric)?;
        Ok(match run.by_seed.get(metric) {
            Some(values) => Sample::new(estimate.mean, values),
            None => Sample::constant(estimate.mean),
        })
    }

    fn found(&self, point: &str, policy: &str, metric: &str) -> Result<(&Run, &Estimate), String> {
        let at: Vec<&Run> = self.runs.iter().filter(|run| run.point == point).collect();
        if at.is_empty() {
            let known: Vec<&str> = self.points().collect();
            return Err(format!("no point `{point}`, only {}", known.join(", ")));
        }
        let run = at.iter().find(|run| run.policy == policy).ok_or_else(|| {
            let known: Vec<&str> = at.iter().map(|run| run.policy.as_str()).collect();
            format!("no policy `{policy}`, only {}", known.join(", "))
        })?;
        let estimate = run.estimates.get(metric).ok_or_else(|| {
            let known: Vec<&str> = run.estimates.keys().map(String::as_str).collect();
            format!("no metric `{metric}`, only {}", known.join(", "))
        })?;
        Ok((run, estimate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(policy: &str, accuracy: f64) -> Results {
        let estimates = format!(r#"{{"accuracy_per_satisfied": {{"mean": {accuracy}}}}}"#);
        let run = format!(r#"{{"point": "", "policy": "{policy}", "estimates": {estimates}}}"#);
        Results::parse(&format!(r#"{{"runs": [{run}]}}"#)).unwrap()
    }

    #[test]
    fn shares_of_exits_are_a_metric() {
        // Seed 1: 6 of 8 answers from `final`, of two variants; seed 2: all 4; the mean is 0.875.
        let served = |exit: &str, answered: u64| {
            format!(r#"{{"app": "a", "variant": "v", "exit": "{exit}", "answered": {answered}}}"#)
        };
        let first = [served("final", 4), served("final", 2), served("layer1", 2)].join(", ");
        let second = served("final", 4);
        let reports = format!(r#"[{{"served": [{first}]}}, {{"served": [{second}]}}]"#);
        let run =
            format!(r#"{{"point": "", "policy": "p", "estimates": {{}}, "reports": {reports}}}"#);
        let results = Results::parse(&format!(r#"{{"runs": [{run}]}}"#)).unwrap();
        let of = |exit: &str| {
            results
                .sample("", "p", &format!("exit_share_{exit}"))
                .unwrap()
        };
        assert!((of("final").mean - 0.875).abs() < 1e-12);
        assert!((of("layer1").mean - 0.125).abs() < 1e-12);
    }

    #[test]
    fn phases_have_metrics_of_their_own() {
        let phase = |mean: f64| format!(r#"{{"estimates": {{"late_ratio": {{"mean": {mean}}}}}}}"#);
        let report = |burst: f64, normal: f64| {
            let of = |late: f64| format!(r#"{{"summary": {{"late_ratio": {late}, "cdf": []}}}}"#);
            format!(r#"{{"phases": [{}, {}]}}"#, of(burst), of(normal))
        };
        let run = format!(
            r#"{{"point": "", "policy": "p", "estimates": {{}}, "phases": [{}, {}], "reports": [{}, {}]}}"#,
            phase(0.3),
            phase(0.1),
            report(0.2, 0.1),
            report(0.4, 0.1),
        );
        let results = Results::parse(&format!(r#"{{"runs": [{run}]}}"#)).unwrap();
        let of = |metric: &str| results.sample("", "p", metric).unwrap();
        assert_eq!(
            of("late_ratio_0"),
            Sample::new(0.3, &[Some(0.2), Some(0.4)])
        );
        assert_eq!(of("late_ratio_1").mean, 0.1);
        assert_eq!(results.seeds(), 2);
    }

    #[test]
    fn kept_results_have_their_metrics_and_faults() {
        let phase = r#"{"estimates": {"late_ratio": {"mean": 0.25}}}"#;
        let served = r#"{"app": "a", "variant": "v", "exit": "final", "answered": 2}"#;
        let report = format!(r#"{{"served": [{served}], "taken_off": 1}}"#);
        let run = format!(
            r#"{{"point": "", "policy": "p", "estimates": {{}}, "phases": [{phase}], "reports": [{report}]}}"#
        );
        let results = Results::parse(&format!(r#"{{"runs": [{run}]}}"#)).unwrap();
        let kept = serde_json::to_string(&results).unwrap();
        let kept: Results = serde_json::from_str(&kept).unwrap();
        for metric in ["late_ratio_0", "exit_share_final"] {
            assert_eq!(
                kept.sample("", "p", metric),
                results.sample("", "p", metric)
            );
        }
        assert!(kept.sample("", "p", "late_ratio_0").is_ok());
        assert!(kept.check_in_charge().is_err());
    }

    #[test]
    fn a_policy_that_was_taken_off_is_named() {
        let parsed = |off: u64| {
            let reports = format!(r#"[{{"taken_off": 0}}, {{"taken_off": {off}}}]"#);
            let run = format!(
                r#"{{"point": "load=2", "policy": "p", "estimates": {{}}, "reports": {reports}}}"#
            );
            Results::parse(&format!(r#"{{"runs": [{run}]}}"#)).unwrap()
        };
        assert!(parsed(0).check_in_charge().is_ok());
        let error = parsed(1).check_in_charge().unwrap_err().to_string();
        assert!(
            error.contains("`p`") && error.contains("1 of 2 runs at point `load=2`"),
            "{error}"
        );
    }

    #[test]
    fn promises_of_tables_join_the_runs_of_their_load() {
        let mut results = run("ramsis", 0.8).at("load=400");
        results.append(run("ramsis", 0.7).at("load=800"));
        let table = |load| {
            format!(
                r#"{{"load": {load}, "expected_accuracy": 0.75, "expected_violation_rate": 0.01,
                    "states": 7}}"#
            )
        };
        let json = format!(r#"{{"tables": [{}, {}]}}"#, table("400.0"), table("600.0"));
        results.join(Results::of_tables(&json, "expected").unwrap());
        let rows: Vec<_> = results
            .rows()
            .map(|(point, policy, _)| (point, policy))
            .collect();
        let expected = [
            ("load=400", "ramsis"),
            ("load=400", "expected"),
            ("load=800", "ramsis"),
        ];
        assert_eq!(rows, expected, "no point `load=600` was simulated");
        let of = |metric| results.sample("load=400", "expected", metric);
        assert_eq!(of("accuracy_per_satisfied"), Ok(Sample::constant(0.75)));
        assert_eq!(of("violation_ratio"), Ok(Sample::constant(0.01)));
    }

    #[test]
    fn promises_of_tables_join_live_and_simulated_runs() {
        let mut results = run("ramsis", 0.8).at("simulated").at("load=40");
        results.append(run("ramsis", 0.8).at("live").at("load=40"));
        results.append(run("ramsis", 0.8).at("live").at("load=400"));
        let promised = run("expected", 0.75).at("load=40");
        results.join(promised);
        let rows = results.rows().map(|(point, policy, _)| (point, policy));
        let expected = [
            ("load=40,simulated", "ramsis"),
            ("load=40,simulated", "expected"),
            ("load=40,live", "ramsis"),
            ("load=40,live", "expected"),
            ("load=400,live", "ramsis"),
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }
}
