//! Ranges of the fields of a profile, and keys that must be unique.

use std::collections::HashSet;

use crate::schema::{AccuracyCell, LatencyCell, ProfileFile, SlicingCell};

/// Largest distance of a stated ratio from the ratio of the stated latencies.
const TOLERANCE: f64 = 1e-3;

/// A field at fault and the reason.
type Fault = (String, String);

/// A field of a cell at fault and the reason.
type CellFault = (&'static str, String);

// === impl ProfileFile ===

impl ProfileFile {
    /// Checks every cell. Errors are the path of a field, such as `latencies[3].p50_us`, and the
    /// reason.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.check_energy()?;
        let mut models = HashSet::new();
        for (i, cell) in self.models.iter().enumerate() {
            if !models.insert((&cell.kind, &cell.app, &cell.variant)) {
                return Err(measured_twice("models", i));
            }
        }
        let mut exits = HashSet::new();
        for (i, cell) in self.accuracies.iter().enumerate() {
            cell.check().map_err(|fault| at("accuracies", i, fault))?;
            if !exits.insert((&cell.app, &cell.variant, &cell.exit)) {
                return Err(measured_twice("accuracies", i));
            }
        }
        for (i, cell) in self.slicing.iter().enumerate() {
            cell.check().map_err(|fault| at("slicing", i, fault))?;
        }
        let mut latencies = HashSet::new();
        for (i, cell) in self.latencies.iter().enumerate() {
            cell.check().map_err(|fault| at("latencies", i, fault))?;
            if !latencies.insert(cell.key()) {
                return Err(measured_twice("latencies", i));
            }
        }
        Ok(())
    }

    fn check_energy(&self) -> Result<(), Fault> {
        let mut kinds = HashSet::new();
        for (i, cell) in self.energy.iter().enumerate() {
            if !(cell.power_w.is_finite() && cell.power_w >= 0.0) {
                let reason = "must be finite and not negative".to_owned();
                return Err(at("energy", i, ("power_w", reason)));
            }
            if !kinds.insert(&cell.kind) {
                return Err(at("energy", i, ("kind", "is given twice".to_owned())));
            }
        }
        Ok(())
    }
}

fn at(list: &str, position: usize, (field, reason): CellFault) -> Fault {
    (format!("{list}[{position}].{field}"), reason)
}

fn measured_twice(list: &str, position: usize) -> Fault {
    (format!("{list}[{position}]"), "measured twice".to_owned())
}

/// `Err` with the reason unless the field holds.
fn require(holds: bool, field: &'static str, reason: &str) -> Result<(), CellFault> {
    match holds {
        true => Ok(()),
        false => Err((field, reason.to_owned())),
    }
}

// === impl AccuracyCell ===

impl AccuracyCell {
    fn check(&self) -> Result<(), CellFault> {
        let shares = [("accuracy", Some(self.accuracy))]
            .into_iter()
            .chain([("workload_accuracy", self.workload_accuracy)])
            .chain(self.recall.iter().map(|&recall| ("recall", Some(recall))));
        for (field, share) in shares {
            let is_share = share.is_none_or(|share| (0.0..=1.0).contains(&share));
            require(is_share, field, "must be 0 to 1")?;
        }
        let classes = self.confusion.len();
        if self.confusion.iter().any(|row| row.len() != classes) {
            return Err(("confusion", format!("must be {classes} by {classes}")));
        }
        if classes > 0 && self.recall.len() != classes {
            return Err(("recall", format!("needs {classes} numbers")));
        }
        Ok(())
    }
}

// === impl SlicingCell ===

impl SlicingCell {
    fn check(&self) -> Result<(), CellFault> {
        require(self.batch > 0, "batch", "must be at least 1")?;
        require(self.cuts > 0, "cuts", "must be at least 1")?;
        require(self.whole_us > 0, "whole_us", "must be at least 1")?;
        let ratio = self.sliced_us as f64 / self.whole_us as f64;
        let is_ratio = (self.ratio - ratio).abs() <= TOLERANCE;
        require(is_ratio, "ratio", "must be sliced_us / whole_us")
    }
}

// === impl LatencyCell ===

impl LatencyCell {
    fn key(&self) -> (&str, &str, &str, u32, u32, Option<&str>, u32) {
        (
            &self.kind,
            &self.app,
            &self.variant,
            self.from_stage,
            self.to_stage,
            self.exit.as_deref(),
            self.batch,
        )
    }

    fn check(&self) -> Result<(), CellFault> {
        require(self.batch > 0, "batch", "must be at least 1")?;
        let follows = self.from_stage < self.to_stage;
        require(follows, "to_stage", "must follow from_stage")?;
        let ascends = self.p50_us <= self.p95_us;
        require(ascends, "p95_us", "must not be below p50_us")?;
        let ascends = self.p95_us <= self.p99_us;
        require(ascends, "p99_us", "must not be below p95_us")
    }
}
