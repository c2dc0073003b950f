//! `index.json`: the inputs of a set of tables, and the guarantee of each table.

use serde::{Deserialize, Serialize};

use crate::error::{Reason, TablesError};
use crate::grid::SlackGrid;

/// Version of the format.
pub const FORMAT: u32 = 1;

/// The index's name in the set's folder.
pub const INDEX_FILE: &str = "index.json";

/// A set of tables that differ in the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// [`FORMAT`].
    pub format: u32,
    /// The app, if the pool has several.
    #[serde(default)]
    pub app: Option<String>,
    /// Names of the variants; an [`Action`](crate::Action) has an index into this list.
    pub variants: Vec<String>,
    /// Kind of the workers.
    pub kind: String,
    /// K: number of workers that share the load.
    pub workers: u32,
    /// Deadline of a request from its arrival, in microseconds.
    pub slo_us: u64,
    /// Percentile of the planned latencies, such as `p95`.
    pub percentile: String,
    /// N: the longest queue with states of its own; longer ones share the full state.
    pub queue_max: u32,
    /// The slack grid in microseconds, ascending from 0.
    pub slack_us: Vec<u64>,
    /// The rule that assigns requests to workers.
    pub balancing: Balancing,
    /// The maximised objective.
    pub objective: Objective,
    /// The allowed batches.
    pub batching: Batching,
    /// Law of the arrivals of all workers together.
    pub arrivals: Arrivals,
    /// Hash of the accuracies and latencies.
    pub profile: String,
    /// By ascending load.
    pub tables: Vec<TableEntry>,
}

/// One table of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    /// The load in requests per second, of all workers together.
    pub load_rps: f64,
    /// Its file in the set's folder.
    pub file: String,
    /// Hash of its inputs: 64 hexadecimal digits.
    pub hash: String,
    /// Accuracy per request in time, 0 to 1 (section 5.1).
    pub expected_accuracy: f64,
    /// Share of late requests, 0 to 1 (section 5.1).
    pub expected_violation_rate: f64,
    /// States of the decision process.
    pub states: u64,
    /// Seconds of one core to generate it.
    pub seconds: f64,
}

/// The rule that assigns requests to workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Balancing {
    /// Round robin, as in the paper.
    #[default]
    RoundRobin,
    /// To the worker with the fewest requests.
    ShortestQueue,
}

/// The maximised objective.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The paper's: accuracy per decision, 0 if the earliest deadline is missed.
    Decision,
    /// Accuracy per request, 0 if late.
    #[default]
    Query,
}

/// The allowed batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Batching {
    /// The whole queue.
    #[default]
    Maximal,
    /// Any part of the queue.
    Variable,
}

/// Law of the arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// A Poisson process.
    #[default]
    Poisson,
    /// Gamma distributed gaps: burstier than Poisson below shape 1, smoother above.
    Gamma {
        /// The gaps' coefficient of variation is `1 / sqrt(shape)`.
        shape: f64,
    },
}

// === impl Set ===

