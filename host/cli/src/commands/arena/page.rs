//! The scoreboard as one HTML page that refers to no other file, in a light and a dark theme.

use switchyard_sim::plot::{Chart, DotChart, DotRow, Scale, SeriesId, inline_marker};
use switchyard_sim::report::{Verdict, escape, page_style};

use super::cells::{self, COSTS, RANKING, Trouble};
use super::data::{ArenaData, CellData, RankData, ResultData, TestBedData};
use super::score;

/// Width of the plot, in units.
const WIDTH: f64 = 720.0;

/// The shade of a utility: the part of the best in its cell.
const STYLE: &str = "\
td.share{background:color-mix(in srgb,var(--accent) calc(var(--share)*45%),transparent)}\
td.left,th.left{text-align:left;white-space:normal}\
.entrant{font-weight:700}";

/// The page.
pub(super) fn html(data: &ArenaData) -> String {
    let counts = cells::counts(data, " · ");
    let facts = format!("{counts} · switchyard {}", escape(&data.version));
    let beds: String = data
        .test_beds
        .iter()
        .map(|bed| utilities(data, bed))
        .collect();
    let troubles =
        troubles("Not run", &cells::refusals(data)) + &troubles("Faults", &cells::faults(data));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Arena</title>\n\
         <style>\n{style}\n{STYLE}\n</style>\n</head>\n<body>\n\
         <header><p class=\"eyebrow\">Switchyard</p><h1>Arena</h1><p class=\"facts\">{facts}</p>\
         </header>\n<main>\n{}{beds}{}{troubles}{}</main>\n</body>\n</html>\n",
        ranking(data),
        workloads(data),
        costs(data),
        style = page_style(),
    )
}

fn ranking(data: &ArenaData) -> String {
    let rows = (0..).map(SeriesId).zip(&data.ranking);
    let dots = rows.map(|(id, rank)| DotRow {
        id,
        name: rank.policy.clone(),
        value: rank.score.mean,
        half_width: rank.score.half_width,
        shown: format!("{:.1}", rank.score.mean),
        tip: format!("{}: {}", rank.policy, cells::estimate(&rank.score, 1.0, 2)),
    });
    let chart = DotChart {
        title: "score, 100 is the best in every cell".to_owned(),
        x: Scale::linear(0.0, 100.0),
        rows: dots.collect(),
    };
    let svg = chart.drawing(WIDTH).inline(&chart.in_words());
    let rows = data.ranking.iter().map(|rank| {
        let class = match rank.against.as_ref().map(|own| own.verdict) {
            Some(Verdict::Better) => " class=\"better\"",
            Some(Verdict::Worse) => " class=\"worse\"",
            _ => "",
        };
        let cells = cells::ranking(rank);
        let cells = RANKING.iter().zip(&cells).enumerate().skip(2);
        let cells = cells.map(|(at, (_, cell))| match at {
            3 => format!("<td{class}>{}</td>", escape(cell)),
            _ => format!("<td>{}</td>", escape(cell)),
        });
        format!("{}{}</tr>", head(data, rank), cells.collect::<String>())
    });
    let headings = RANKING.iter().skip(1).copied();
    let table = table(headings, rows.collect());
    section(
        "Scoreboard",
        &format!(
            "<figure class=\"wide\">{svg}</figure>{table}<p class=\"note\">{}</p>\
             <p class=\"note\">{}</p>",
            escape(&data.rule),
            escape(score::AGAINST)
        ),
    )
}

/// The first cell of a policy's row, with its marker and place.
fn head(data: &ArenaData, rank: &RankData) -> String {
    let at = data
        .ranking
        .iter()
        .position(|other| other.policy == rank.policy);
    let class = if rank.entrant {
        " class=\"entrant\""
    } else {
        ""
    };
    format!(
        "<tr><th scope=\"row\"{class}>{}{}. {}</th>",
        inline_marker(SeriesId(at.unwrap_or_default())),
        rank.place,
        escape(&rank.policy)
    )
}

