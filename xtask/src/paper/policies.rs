//! Policies side by side over several figures: a table as Markdown, and a plot of it as SVG.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::figure::{Better, Figure};
use super::page::escaped;
use super::results::Results;
use super::sample::Sample;
use super::show;

/// The files' name without its extension.
const NAME: &str = "policies";

const STYLE: &str = "svg{color-scheme:light dark;font:11px system-ui,sans-serif}text{fill:#333}\
.line{stroke:#8886}.dot{fill:#2a78d6}.half{stroke:#2a78d6}.best{fill:#d9480f;stroke:#d9480f}\
@media (prefers-color-scheme:dark){text{fill:#ccc}}";

/// Pixels: names of policies, a column, its margins, a row, the headings.
const NAMES: f64 = 110.0;
const COLUMN: f64 = 120.0;
const MARGIN: f64 = 12.0;
const ROW: f64 = 20.0;
const HEAD: f64 = 44.0;

/// Figures add their columns; policies are in the order in which figures name them.
#[derive(Debug, Default)]
pub(crate) struct PolicyTable {
    columns: Vec<Measured>,
    policies: Vec<String>,
}

/// A column with its values by policy; never empty.
#[derive(Debug)]
struct Measured {
    says: String,
    better: Better,
    by_policy: BTreeMap<String, Sample>,
}

// === impl PolicyTable ===

impl PolicyTable {
    /// Adds the columns of a figure. A policy without the metric, such as an accuracy of no answers, has no cell.
    ///
    /// # Errors
    /// The results lack a column's point, or no policy has its metric.
    pub(crate) fn add(&mut self, figure: &Figure, results: &Results) -> Result<()> {
        for column in &figure.columns {
            let (mut by_policy, mut lack) = (BTreeMap::new(), None);
            for (point, policy, _) in results.rows().filter(|row| row.0 == column.point) {
                let sample = match results.sample(point, policy, &column.metric) {
                    Ok(sample) => sample,
                    Err(error) => {
                        lack = Some(error);
                        continue;
                    }
                };
                if !self.policies.iter().any(|known| known == policy) {
                    self.policies.push(policy.to_owned());
                }
                by_policy.insert(policy.to_owned(), sample);
            }
            if let Some(error) = lack.filter(|_| by_policy.is_empty()) {
                bail!("column `{}`: {error}", column.says);
            }
            if by_policy.is_empty() {
                let points = results.points().collect::<Vec<_>>().join(", ");
                bail!(
                    "column `{}`: point `{}`, must be one of: {points}",
                    column.says,
                    column.point
                );
            }
            self.columns.push(Measured {
                says: column.says.clone(),
                better: column.better,
                by_policy,
            });
        }
        Ok(())
    }

    /// Writes both files into a folder, if any figure had columns.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        if self.columns.is_empty() {
            return Ok(());
        }
        for (extension, text) in [("md", self.markdown()), ("svg", self.svg())] {
            let file = folder.join(NAME).with_extension(extension);
            fs::write(&file, text).with_context(|| file.display().to_string())?;
            println!("{}", file.display());
        }
        Ok(())
    }

    fn markdown(&self) -> String {
        let mut page = String::from("| policy |");
        // Writing to a string cannot fail.
        for column in &self.columns {
            let _ = write!(page, " {} |", column.says);
        }
        page += "\n|---|";
        page += &"---:|".repeat(self.columns.len());
        for policy in &self.policies {
            let _ = write!(page, "\n| {policy} |");
            for column in &self.columns {
                let cell = column.by_policy.get(policy).map(|sample| {
                    let cell = show::interval(sample.mean, sample.half_width());
                    match column.is_best(sample) {
                        true => format!("**{cell}**"),
                        false => cell,
                    }
                });
                let _ = write!(page, " {} |", cell.unwrap_or_default());
            }
        }
        page + "\n"
    }

    /// A row of dots per policy; in each column better values are to the right.
    fn svg(&self) -> String {
        let width = NAMES + COLUMN * self.columns.len() as f64;
        let height = HEAD + ROW * (self.policies.len() as f64 + 1.0);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\
             <title>Policies over workloads, better to the right</title><style>{STYLE}</style>\n"
        );
        for (at, policy) in self.policies.iter().enumerate() {
            let y = HEAD + ROW * (at as f64 + 0.5);
            let (name, base) = (escaped(policy), y + 4.0);
            let _ = writeln!(svg, "<text x=\"0\" y=\"{base}\">{name}</text>");
            let _ = writeln!(
                svg,
                "<path class=\"line\" d=\"M{NAMES} {y}H{width}\" fill=\"none\"/>"
            );
        }
        for (at, column) in self.columns.iter().enumerate() {
            let left = NAMES + COLUMN * at as f64 + MARGIN;
            svg += &column.heading(left, HEAD + ROW * (self.policies.len() as f64 + 0.7));
            for (at, policy) in self.policies.iter().enumerate() {
                let y = HEAD + ROW * (at as f64 + 0.5);
                if let Some(sample) = column.by_policy.get(policy) {
                    svg += &column.dot(policy, sample, left, y);
                }
            }
        }
        svg + "</svg>\n"
    }
}

