//! The demo's results, as text and as JSON.

use std::fmt;
use std::time::Duration;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;

use super::score::{Score, Scores};
use super::simulated::Simulated;

/// Most utility that a policy may lose against the first one. Without overload all are alike.
const ALIKE: f64 = 0.01;

/// Least number of swaps.
const SWAPS_MIN: usize = 2;

/// Kinds of answers shown per policy.
const RAN_SHOWN: usize = 4;

/// The demo's results.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DemoReport {
    /// Offered load, as a share of the capacity of all workers with the most accurate variants.
    pub(crate) load: f64,
    /// The same in requests per second.
    pub(crate) rate_per_s: f64,
    /// One row per policy, on the same arrivals.
    pub(crate) policies: Vec<Row>,
    /// Requests sent between phases, around swaps; not part of any row.
    pub(crate) between: u64,
    /// Requests of all kinds that got no answer.
    pub(crate) lost: u64,
    /// Requests of all kinds that got an error.
    pub(crate) refused: u64,
    /// One of the errors.
    pub(crate) error: Option<String>,
    /// Requests that the server's own ledger misses: 0.
    pub(crate) imbalance: i64,
    /// Swaps in order.
    pub(crate) swaps: Vec<SwapRow>,
    /// The server drained and stopped when it was told to.
    pub(crate) drained: bool,
}

/// Results of one policy.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// Its file's name.
    pub(crate) policy: String,
    /// Requests sent to it.
    pub(crate) requests: u64,
    /// Answers in time per second.
    pub(crate) goodput_per_s: f64,
    /// Share of answers with the right label.
    pub(crate) accuracy: f64,
    /// Mean utility of a request: right answers, reduced by their lateness (SneakPeek eq. 2).
    pub(crate) utility: f64,
    /// Share of requests not answered in time.
    pub(crate) violations: f64,
    /// Median latency in milliseconds.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Requests that got no answer.
    pub(crate) lost: u64,
    /// The same arrivals, simulated.
    pub(crate) simulated: Simulated,
    /// The same app by app.
    pub(crate) apps: Vec<AppRow>,
    /// Share of answers by `app/variant:exit`, or `app/evidence`.
    pub(crate) ran: Vec<(String, f64)>,
    /// Share of answers by policy.
    pub(crate) decided: Vec<(String, f64)>,
}

/// Results of one policy for one app.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AppRow {
    /// Its name.
    pub(crate) app: String,
    /// Requests sent to it.
    pub(crate) requests: u64,
    /// Share of answers with the right label.
    pub(crate) accuracy: f64,
    /// Mean utility of a request: right answers, reduced by their lateness.
    pub(crate) utility: f64,
    /// Share of requests not answered in time.
    pub(crate) violations: f64,
    /// 95th percentile of latency in milliseconds.
    pub p95_ms: f64,
    /// Share of answers by variant and exit.
    pub(crate) ran: Vec<(String, f64)>,
}

/// One swap.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SwapRow {
    /// The policy that served before.
    pub(crate) from: String,
    /// The policy that serves now.
    pub(crate) to: String,
    /// Time to compile it.
    pub(crate) compile_us: u64,
    /// Time to try it on recorded windows.
    pub(crate) validate_us: u64,
    /// Time for which the driver paused.
    pub(crate) switch_us: u64,
    /// Requests that were in flight or came between the new file and the switch.
    pub(crate) meanwhile: u64,
}

// === impl Row ===

impl Row {
    pub(super) fn new(
        policy: &str,
        scores: &Scores,
        simulated: Simulated,
        apps: &[&str],
        time: Duration,
    ) -> Self {
        let score = &scores.all;
        let [p50_ms, p95_ms, p99_ms] = score.percentiles_ms([0.50, 0.95, 0.99]);
        let apps = apps.iter().zip(&scores.apps);
        Self {
            policy: policy.to_owned(),
            requests: score.requests,
            goodput_per_s: score.goodput_per_s(time),
            accuracy: score.accuracy(),
            utility: score.utility(),
            violations: score.violations(),
            p50_ms,
            p95_ms,
            p99_ms,
            lost: score.lost,
            simulated,
            apps: apps.map(|(app, score)| AppRow::new(app, score)).collect(),
            ran: score.ran(),
            decided: score.policies(),
        }
    }
}

