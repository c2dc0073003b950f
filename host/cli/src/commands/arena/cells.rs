//! Numbers of the scoreboard as text.

use std::collections::BTreeMap;

use switchyard_sim::metrics::Estimate;
use switchyard_sim::report::Verdict;

use super::data::{AgainstData, ArenaData, CellData, RankData, ResultData};

/// Headings of a ranking.
pub(super) const RANKING: [&str; 8] = [
    "place",
    "policy",
    "score",
    "difference from the best other shipped policy",
    "late %",
    "accuracy %",
    "cells",
    "faults",
];

/// Headings of window costs.
pub(super) const COSTS: [&str; 6] = [
    "policy", "test bed", "windows", "mean us", "p50 us", "p99 us",
];

/// A policy without a result, or with faults, for one reason.
pub(super) struct Trouble {
    pub(super) policy: String,
    /// The test beds, or the cells.
    pub(super) places: Vec<String>,
    pub(super) reason: String,
}

/// The row of a policy, under [`RANKING`].
pub(super) fn ranking(rank: &RankData) -> [String; RANKING.len()] {
    let percent =
        |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1}", 100.0 * share));
    [
        rank.place.to_string(),
        match rank.entrant {
            true => format!("{} (entrant)", rank.policy),
            false => rank.policy.clone(),
        },
        estimate(&rank.score, 1.0, 2),
        rank.against
            .as_ref()
            .map_or("-".to_owned(), |own| against(own, 2)),
        percent(rank.violation_ratio),
        percent(rank.accuracy),
        format!("{}/{}", rank.cells_run, rank.cells),
        rank.faults.to_string(),
    ]
}

/// `0.912 ± 0.004`
pub(super) fn estimate(of: &Estimate, factor: f64, decimals: usize) -> String {
    let mean = of.mean * factor;
    match of.half_width {
        Some(half) => format!("{mean:.decimals$} ± {:.decimals$}", half * factor),
        None => format!("{mean:.decimals$}"),
    }
}

/// `+0.45 ± 0.10 from fcfs, better`
pub(super) fn against(own: &AgainstData, decimals: usize) -> String {
    let difference = estimate(&own.difference, 1.0, decimals);
    let sign = if own.difference.mean > 0.0 { "+" } else { "" };
    let verdict = own.verdict.label();
    format!("{sign}{difference} from {}, {verdict}", own.baseline)
}

/// A utility, with `*` for the best of its cell, `=` for one that does not differ significantly from
/// it, and `!` after faults.
pub(super) fn utility(cell: &CellData, result: &ResultData) -> String {
    let Some(utility) = &result.utility else {
        return "not run".to_owned();
    };
    let is_best = cell.best.as_ref() == Some(&result.policy);
    let ties = |own: &AgainstData| {
        own.verdict == Verdict::Noise && cell.best.as_ref() == Some(&own.baseline)
    };
    let mark = match result.against.as_ref().is_some_and(ties) {
        _ if is_best => " *",
        true => " =",
        false => "",
    };
    let faulty = if result.faults.is_empty() { "" } else { " !" };
    format!("{}{mark}{faulty}", estimate(utility, 1.0, 3))
}

/// Policies without a result, with the reason: one row per policy and reason.
pub(super) fn refusals(data: &ArenaData) -> Vec<Trouble> {
    let mut found: Vec<Trouble> = Vec::new();
    for cell in &data.cells {
        if let Some(reason) = &cell.refused {
            let place = format!("{}/{}", cell.test_bed, cell.workload);
            add(&mut found, "every policy", &place, reason);
            continue;
        }
        for result in &cell.results {
            if let Some(reason) = &result.refused {
                add(&mut found, &result.policy, &cell.test_bed, reason);
            }
        }
    }
    found
}

/// Policies with faults, a row per policy and first reason.
pub(super) fn faults(data: &ArenaData) -> Vec<Trouble> {
    let mut found: Vec<(&ResultData, Trouble, FaultSums)> = Vec::new();
    for cell in &data.cells {
        let faulty = cell.results.iter();
        for result in faulty.filter(|result| !result.faults.is_empty()) {
            let place = format!("{}/{}", cell.test_bed, cell.workload);
            let known = found
                .iter_mut()
                .find(|(of, ..)| of.policy == result.policy && of.fault == result.fault);
            match known {
                Some((_, row, sums)) => {
                    row.places.push(place);
                    sums.add(result);
                }
                None => {
                    let mut sums = FaultSums::default();
                    sums.add(result);
                    let row = Trouble {
                        policy: result.policy.clone(),
                        places: vec![place],
                        reason: String::new(),
                    };
                    found.push((result, row, sums));
                }
            }
        }
    }
    let rows = found.into_iter().map(|(of, row, sums)| Trouble {
        reason: sums.in_words(of.fault.as_deref()),
        ..row
    });
    rows.collect()
}

/// Faults of one policy in several cells.
#[derive(Default)]
struct FaultSums {
    kinds: BTreeMap<String, u64>,
    windows: u64,
    taken_off: u64,
}

// === impl FaultSums ===

impl FaultSums {
    fn add(&mut self, result: &ResultData) {
        for (kind, count) in &result.faults {
            *self.kinds.entry(kind.clone()).or_default() += count;
        }
        self.windows += result.windows;
        self.taken_off += result.taken_off;
    }

    fn in_words(&self, first: Option<&str>) -> String {
        let kinds = self.kinds.iter();
        let kinds = kinds.map(|(kind, count)| format!("{count} {kind}"));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let off = match self.taken_off {
            0 => String::new(),
            times => format!("; taken off {times} times, then the fallback serves"),
        };
        let first = first.map_or(String::new(), |reason| format!("; first: {reason}"));
        format!("{kinds} in {} windows{off}{first}", self.windows)
    }
}

fn add(found: &mut Vec<Trouble>, policy: &str, place: &str, reason: &str) {
    let known = found
        .iter_mut()
        .find(|row| row.policy == policy && row.reason == reason);
    match known {
        Some(row) if row.places.iter().any(|known| known == place) => {}
        Some(row) => row.places.push(place.to_owned()),
        None => found.push(Trouble {
            policy: policy.to_owned(),
            places: vec![place.to_owned()],
            reason: reason.to_owned(),
        }),
    }
}

/// The rows of window costs, under [`COSTS`].
pub(super) fn costs(data: &ArenaData) -> impl Iterator<Item = [String; COSTS.len()]> + '_ {
    data.measured.windows.iter().map(|own| {
        let us = |us: f64| format!("{us:.1}");
        let times = &own.times;
        [
            own.policy.clone(),
            own.test_bed.clone(),
            times.windows.to_string(),
            us(times.mean_us),
            us(times.p50_us),
            us(times.p99_us),
        ]
    })
}

/// `2 policies, 6 workloads`, joined by `separator`.
pub(super) fn counts(data: &ArenaData, separator: &str) -> String {
    let counts = [
        (data.policies.len(), "policy", "policies"),
        (data.workloads.len(), "workload", "workloads"),
        (data.test_beds.len(), "test bed", "test beds"),
        (data.seeds.len(), "seed", "seeds"),
    ];
    let counts = counts.map(|(count, one, many)| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    });
    counts.join(separator)
}

/// The machine of the measured part.
pub(super) fn machine(data: &ArenaData) -> String {
    let machine = &data.measured.machine;
    format!(
        "{}, {} cores, {}; {:.0} s for the arena",
        machine.cpu, machine.cores, machine.os, data.measured.seconds
    )
}
