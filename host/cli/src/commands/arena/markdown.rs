//! The scoreboard as Markdown.

use super::cells::{self, COSTS, RANKING, Trouble};
use super::data::{ArenaData, TestBedData};
use super::score;

/// The whole page. The costs, which differ between two runs, come last.
pub(super) fn page(data: &ArenaData) -> String {
    let mut page = format!("# Arena\n\n{}\n{}\n\n", ranking(data), data.rule);
    page += score::AGAINST;
    page += "\n";
    for bed in &data.test_beds {
        page += &utilities(data, bed);
    }
    page += "\n## Workloads\n\n";
    for workload in &data.workloads {
        page += &format!("- `{}`: {}\n", workload.workload, workload.title);
    }
    page += &troubles("Not run", &cells::refusals(data));
    page += &troubles("Faults", &cells::faults(data));
    page + &costs(data)
}

/// The ranking.
pub(super) fn ranking(data: &ArenaData) -> String {
    let mut text = format!("{}.\n\n", cells::counts(data, ", "));
    text += &head(&RANKING);
    for rank in &data.ranking {
        text += &line(cells::ranking(rank));
    }
    text
}

/// A row per policy, a column per workload.
fn utilities(data: &ArenaData, bed: &TestBedData) -> String {
    let own = data.cells.iter();
    let own: Vec<_> = own.filter(|cell| cell.test_bed == bed.test_bed).collect();
    let mut text = format!(
        "\n## {}\n\n{}. Load {} of {:.0} requests per second, {} s, on {}.\n\
         Utility; `*` best, `=` not significantly below it, `!` with faults.\n\n",
        bed.test_bed,
        bed.title,
        bed.load,
        bed.capacity_per_s,
        bed.seconds,
        bed.workers.join(", ")
    );
    let headings = ["policy"]
        .into_iter()
        .chain(own.iter().map(|cell| cell.workload.as_str()));
    text += &head(&headings.collect::<Vec<_>>());
    for rank in &data.ranking {
        let values = own.iter().map(|cell| {
            let mut results = cell.results.iter();
            let result = results.find(|result| result.policy == rank.policy);
            result.map_or("-".to_owned(), |result| cells::utility(cell, result))
        });
        text += &line([rank.policy.clone()].into_iter().chain(values));
    }
    text
}

fn troubles(heading: &str, rows: &[Trouble]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("\n## {heading}\n\n{}", head(&["policy", "where", "reason"]));
    for row in rows {
        text += &line([
            row.policy.clone(),
            row.places.join(", "),
            row.reason.clone(),
        ]);
    }
    text
}

fn costs(data: &ArenaData) -> String {
    let mut text = format!(
        "\n## Cost per window\n\nMeasured, of this machine and this run: {}.\n\n{}",
        cells::machine(data),
        head(&COSTS)
    );
    for row in cells::costs(data) {
        text += &line(row);
    }
    text
}

fn head(headings: &[&str]) -> String {
    let rule = headings.iter().map(|_| "---".to_owned());
    line(headings.iter().map(|&name| name.to_owned())) + &line(rule)
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let cells = cells.into_iter();
    let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}