fn utilities(data: &ArenaData, bed: &TestBedData) -> String {
    let own = data.cells.iter();
    let own: Vec<&CellData> = own.filter(|cell| cell.test_bed == bed.test_bed).collect();
    let rows = data.ranking.iter().map(|rank| {
        let values = own.iter().map(|cell| {
            let mut results = cell.results.iter();
            let result = results.find(|result| result.policy == rank.policy);
            result.map_or("<td>–</td>".to_owned(), |result| utility(cell, result))
        });
        format!("{}{}</tr>", head(data, rank), values.collect::<String>())
    });
    let headings = ["policy"]
        .into_iter()
        .chain(own.iter().map(|cell| cell.workload.as_str()));
    let note = format!(
        "{}. Load {} of {:.0} requests per second, {} s. Workers: {}. Apps: {}. Utility; * best, = not \
         significantly below it, ! with faults.",
        bed.title,
        bed.load,
        bed.capacity_per_s,
        bed.seconds,
        bed.workers.join(", "),
        bed.apps.join(", ")
    );
    let table = table(headings, rows.collect());
    let body = format!("<p class=\"note\">{}</p>{table}", escape(&note));
    section(&format!("Test bed {}", bed.test_bed), &body)
}

fn utility(cell: &CellData, result: &ResultData) -> String {
    let against = result.against.as_ref();
    let against = against.map_or(String::new(), |own| cells::against(own, 3));
    let tip = match (&result.refused, &result.violation_ratio) {
        (Some(reason), _) => reason.clone(),
        (None, Some(late)) => format!("{against}; late {} %", cells::estimate(late, 100.0, 2)),
        (None, None) => against,
    };
    format!(
        "<td class=\"share\" style=\"--share:{:.3}\" title=\"{}\">{}</td>",
        result.relative,
        escape(&tip),
        escape(&cells::utility(cell, result))
    )
}

fn workloads(data: &ArenaData) -> String {
    let items = data.workloads.iter().map(|own| {
        let (name, title) = (escape(&own.workload), escape(&own.title));
        format!("<dt><code>{name}</code></dt><dd>{title}</dd>")
    });
    section(
        "Workloads",
        &format!("<dl>{}</dl>", items.collect::<String>()),
    )
}

fn troubles(heading: &str, rows: &[Trouble]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows = rows.iter().map(|row| {
        format!(
            "<tr><th scope=\"row\">{}</th><td class=\"left\">{}</td><td class=\"left\">{}</td></tr>",
            escape(&row.policy),
            escape(&row.places.join(", ")),
            escape(&row.reason)
        )
    });
    section(
        heading,
        &table(["policy", "where", "reason"].into_iter(), rows.collect()),
    )
}

fn costs(data: &ArenaData) -> String {
    let rows = cells::costs(data).map(|row| {
        let [policy, rest @ ..] = row;
        let rest = rest.iter().map(|cell| format!("<td>{}</td>", escape(cell)));
        let policy = escape(&policy);
        format!(
            "<tr><th scope=\"row\">{policy}</th>{}</tr>",
            rest.collect::<String>()
        )
    });
    let note = format!(
        "Measured, of this machine and this run: {}. Command: {}",
        cells::machine(data),
        data.measured.command
    );
    let table = table(COSTS.iter().copied(), rows.collect());
    section(
        "Cost per window",
        &format!("<p class=\"note\">{}</p>{table}", escape(&note)),
    )
}

fn section(heading: &str, body: &str) -> String {
    format!("<section><h2>{}</h2>\n{body}</section>\n", escape(heading))
}

fn table<'a>(headings: impl Iterator<Item = &'a str>, rows: Vec<String>) -> String {
    let headings = headings.map(|name| format!("<th scope=\"col\">{}</th>", escape(name)));
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr>{}</tr></thead>\n<tbody>{}</tbody>\
         </table></div>\n",
        headings.collect::<String>(),
        rows.concat()
    )
}
