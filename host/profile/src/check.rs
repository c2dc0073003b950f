//! Ranges of the fields of a profile, and keys that must be unique.

use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;

use crate::schema::{AccuracyCell, LatencyCell, ProfileFile, SlicingCell};

/// Largest distance of a stated ratio from the ratio of the stated latencies.
const TOLERANCE: f64 = 1e-3;

/// The longest latency of a batch, in microseconds: an hour. A larger number is a mistake of the unit
/// or of the program that wrote it, and sums of such numbers overflow.
pub(crate) const LATENCY_MAX_US: u64 = 3_600_000_000;

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
        self.check_apps()?;
        let mut models = HashSet::new();
        for (i, cell) in self.models.iter().enumerate() {
            if !models.insert((&cell.kind, &cell.app, &cell.variant)) {
                return Err(measured_twice("models", i));
            }
            // 0: not measured.
            let range = 0..=LATENCY_MAX_US;
            in_range("load_us", cell.load_us, range).map_err(|fault| at("models", i, fault))?;
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
        let mut lengths = HashSet::new();
        for (i, cell) in self.lengths.iter().enumerate() {
            is_latency("p50_us", cell.p50_us).map_err(|fault| at("lengths", i, fault))?;
            if !lengths.insert((&cell.kind, &cell.app, &cell.variant, cell.length)) {
                return Err(measured_twice("lengths", i));
            }
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

    /// Every row is of an app that `models` has, and those of `apps` if the profile brings its own: rows of
    /// others would be left out without a word.
    fn check_apps(&self) -> Result<(), Fault> {
        let own: BTreeSet<&str> = self.apps.iter().map(|app| app.name.as_str()).collect();
        let measured: BTreeSet<&str> = self.models.iter().map(|cell| cell.app.as_str()).collect();
        if !own.is_empty() {
            let of_models = self.models.iter().map(|cell| &cell.app);
            all_known("models", of_models, "apps", &own)?;
        }
        let accuracies = self.accuracies.iter().map(|cell| &cell.app);
        all_known("accuracies", accuracies, "models", &measured)?;
        let slicing = self.slicing.iter().map(|cell| &cell.app);
        all_known("slicing", slicing, "models", &measured)?;
        let lengths = self.lengths.iter().map(|cell| &cell.app);
        all_known("lengths", lengths, "models", &measured)?;
        let latencies = self.latencies.iter().map(|cell| &cell.app);
        all_known("latencies", latencies, "models", &measured)
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

/// `Err` with the first app of a list that is not one of another list's.
fn all_known<'a>(
    list: &str,
    apps: impl Iterator<Item = &'a String>,
    listed_in: &str,
    known: &BTreeSet<&str>,
) -> Result<(), Fault> {
    for (position, app) in apps.enumerate() {
        if !known.contains(app.as_str()) {
            let known: Vec<&str> = known.iter().copied().collect();
            let known = known.join(", ");
            let reason = format!("`{app}`, must be an app of `{listed_in}`: {known}");
            return Err(at(list, position, ("app", reason)));
        }
    }
    Ok(())
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

/// `Err` with value, range and way out unless the time is in the range.
fn in_range(
    field: &'static str,
    time_us: u64,
    range: RangeInclusive<u64>,
) -> Result<(), CellFault> {
    if range.contains(&time_us) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    let reason = format!(
        "{time_us}, must be {least} to {most} (one hour); measure it again with \
         `switchyard profile`, or correct the import"
    );
    Err((field, reason))
}

/// As [`in_range`], for the latency of a batch, which takes some time.
fn is_latency(field: &'static str, time_us: u64) -> Result<(), CellFault> {
    in_range(field, time_us, 1..=LATENCY_MAX_US)
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
        is_latency("whole_us", self.whole_us)?;
        is_latency("sliced_us", self.sliced_us)?;
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
        let times = [
            ("p50_us", Some(self.p50_us)),
            ("p95_us", Some(self.p95_us)),
            ("p99_us", Some(self.p99_us)),
            ("mean_us", self.mean_us),
        ];
        for (field, time_us) in times {
            time_us.map_or(Ok(()), |time_us| is_latency(field, time_us))?;
        }
        let ascends = self.p50_us <= self.p95_us;
        require(ascends, "p95_us", "must not be below p50_us")?;
        let ascends = self.p95_us <= self.p99_us;
        require(ascends, "p99_us", "must not be below p95_us")
    }
}
