//! Comma-separated values: a header, then one line per variant and batch. No quotes.
//!
//! Columns, in any order; units are in their names:
//! - `variant`, `batch`: required;
//! - `p50_U`, `p95_U`, `p99_U`, with U one of `us`, `ms`, `s`: at least one of them; `mean_U`;
//! - `accuracy` (0 to 1) or `accuracy_percent`: required in a profile, on a variant's first line
//!   or on all;
//! - `app`, `kind`, `samples`, `memory_bytes` or `memory_mib`, `load_U`, `energy_uj` or
//!   `energy_mj` (of the batch).

use std::path::Path;
use std::str::FromStr;

use super::ImportError;
use super::rows::{Given, Row, Table};
use crate::profile::error::ProfileFileError;

/// Names of columns without their units.
const QUANTITIES: [&str; 5] = ["p50", "p95", "p99", "mean", "load"];

/// Names of the other columns.
const COLUMNS: [&str; 11] = [
    "variant",
    "batch",
    "app",
    "kind",
    "samples",
    "accuracy",
    "accuracy_percent",
    "memory_bytes",
    "memory_mib",
    "energy_uj",
    "energy_mj",
];

/// A file of comma-separated values with a header.
pub(super) struct Lines<'a> {
    file: &'a Path,
    header: Vec<String>,
    /// With their numbers, counted from 1.
    lines: Vec<(usize, Vec<String>)>,
}

/// One line.
pub(super) struct Line<'a> {
    table: &'a Lines<'a>,
    number: usize,
    cells: &'a [String],
}

pub(super) fn read(file: &Path) -> Result<Table, ImportError> {
    let text = std::fs::read_to_string(file).map_err(|error| ProfileFileError::io(file, error))?;
    let lines = Lines::parse(file, &text)?;
    lines.check_header()?;
    let mut rows: Vec<Row> = Vec::new();
    for line in lines.iter() {
        let row = line.row()?;
        let is_same = |other: &&Row| {
            (&other.app, &other.kind, &other.variant) == (&row.app, &row.kind, &row.variant)
        };
        if rows
            .iter()
            .filter(is_same)
            .any(|other| other.batch == row.batch)
        {
            let reason = format!(
                "variant {}, batch {} is there twice",
                row.variant, row.batch
            );
            return Err(line.fault(reason));
        }
        // Figures of a variant may be said once.
        let first = rows.iter().find(is_same).cloned();
        let said = |mine: Option<u64>, of: fn(&Row) -> Option<u64>| {
            mine.or_else(|| first.as_ref().and_then(of))
        };
        let accuracy = row.accuracy.or(first.as_ref().and_then(|row| row.accuracy));
        if accuracy.is_none() {
            let reason = format!("column `accuracy`: variant {} has none", row.variant);
            return Err(line.fault(reason));
        }
        rows.push(Row {
            accuracy,
            memory_bytes: said(row.memory_bytes, |row| row.memory_bytes),
            load_us: said(row.load_us, |row| row.load_us),
            ..row
        });
    }
    if rows.is_empty() {
        return Err(ImportError::line(
            file,
            1,
            "there are no lines below the header",
        ));
    }
    Ok(Table {
        rows,
        notes: Vec::new(),
        fills: false,
    })
}

// === impl Lines ===

