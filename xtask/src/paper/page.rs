//! All claims on one page, as Markdown and as HTML: published, ours with its interval, the relative error,
//! the verdict.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::claim::Ground;
use super::show;
use super::verdict::Verdict;

/// The page's name without its extension.
const NAME: &str = "claims";

const HEADINGS: [&str; 7] = [
    "figure",
    "claim",
    "published",
    "bound",
    "ours",
    "relative error",
    "verdict",
];

const STYLE: &str = "body{font:14px/1.4 system-ui,sans-serif;margin:2rem;color-scheme:light dark}\
table{border-collapse:collapse}th,td{text-align:left;vertical-align:top;padding:.2rem .6rem;\
border-bottom:1px solid #8884}tr.departs{background:#f802}";

/// Rows of the page.
#[derive(Debug, Default)]
pub(crate) struct ClaimPage {
    rows: Vec<ClaimRow>,
    counts: BTreeMap<Ground, usize>,
    departs: usize,
    /// Departures from bounds that no paper published.
    missed: usize,
}

#[derive(Debug)]
struct ClaimRow {
    cells: [String; HEADINGS.len()],
    departs: bool,
}

// === impl ClaimPage ===

impl ClaimPage {
    /// Adds the claims of a figure.
    pub(crate) fn add(&mut self, figure: &str, verdicts: &[Verdict<'_>]) {
        for verdict in verdicts {
            let (claim, measured) = (verdict.claim, &verdict.measured);
            *self.counts.entry(claim.ground()).or_default() += 1;
            match (verdict.holds, claim.ground()) {
                (true, _) => {}
                (false, Ground::Measured) => self.missed += 1,
                (false, _) => self.departs += 1,
            }
            let error = claim.value.filter(|&value| value != 0.0);
            let error = error.map(|value| 100.0 * (measured.mean / value - 1.0));
            let reason = claim.departs.as_deref().unwrap_or("without a reason");
            let cells = [
                figure.to_owned(),
                claim.says.clone(),
                claim.published.clone().unwrap_or_default(),
                show::bound(claim.bound),
                show::interval(measured.mean, measured.half_width()),
                error.map_or(String::new(), |error| format!("{error:+.1} %")),
                match verdict.holds {
                    true => match &claim.fitted {
                        None => "holds".to_owned(),
                        Some(parameter) => format!("fitted: {parameter}"),
                    },
                    false => format!("departs: {reason}"),
                },
            ];
            self.rows.push(ClaimRow {
                cells,
                departs: !verdict.holds,
            });
        }
    }

    /// The claims by the ground of their bounds.
    pub(crate) fn summary(&self) -> String {
        let of = |ground| self.counts.get(&ground).copied().unwrap_or_default();
        format!(
            "{} claims: {} of published numbers, {} of published words, {} fitted to published values, {} \
             measured here only; {} depart from a paper, {} from a bound of our own",
            self.rows.len(),
            of(Ground::Number),
            of(Ground::Words),
            of(Ground::Fitted),
            of(Ground::Measured),
            self.departs,
            self.missed,
        )
    }

    /// Writes both files into a folder.
    ///
    /// # Errors
    /// The folder cannot be made or a file cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        for (extension, text) in [("md", self.markdown()), ("html", self.html())] {
            let file = folder.join(NAME).with_extension(extension);
            fs::write(&file, text).with_context(|| file.display().to_string())?;
            println!("{}", file.display());
        }
        Ok(())
    }

    fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells = cells
                .iter()
                .map(|cell| cell.replace('|', "\\|").replace('\n', " "));
            format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
        };
        let mut page = format!("# Claims\n\n{}.\n\n", self.summary());
        page += &line(&HEADINGS.map(str::to_owned));
        page += &line(&HEADINGS.map(|_| "---".to_owned()));
        page.extend(self.rows.iter().map(|row| line(&row.cells)));
        page
    }

    fn html(&self) -> String {
        let mut page = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Claims</title>\
             <style>{STYLE}</style><h1>Claims</h1><p>{}.</p><table><thead><tr>",
            self.summary()
        );
        // Writing to a string cannot fail.
        for heading in HEADINGS {
            let _ = write!(page, "<th>{heading}</th>");
        }
        page += "</tr></thead><tbody>\n";
        for row in &self.rows {
            page += match row.departs {
                true => "<tr class=\"departs\">",
                false => "<tr>",
            };
            for cell in &row.cells {
                let _ = write!(page, "<td>{}</td>", escaped(cell));
            }
            page += "</tr>\n";
        }
        page + "</tbody></table></html>\n"
    }
}

/// For HTML and SVG.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::claim::{Bound, Claim};
    use super::super::sample::Sample;
    use super::*;

    fn claim(published: Option<&str>, value: Option<f64>) -> Claim {
        Claim {
            says: "A < B".to_owned(),
            published: published.map(str::to_owned),
            value,
            measure: "utility(a)".parse().unwrap(),
            bound: Bound::AtLeast(2.0),
            fitted: None,
            departs: Some("because".to_owned()),
        }
    }

    #[test]
    fn a_page_counts_the_grounds_of_bounds_apart() {
        let fitted = Claim {
            fitted: Some("load".to_owned()),
            ..claim(Some("2x"), Some(2.0))
        };
        let claims = [
            claim(Some("2x"), Some(2.0)),
            claim(Some("higher"), None),
            claim(None, None),
            fitted,
        ];
        let verdict = |(claim, mean): (_, f64)| Verdict {
            claim,
            measured: Sample::constant(mean),
            holds: mean >= 2.0,
        };
        let verdicts: Vec<Verdict<'_>> = claims
            .iter()
            .zip([2.5, 2.0, 1.0, 2.0])
            .map(verdict)
            .collect();
        let mut page = ClaimPage::default();
        page.add("mael/fig07", &verdicts);
        let summary = "4 claims: 1 of published numbers, 1 of published words, 1 fitted to published \
                       values, 1 measured here only; 0 depart from a paper, 1 from a bound of our own";
        assert_eq!(page.summary(), summary);
        let markdown = page.markdown();
        assert!(
            markdown.contains("| A < B | 2x | >= 2 | 2.500 | +25.0 % | holds |"),
            "{markdown}"
        );
        assert!(markdown.contains("departs: because"), "{markdown}");
        assert!(markdown.contains("fitted: load"), "{markdown}");
        let html = page.html();
        assert!(
            html.contains("<td>A &lt; B</td>") && html.contains("class=\"departs\""),
            "{html}"
        );
    }
}