// === impl Measured ===

impl Measured {
    /// The worst and the best mean.
    fn ends(&self) -> (f64, f64) {
        let means = || self.by_policy.values().map(|sample| sample.mean);
        let (least, most) = (
            means().fold(f64::INFINITY, f64::min),
            means().fold(f64::NEG_INFINITY, f64::max),
        );
        match self.better {
            Better::Higher => (least, most),
            Better::Lower => (most, least),
        }
    }

    fn is_best(&self, sample: &Sample) -> bool {
        sample.mean == self.ends().1
    }

    /// Pixels of a value in a column that begins at `left`.
    fn x(&self, value: f64, left: f64) -> f64 {
        let (worst, best) = self.ends();
        let share = match worst == best {
            true => 1.0,
            false => (value - worst) / (best - worst),
        };
        left + share.clamp(0.0, 1.0) * (COLUMN - 2.0 * MARGIN)
    }

    /// Words before and after the colon above, both ends below.
    fn heading(&self, left: f64, foot: f64) -> String {
        let says = escaped(&self.says);
        let (workload, metric) = says.split_once(": ").unwrap_or((&says, ""));
        let right = left + COLUMN - 2.0 * MARGIN;
        let (worst, best) = self.ends();
        let [worst, best] = [worst, best].map(|value| show::interval(value, None));
        format!(
            "<text x=\"{left}\" y=\"14\">{workload}</text><text x=\"{left}\" y=\"30\">{metric}</text>\
             <text x=\"{left}\" y=\"{foot}\">{worst}</text>\
             <text x=\"{right}\" y=\"{foot}\" text-anchor=\"end\">{best}</text>\n"
        )
    }

    fn dot(&self, policy: &str, sample: &Sample, left: f64, y: f64) -> String {
        let half = sample.half_width().unwrap_or(0.0);
        let [from, at, to] = [-half, 0.0, half].map(|by| self.x(sample.mean + by, left));
        let best = if self.is_best(sample) { " best" } else { "" };
        let value = show::interval(sample.mean, sample.half_width());
        let policy = escaped(policy);
        format!(
            "<path class=\"half{best}\" d=\"M{from:.1} {y}H{to:.1}\"/>\
             <circle class=\"dot{best}\" cx=\"{at:.1}\" cy=\"{y}\" r=\"4\"><title>{policy}: {value}</title></circle>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: &str = r#"{"runs": [
        {"point": "load=1", "policy": "a", "estimates": {"late": {"mean": 0.5, "half_width": null}}},
        {"point": "load=1", "policy": "b", "estimates": {"late": {"mean": 0.1, "half_width": null}}},
        {"point": "load=1", "policy": "c", "estimates": {"other": {"mean": 0.1, "half_width": null}}},
        {"point": "load=2", "policy": "a", "estimates": {"late": {"mean": 0.9, "half_width": null}}}
    ]}"#;

    fn table(point: &str, metric: &str) -> Result<PolicyTable> {
        let text = format!(
            "title = \"t\"\nsetup = \"s\"\n[curves]\nby = \"slots\"\nat = [1]\nof = {{ a = [\"a.csv\"] }}\n[[column]]\n\
             says = \"X: late\"\nmetric = \"{metric}\"\npoint = \"{point}\"\nbetter = \"lower\""
        );
        let figure = Figure::parse("x/fig1", Path::new("fig1.toml"), &text)?;
        let mut table = PolicyTable::default();
        table.add(&figure, &Results::parse(RUNS)?)?;
        Ok(table)
    }

    #[test]
    fn the_best_of_a_column_is_marked_and_stands_to_the_right() {
        let table = table("load=1", "late").unwrap();
        let expected = "| policy | X: late |\n|---|---:|\n| a | 0.500 |\n| b | **0.100** |\n";
        assert_eq!(table.markdown(), expected);
        let (left, right) = (NAMES + MARGIN, NAMES + COLUMN - MARGIN);
        let svg = table.svg();
        assert!(
            svg.contains(&format!("class=\"dot\" cx=\"{left:.1}\"")),
            "{svg}"
        );
        assert!(
            svg.contains(&format!("class=\"dot best\" cx=\"{right:.1}\"")),
            "{svg}"
        );
    }

    #[test]
    fn a_point_or_metric_that_no_run_has_is_refused() {
        for (point, metric, expected) in [
            ("load=3", "late", "load=1, load=2"),
            ("load=1", "lateness", "no metric `lateness`"),
        ] {
            let error = format!("{:#}", table(point, metric).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
