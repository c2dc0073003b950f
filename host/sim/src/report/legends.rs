//! Legends in HTML: the colours of policies and of answers.

use std::fmt::Write;

use super::view::ReportView;
use crate::plot::inline_marker;
use crate::text::{escape, number};

/// Markers and full names of the policies.
pub(super) fn policies(view: &ReportView<'_>) -> String {
    let items = view.policies.iter().map(|policy| {
        let (marker, name) = (inline_marker(policy.id), escape(policy.name));
        format!("<li>{marker}{name}</li>")
    });
    format!("<ul class=\"legend\">{}</ul>\n", items.collect::<String>())
}

/// Colours and accuracies of all exits, app by app, and then other classes with their names.
pub(super) fn answers(view: &ReportView<'_>, others: &[(&str, &str)]) -> String {
    let mut html = String::new();
    for app in &view.data.catalog.apps {
        let kinds = view.kinds.iter().enumerate();
        let items = kinds
            .filter(|(_, kind)| kind.app == app.name)
            .map(|(at, kind)| {
                let (label, accuracy) = (escape(&kind.label()), number(100.0 * kind.accuracy, 1));
                format!(
                    "<li><i class=\"swatch k{at}\"></i>{label} <small>{accuracy} %</small></li>"
                )
            });
        let (name, items) = (escape(&app.name), items.collect::<String>());
        let _ = writeln!(
            html,
            "<ul class=\"legend\"><li class=\"of\">{name}</li>{items}</ul>"
        );
    }
    let others = others
        .iter()
        .map(|(class, name)| format!("<li><i class=\"swatch {class}\"></i>{name}</li>"));
    match others.collect::<String>().as_str() {
        "" => html,
        others => format!("{html}<ul class=\"legend\">{others}</ul>\n"),
    }
}
