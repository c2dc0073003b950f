//! The inputs of the report: command, versions, hashes, catalog, definitions of the metrics.

use std::fmt::Write;

use super::data::PolicyMeta;
use super::view::ReportView;
use crate::text::{brief, escape, number, plural};

/// Digits of a content hash that the page shows.
const HASH_DIGITS: usize = 16;

/// Definitions of the metrics.
const DEFINITIONS: [(&str, &str); 9] = [
    (
        "Accuracy",
        "mean over all answers of the recall of the exit that answered, for the class of the \
         request",
    ),
    (
        "Utility",
        "that accuracy, reduced by the app's penalty for late answers, mean over arrivals; 0 for a \
         request without an answer",
    ),
    (
        "Goodput",
        "answers by their deadlines per second of virtual time",
    ),
    (
        "Violations",
        "arrivals that were not answered by their deadlines, for any reason",
    ),
    (
        "Rejections",
        "arrivals that were rejected: by the policy, because a queue or a lane was full, or because \
         no worker could run them; each is a violation too",
    ),
    ("Latency", "from arrival to answer, over all answers"),
    ("Windows", "windows that the policy decided"),
    (
        "±",
        "half of the 95 % confidence interval of the mean over the seeds, by Student's t",
    ),
    (
        "Differences",
        "policies meet the same requests under the same seed, so they are compared seed by seed: a \
         difference is significant if the 95 % interval of the mean difference does not contain 0",
    ),
];

/// The section.
pub(super) fn html(view: &ReportView<'_>) -> String {
    let meta = &view.data.meta;
    let seeds: Vec<String> = meta.seeds.iter().map(u64::to_string).collect();
    let seconds = match meta.seconds > 0.0 {
        true => format!("{} s of virtual time", brief(meta.seconds)),
        false => String::new(),
    };
    let facts = [
        ("Command", code(&meta.command)),
        ("Version", escape(&meta.version)),
        ("Workload", code(&meta.workload)),
        ("Profile", code(&meta.profile) + &hash(&meta.profile_hash)),
        ("Arrivals during", seconds),
        ("Seeds", escape(&seeds.join(", "))),
        ("Date", escape(&meta.date)),
    ];
    let mut html = String::from("<dl>");
    for (term, text) in facts.iter().filter(|(_, text)| !text.is_empty()) {
        let _ = write!(html, "<dt>{term}</dt><dd>{text}</dd>");
    }
    html + "</dl>\n" + &policies(&meta.policies) + &catalog(view) + &definitions()
}

fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("<code>{}</code>", escape(text)),
    }
}

/// The first digits of a hash; all of them as a tooltip.
fn hash(hash: &str) -> String {
    if hash.is_empty() {
        return String::new();
    }
    let short: String = hash.chars().take(HASH_DIGITS).collect();
    let (short, hash) = (escape(&short), escape(hash));
    format!(" <code title=\"{hash}\">{short}</code>")
}

fn policies(policies: &[PolicyMeta]) -> String {
    if policies.is_empty() {
        return String::new();
    }
    let rows = policies.iter().map(|policy| {
        let component = match policy.hash.as_str() {
            "" => "native".to_owned(),
            component => hash(component),
        };
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{component}</td><td>{}</td></tr>",
            escape(&policy.policy),
            escape(&policy.label),
            code(&policy.settings),
        )
    });
    let rows: String = rows.collect();
    format!(
        "<div class=\"scroll facts\" tabindex=\"0\" role=\"region\" aria-label=\"Policies\"><table>\
         <thead><tr><th scope=\"col\">policy</th><th scope=\"col\">describes itself as</th>\
         <th scope=\"col\">component</th><th scope=\"col\">settings</th></tr></thead>\n\
         <tbody>{rows}</tbody>\n</table></div>\n"
    )
}

fn catalog(view: &ReportView<'_>) -> String {
    let catalog = &view.data.catalog;
    let mut body = String::new();
    for app in &catalog.apps {
        let (name, slo, classes) = (escape(&app.name), brief(app.slo_ms), app.classes);
        let classes = plural(classes, "class", "classes");
        let _ = write!(
            body,
            "<tbody><tr class=\"point\"><th scope=\"rowgroup\" colspan=\"4\">\
             <span>{name}: deadline {slo} ms, {classes}</span></th></tr>"
        );
        let own = catalog.variants.iter();
        for variant in own.filter(|variant| variant.app == app.name) {
            let exits = variant.exits.iter().map(|exit| {
                let (name, percent) = (escape(&exit.name), number(100.0 * exit.accuracy, 1));
                format!("{name} {percent} %")
            });
            let exits: Vec<String> = exits.collect();
            let _ = write!(
                body,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&variant.name),
                exits.join(", "),
                variant.batch_size_max,
                number(variant.memory_bytes as f64 / 1e6, 1),
            );
        }
        body += "</tbody>\n";
    }
    format!(
        "<details><summary>{}, {}, {}</summary>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Catalog\"><table>\
         <caption><span>Variants of each app.</span></caption><thead><tr>\
         <th scope=\"col\">variant</th><th scope=\"col\">exits and their accuracies</th>\
         <th scope=\"col\">largest batch</th><th scope=\"col\">memory, MB</th></tr></thead>\n{body}\
         </table></div></details>\n",
        plural(catalog.apps.len(), "app", "apps"),
        plural(catalog.variants.len(), "variant", "variants"),
        plural(catalog.workers.len(), "worker", "workers"),
    )
}

fn definitions() -> String {
    let rows: String = DEFINITIONS
        .iter()
        .map(|(term, text)| format!("<dt>{term}</dt><dd>{text}</dd>"))
        .collect();
    format!("<details><summary>Definitions of the metrics</summary><dl>{rows}</dl></details>\n")
}
