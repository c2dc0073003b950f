//! A profile as comma-separated values: a header, then one line per variant and batch.
//!
//! Columns, in any order; units are in their names:
//! - `variant`, `batch`: required;
//! - `p50_U`, `p95_U`, `p99_U`, with U one of `us`, `ms`, `s`: at least one of them; `mean_U`;
//! - `accuracy` (0 to 1) or `accuracy_percent`: required, on a variant's first line or on all;
//! - `app`, `kind`, `samples`, `memory_bytes` or `memory_mib`, `load_U`, `energy_uj` or
//!   `energy_mj` (of the batch).

use std::path::Path;

use super::csv_table::{CsvRecord, CsvTable};
use super::error::ImportError;
use super::rows::{GivenPercentiles, ImportRow, ImportTable};
use crate::check::LATENCY_MAX_US;
use crate::error::ProfileFileError;

/// Names of columns without their units.
const QUANTITIES: [&str; 5] = ["p50", "p95", "p99", "mean", LOAD];

/// The time until a variant is resident.
const LOAD: &str = "load";

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

pub(super) fn read(file: &Path) -> Result<ImportTable, ImportError> {
    let text = std::fs::read_to_string(file).map_err(|error| ProfileFileError::io(file, error))?;
    let table = CsvTable::parse(file, &text)?;
    check_header(&table)?;
    let mut rows: Vec<ImportRow> = Vec::new();
    for record in table.records() {
        let row = row(&table, &record)?;
        let is_same = |other: &&ImportRow| {
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
            return Err(record.fault(reason));
        }
        // A variant's first line may give figures for all its lines.
        let first = rows.iter().find(is_same).cloned();
        let or_first = |own: Option<u64>, of: fn(&ImportRow) -> Option<u64>| {
            own.or_else(|| first.as_ref().and_then(of))
        };
        let accuracy = row.accuracy.or(first.as_ref().and_then(|row| row.accuracy));
        if accuracy.is_none() {
            let reason = format!("column `accuracy`: variant {} has none", row.variant);
            return Err(record.fault(reason));
        }
        rows.push(ImportRow {
            accuracy,
            memory_bytes: or_first(row.memory_bytes, |row| row.memory_bytes),
            load_us: or_first(row.load_us, |row| row.load_us),
            ..row
        });
    }
    if rows.is_empty() {
        return Err(table.fault("there are no lines below the header"));
    }
    Ok(ImportTable {
        rows,
        notes: Vec::new(),
        fills: false,
    })
}

fn check_header(table: &CsvTable<'_>) -> Result<(), ImportError> {
    for (i, name) in table.columns().enumerate() {
        let is_known =
            COLUMNS.contains(&name) || QUANTITIES.iter().any(|q| unit_us(name, q).is_some());
        if !is_known {
            let hint = if QUANTITIES.contains(&name) {
                format!("; its unit is part of its name, such as `{name}_ms`")
            } else {
                String::new()
            };
            return Err(table.fault(format!("column `{name}` is not known{hint}")));
        }
        if table.columns().take(i).any(|before| before == name) {
            return Err(table.fault(format!("column `{name}` is there twice")));
        }
    }
    let has = |is_wanted: &dyn Fn(&str) -> bool| table.columns().any(is_wanted);
    for required in ["variant", "batch"] {
        if !has(&|name| name == required) {
            return Err(table.fault(format!("column `{required}` is missing")));
        }
    }
    if !has(&|name| QUANTITIES[..3].iter().any(|q| unit_us(name, q).is_some())) {
        return Err(table.fault("a column of latencies is missing, such as `p95_ms`"));
    }
    if !has(&|name| name.starts_with("accuracy")) {
        return Err(table.fault("column `accuracy` is missing"));
    }
    Ok(())
}

fn row(table: &CsvTable<'_>, record: &CsvRecord<'_>) -> Result<ImportRow, ImportError> {
    let missing = |column: &str| record.fault(format!("column `{column}` is empty"));
    let batch: u32 = record.number("batch")?.ok_or_else(|| missing("batch"))?;
    if batch == 0 {
        return Err(record.fault("column `batch`: 0, must be at least 1"));
    }
    let time_us = |quantity| time_us(table, record, quantity);
    let given = GivenPercentiles {
        p50_us: time_us("p50")?,
        p95_us: time_us("p95")?,
        p99_us: time_us("p99")?,
    };
    let latency = given
        .complete()
        .ok_or_else(|| record.fault("there is no latency"))?;
    let mib = record.amount("memory_mib")?;
    let mib_bytes = mib.map(|mib| mib * f64::from(1 << 20));
    let mj = record.amount("energy_mj")?;
    let mj_uj = mj.map(|mj| mj * 1e3);
    let whole = |amount: f64| amount.round() as u64;
    Ok(ImportRow {
        app: record.text("app").map(str::to_owned),
        kind: record.text("kind").map(str::to_owned),
        variant: record
            .text("variant")
            .ok_or_else(|| missing("variant"))?
            .to_owned(),
        batch,
        samples: record.number("samples")?.unwrap_or(1),
        latency,
        mean_us: time_us("mean")?.map(whole),
        accuracy: record.accuracy()?,
        memory_bytes: record.amount("memory_bytes")?.or(mib_bytes).map(whole),
        load_us: time_us(LOAD)?.map(whole),
        energy_uj: record.amount("energy_uj")?.or(mj_uj).map(whole),
    })
}

/// A time in microseconds, from the column that names the quantity and its unit.
fn time_us(
    table: &CsvTable<'_>,
    record: &CsvRecord<'_>,
    quantity: &str,
) -> Result<Option<f64>, ImportError> {
    for column in table.columns() {
        if let Some(unit_us) = unit_us(column, quantity)
            && let Some(amount) = record.amount(column)?
        {
            let most = LATENCY_MAX_US as f64 / unit_us;
            // A variant may be resident from the start; a batch takes some time.
            if quantity != LOAD && amount == 0.0 || amount > most {
                let least = if quantity == LOAD {
                    "0 or more"
                } else {
                    "above 0"
                };
                let reason = format!("{amount}, must be {least} and at most {most} (one hour)");
                return Err(record.fault(format!("column `{column}`: {reason}")));
            }
            return Ok(Some(amount * unit_us));
        }
    }
    Ok(None)
}

/// Microseconds per unit of a column of this quantity; `None` for other columns.
fn unit_us(column: &str, quantity: &str) -> Option<f64> {
    match column.strip_prefix(quantity)? {
        "_us" => Some(1.0),
        "_ms" => Some(1e3),
        "_s" => Some(1e6),
        _ => None,
    }
}