impl<'a> Lines<'a> {
    pub(super) fn parse(file: &'a Path, text: &str) -> Result<Self, ImportError> {
        let mut lines = (1..)
            .zip(text.lines())
            .filter(|(_, line)| !line.trim().is_empty());
        let (number, header) = lines
            .next()
            .ok_or_else(|| ImportError::line(file, 1, "there is no header"))?;
        let header = cells(file, number, header)?;
        let mut all = Vec::new();
        for (number, line) in lines {
            let cells = cells(file, number, line)?;
            if cells.len() != header.len() {
                let reason = format!("{} cells, the header has {}", cells.len(), header.len());
                return Err(ImportError::line(file, number, reason));
            }
            all.push((number, cells));
        }
        Ok(Self {
            file,
            header,
            lines: all,
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Line<'_>> {
        self.lines.iter().map(|(number, cells)| Line {
            table: self,
            number: *number,
            cells,
        })
    }

    fn check_header(&self) -> Result<(), ImportError> {
        let fault = |reason: String| Err(ImportError::line(self.file, 1, reason));
        for (i, name) in self.header.iter().enumerate() {
            let is_known = COLUMNS.contains(&name.as_str())
                || QUANTITIES
                    .iter()
                    .any(|quantity| unit_of(name, quantity).is_some());
            if !is_known {
                let hint = if QUANTITIES.contains(&name.as_str()) {
                    format!("; its unit is part of its name, such as `{name}_ms`")
                } else {
                    String::new()
                };
                return fault(format!("column `{name}` is not known{hint}"));
            }
            if self.header[..i].contains(name) {
                return fault(format!("column `{name}` is there twice"));
            }
        }
        for required in ["variant", "batch"] {
            if !self.header.iter().any(|name| name == required) {
                return fault(format!("column `{required}` is missing"));
            }
        }
        let is_latency = |name: &String| {
            QUANTITIES[..3]
                .iter()
                .any(|quantity| unit_of(name, quantity).is_some())
        };
        if !self.header.iter().any(is_latency) {
            return fault("a column of latencies is missing, such as `p95_ms`".to_owned());
        }
        if !self.header.iter().any(|name| name.starts_with("accuracy")) {
            return fault("column `accuracy` is missing".to_owned());
        }
        Ok(())
    }
}

// === impl Line ===

impl Line<'_> {
    pub(super) fn fault(&self, reason: impl Into<String>) -> ImportError {
        ImportError::line(self.table.file, self.number, reason)
    }

    /// A cell that is not empty.
    pub(super) fn text(&self, column: &str) -> Option<&str> {
        let at = self.table.header.iter().position(|name| name == column)?;
        let cell = self.cells[at].as_str();
        (!cell.is_empty()).then_some(cell)
    }

    pub(super) fn number<T: FromStr>(&self, column: &str) -> Result<Option<T>, ImportError> {
        let Some(text) = self.text(column) else {
            return Ok(None);
        };
        let fault = || self.fault(format!("column `{column}`: `{text}` is no such number"));
        text.parse().map(Some).map_err(|_| fault())
    }

    /// A number from 0 on.
    fn amount(&self, column: &str) -> Result<Option<f64>, ImportError> {
        let amount: Option<f64> = self.number(column)?;
        match amount {
            Some(amount) if !(amount.is_finite() && amount >= 0.0) => {
                Err(self.fault(format!("column `{column}`: {amount}, must be 0 or more")))
            }
            amount => Ok(amount),
        }
    }

    /// A time, in microseconds.
    fn time(&self, quantity: &str) -> Result<Option<f64>, ImportError> {
        for column in &self.table.header {
            if let Some(us) = unit_of(column, quantity)
                && let Some(amount) = self.amount(column)?
            {
                return Ok(Some(amount * us));
            }
        }
        Ok(None)
    }

    /// A share, 0 to 1.
    pub(super) fn accuracy(&self) -> Result<Option<f64>, ImportError> {
        let columns = [("accuracy", 1.0), ("accuracy_percent", 100.0)];
        for (column, whole) in columns {
            if let Some(amount) = self.amount(column)? {
                if amount > whole {
                    let reason = format!("column `{column}`: {amount}, must be 0 to {whole}");
                    return Err(self.fault(reason));
                }
                return Ok(Some(amount / whole));
            }
        }
        Ok(None)
    }

    fn row(&self) -> Result<Row, ImportError> {
        let missing = |column: &str| self.fault(format!("column `{column}` is empty"));
        let batch: u32 = self.number("batch")?.ok_or_else(|| missing("batch"))?;
        if batch == 0 {
            return Err(self.fault("column `batch`: 0, must be at least 1"));
        }
        let given = Given {
            p50_us: self.time("p50")?,
            p95_us: self.time("p95")?,
            p99_us: self.time("p99")?,
        };
        let latency = given
            .complete()
            .ok_or_else(|| self.fault("there is no latency"))?;
        let mib = self
            .amount("memory_mib")?
            .map(|mib| mib * f64::from(1 << 20));
        let mj = self.amount("energy_mj")?.map(|mj| mj * 1e3);
        let whole = |amount: f64| amount.round() as u64;
        Ok(Row {
            app: self.text("app").map(str::to_owned),
            kind: self.text("kind").map(str::to_owned),
            variant: self
                .text("variant")
                .ok_or_else(|| missing("variant"))?
                .to_owned(),
            batch,
            samples: self.number("samples")?.unwrap_or(1),
            latency,
            mean_us: self.time("mean")?.map(whole),
            accuracy: self.accuracy()?,
            memory_bytes: self.amount("memory_bytes")?.or(mib).map(whole),
            load_us: self.time("load")?.map(whole),
            energy_uj: self.amount("energy_uj")?.or(mj).map(whole),
        })
    }
}

/// Microseconds in the unit that a column of this quantity has.
fn unit_of(column: &str, quantity: &str) -> Option<f64> {
    match column.strip_prefix(quantity)? {
        "_us" => Some(1.0),
        "_ms" => Some(1e3),
        "_s" => Some(1e6),
        _ => None,
    }
}

fn cells(file: &Path, number: usize, line: &str) -> Result<Vec<String>, ImportError> {
    if line.contains('"') {
        let reason = "quotes are not read; names must be without commas";
        return Err(ImportError::line(file, number, reason));
    }
    let line = line.trim_start_matches('\u{feff}');
    Ok(line.split(',').map(|cell| cell.trim().to_owned()).collect())
}