impl Set {
    /// Reads `index.json`.
    ///
    /// # Errors
    /// The field at fault.
    pub fn parse(index_json: &str) -> Result<Self, TablesError> {
        let mut reader = serde_json::Deserializer::from_str(index_json);
        let set: Self = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let field = error.path().to_string();
            fault(field, Reason::Json(error.into_inner().to_string()))
        })?;
        let end = reader.end();
        end.map_err(|error| fault("", Reason::Json(error.to_string())))?;
        set.check()?;
        Ok(set)
    }

    /// The text of `index.json`.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn to_json(&self) -> Result<String, TablesError> {
        self.check()?;
        let json = serde_json::to_string_pretty(self);
        let json = json.map_err(|error| fault("", Reason::Json(error.to_string())))?;
        Ok(json + "\n")
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first field out of range.
    pub fn check(&self) -> Result<(), TablesError> {
        if self.format != FORMAT {
            let reason = Reason::Differs {
                expected: FORMAT.to_string(),
                found: self.format.to_string(),
            };
            return Err(fault("format", reason));
        }
        let bounded = |field: &str, holds: bool, rule| match holds {
            true => Ok(()),
            false => Err(fault(field, Reason::Range(rule))),
        };
        bounded(
            "variants",
            (1..=256).contains(&self.variants.len()),
            "must be 1 to 256 names",
        )?;
        bounded("workers", self.workers > 0, "must be above 0")?;
        bounded(
            "slo_us",
            self.slo_us > 0 && self.slo_us <= i64::MAX as u64,
            "must be above 0 and below 2^63",
        )?;
        bounded(
            "queue_max",
            (1..=255).contains(&self.queue_max),
            "must be 1 to 255",
        )?;
        self.check_grid()?;
        if let Arrivals::Gamma { shape } = self.arrivals {
            bounded(
                "arrivals",
                shape > 0.0 && shape.is_finite(),
                "must have a shape above 0",
            )?;
        }
        if self.tables.is_empty() {
            return Err(fault("tables", Reason::Empty));
        }
        for (t, entry) in self.tables.iter().enumerate() {
            entry.check(t)?;
        }
        let loads = self.tables.windows(2);
        match loads
            .into_iter()
            .position(|p| p[0].load_rps >= p[1].load_rps)
        {
            None => Ok(()),
            Some(t) => Err(fault(
                format!("tables[{}].load_rps", t + 1),
                Reason::Range("must be above the load of the table before it"),
            )),
        }
    }

    fn check_grid(&self) -> Result<(), TablesError> {
        let grid = |holds, rule| match holds {
            true => Ok(()),
            false => Err(fault("slack_us", Reason::Range(rule))),
        };
        grid(self.slack_us.first() == Some(&0), "must begin with 0")?;
        grid(self.slack_us.len() <= 65_536, "must have 1 to 65536 slacks")?;
        grid(self.slack_us.is_sorted_by(|a, b| a < b), "must ascend")?;
        grid(
            self.slack_us.last() <= Some(&self.slo_us),
            "must be at most `slo_us`",
        )
    }

    /// Index of the table for a load: the lowest that covers it, otherwise the highest.
    pub fn covering(&self, load_rps: f64) -> usize {
        let covering = self
            .tables
            .partition_point(|entry| entry.load_rps < load_rps);
        covering.min(self.tables.len().saturating_sub(1))
    }

    /// Whether a table covers a load.
    pub fn covers(&self, load_rps: f64) -> bool {
        let highest = self.tables.last();
        highest.is_some_and(|entry| entry.load_rps >= load_rps)
    }

    /// The slack grid for lookups.
    pub fn grid(&self) -> SlackGrid {
        SlackGrid::new(&self.slack_us)
    }

    /// Actions per table: one per queue length and slack, and the full state's.
    pub fn actions(&self) -> usize {
        self.queue_max as usize * self.slack_us.len() + 1
    }
}

// === impl TableEntry ===

impl TableEntry {
    fn check(&self, t: usize) -> Result<(), TablesError> {
        let at = |field: &str, holds: bool, rule| match holds {
            true => Ok(()),
            false => Err(fault(format!("tables[{t}].{field}"), Reason::Range(rule))),
        };
        at(
            "load_rps",
            self.load_rps > 0.0 && self.load_rps.is_finite(),
            "must be a number above 0",
        )?;
        at(
            "file",
            !self.file.is_empty() && !self.file.contains(['/', '\\']),
            "must be the name of a file in the set's folder",
        )?;
        at(
            "hash",
            self.hash.len() == 64 && self.hash.bytes().all(|b| b.is_ascii_hexdigit()),
            "must be 64 hexadecimal digits",
        )?;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        at(
            "expected_accuracy",
            share(self.expected_accuracy),
            "must be 0 to 1",
        )?;
        at(
            "expected_violation_rate",
            share(self.expected_violation_rate),
            "must be 0 to 1",
        )?;
        at("seconds", self.seconds >= 0.0, "must be 0 or more")
    }
}

fn fault(field: impl Into<String>, reason: Reason) -> TablesError {
    TablesError::new(INDEX_FILE, field, reason)
}