// === impl AppRow ===

impl AppRow {
    fn new(app: &str, score: &Score) -> Self {
        let [p95_ms] = score.percentiles_ms([0.95]);
        Self {
            app: app.to_owned(),
            requests: score.requests,
            accuracy: score.accuracy(),
            utility: score.utility(),
            violations: score.violations(),
            p95_ms,
            ran: score.ran(),
        }
    }

    fn ran_in_words(&self) -> String {
        let shown = self.ran.iter().take(RAN_SHOWN);
        let words: Vec<_> = shown
            .map(|(name, share)| {
                let name = name.split_once('/').map_or(name.as_str(), |(_, name)| name);
                format!("{name} {:.0} %", share * 100.0)
            })
            .collect();
        words.join(", ")
    }
}

// === impl DemoReport ===

impl DemoReport {
    /// The failed expectations; empty if the demo went well.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        if self.lost > 0 || self.imbalance != 0 {
            failures.push(format!(
                "{} requests lost, the server's ledger misses {}",
                self.lost, self.imbalance
            ));
        }
        if self.refused > 0 {
            failures.push(format!("{} requests refused", self.refused));
        }
        if let (true, Some(error)) = (self.lost + self.refused > 0, &self.error) {
            failures.push(format!("one of them with: {error}"));
        }
        if self.swaps.len() < SWAPS_MIN {
            failures.push(format!(
                "{} swaps, at least {SWAPS_MIN} expected",
                self.swaps.len()
            ));
        }
        if !self.drained {
            failures.push("the server did not stop cleanly".to_owned());
        }
        if let Some((first, others)) = self.policies.split_first() {
            for other in others
                .iter()
                .filter(|it| it.utility < first.utility - ALIKE)
            {
                failures.push(format!(
                    "{}'s utility {:.3} is below {}'s {:.3}",
                    other.policy, other.utility, first.policy, first.utility
                ));
            }
        }
        failures
    }

    fn policies_table(&self) -> Table {
        let mut table = bare([
            "policy",
            "requests",
            "goodput/s",
            "accuracy",
            "utility",
            "late",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "lost",
        ]);
        for row in &self.policies {
            table.add_row([
                row.policy.clone(),
                row.requests.to_string(),
                format!("{:.1}", row.goodput_per_s),
                format!("{:.3}", row.accuracy),
                format!("{:.3}", row.utility),
                format!("{:.1} %", row.violations * 100.0),
                format!("{:.1}", row.p50_ms),
                format!("{:.1}", row.p95_ms),
                format!("{:.1}", row.p99_ms),
                row.lost.to_string(),
            ]);
            let simulated = &row.simulated;
            table.add_row([
                "  simulated".to_owned(),
                String::new(),
                format!("{:.1}", simulated.goodput_per_s),
                format!("{:.3}", simulated.accuracy),
                format!("{:.3}", simulated.utility),
                format!("{:.1} %", simulated.violations * 100.0),
                format!("{:.1}", simulated.p50_ms),
                format!("{:.1}", simulated.p95_ms),
                format!("{:.1}", simulated.p99_ms),
            ]);
        }
        align(&mut table, 1..10);
        table
    }

    fn apps_table(&self) -> Table {
        let mut table = bare([
            "policy", "app", "requests", "accuracy", "utility", "late", "p95 ms", "ran",
        ]);
        for row in &self.policies {
            for app in &row.apps {
                table.add_row([
                    row.policy.clone(),
                    app.app.clone(),
                    app.requests.to_string(),
                    format!("{:.3}", app.accuracy),
                    format!("{:.3}", app.utility),
                    format!("{:.1} %", app.violations * 100.0),
                    format!("{:.1}", app.p95_ms),
                    app.ran_in_words(),
                ]);
            }
        }
        align(&mut table, 2..7);
        table
    }

    fn swaps_table(&self) -> Table {
        let mut table = bare([
            "swap",
            "compile ms",
            "validate ms",
            "switch us",
            "requests meanwhile",
        ]);
        let ms = |us: u64| format!("{:.1}", us as f64 / 1e3);
        for swap in &self.swaps {
            table.add_row([
                format!("{} -> {}", swap.from, swap.to),
                ms(swap.compile_us),
                ms(swap.validate_us),
                swap.switch_us.to_string(),
                swap.meanwhile.to_string(),
            ]);
        }
        align(&mut table, 1..5);
        table
    }
}

