//! Numbers of the scoreboard as text.

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

/// Policies with faults, a row per policy and cell.
pub(super) fn faults(data: &ArenaData) -> Vec<Trouble> {
    let cells = data.cells.iter();
    let found = cells.flat_map(|cell| {
        let faulty = cell.results.iter();
        let faulty = faulty.filter(|result| !result.faults.is_empty());
        faulty.map(|result| {
            let kinds = result.faults.iter();
            let kinds = kinds.map(|(kind, count)| format!("{count} {kind}"));
            let kinds = kinds.collect::<Vec<_>>().join(", ");
            let off = match result.taken_off {
                0 => String::new(),
                times => format!("; taken off {times} times, then the fallback serves"),
            };
            let first = result.fault.as_ref();
            let first = first.map_or(String::new(), |reason| format!("; first: {reason}"));
            Trouble {
                policy: result.policy.clone(),
                places: vec![format!("{}/{}", cell.test_bed, cell.workload)],
                reason: format!("{kinds} in {} windows{off}{first}", result.windows),
            }
        })
    });
    found.collect()
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

/// The machine of the measured part.
pub(super) fn machine(data: &ArenaData) -> String {
    let machine = &data.measured.machine;
    format!(
        "{}, {} cores, {}; {:.0} s for the arena",
        machine.cpu, machine.cores, machine.os, data.measured.seconds
    )
}