impl fmt::Display for DemoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.swaps_table())?;
        writeln!(f, "{}\n", self.policies_table())?;
        writeln!(f, "{}\n", self.apps_table())?;
        let compared: u64 = self.policies.iter().map(|row| row.requests).sum();
        write!(
            f,
            "{:.0} requests/s in calm and busy stretches, {:.0} % of the capacity with the \
             most accurate variants; {} swaps under load; {} of {} requests lost",
            self.rate_per_s,
            self.load * 100.0,
            self.swaps.len(),
            self.lost,
            compared + self.between,
        )
    }
}

fn bare<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    table.set_header(header);
    table
}

fn align(table: &mut Table, numbers: std::ops::Range<usize>) {
    for column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(policy: &str, utility: f64) -> Row {
        let ran = vec![
            ("heart/resnet:final".to_owned(), 0.75),
            ("heart/cnn:final".to_owned(), 0.25),
        ];
        Row {
            policy: policy.to_owned(),
            requests: 1_000,
            goodput_per_s: 180.25,
            accuracy: 0.876,
            utility,
            violations: 0.125,
            p50_ms: 40.0,
            p95_ms: 130.0,
            p99_ms: 160.0,
            lost: 0,
            simulated: Simulated {
                goodput_per_s: 190.5,
                accuracy: 0.88,
                utility: utility + 0.05,
                violations: 0.1,
                p50_ms: 35.0,
                p95_ms: 120.0,
                p99_ms: 150.0,
            },
            apps: vec![AppRow {
                app: "heart".to_owned(),
                requests: 1_000,
                accuracy: 0.876,
                utility,
                violations: 0.125,
                p95_ms: 130.0,
                ran: ran.clone(),
            }],
            ran,
            decided: vec![(format!("{policy}@0.1.0"), 1.0)],
        }
    }

    fn report() -> DemoReport {
        let swap = |from: &str, to: &str| SwapRow {
            from: from.to_owned(),
            to: to.to_owned(),
            compile_us: 45_210,
            validate_us: 900,
            switch_us: 31,
            meanwhile: 170,
        };
        DemoReport {
            load: 0.9,
            rate_per_s: 321.7,
            policies: vec![row("fcfs", 0.5), row("sneakpeek", 0.75)],
            between: 100,
            lost: 0,
            refused: 0,
            error: None,
            imbalance: 0,
            swaps: vec![
                swap("fcfs", "sneakpeek@0.1.0"),
                swap("sneakpeek", "fcfs@0.1.0"),
            ],
            drained: true,
        }
    }

    #[test]
    fn tables_have_a_row_per_policy() {
        insta::assert_snapshot!(report().to_string());
        assert_eq!(report().failures(), Vec::<String>::new());
    }

    #[test]
    fn failures_are_named() {
        let mut bad = report();
        bad.lost = 2;
        bad.refused = 1;
        bad.error = Some("connection closed".to_owned());
        bad.swaps.pop();
        bad.drained = false;
        bad.policies[1].utility = 0.25;
        insta::assert_snapshot!(bad.failures().join("\n"));
    }
}
