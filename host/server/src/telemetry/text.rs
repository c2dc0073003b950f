//! The Prometheus text format.

use std::fmt::Write;

/// The value of a series.
pub(super) enum Shown {
    Count(u64),
    Value(f64),
    Histogram {
        /// Upper bounds with the number of values up to each.
        buckets: Vec<(f64, u64)>,
        count: u64,
        sum: f64,
    },
}

/// The lines above the series of a name.
pub(super) fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

/// Labels between their braces.
pub(super) fn labels(labels: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (key, value) in labels {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{key}=\"{}\"", escaped(value));
    }
    text
}

/// The lines of one series.
pub(super) fn series(text: &mut String, name: &str, labels: &str, shown: &Shown) {
    let braced = match labels {
        "" => String::new(),
        labels => format!("{{{labels}}}"),
    };
    let _ = match shown {
        Shown::Count(count) => writeln!(text, "{name}{braced} {count}"),
        Shown::Value(value) => writeln!(text, "{name}{braced} {value}"),
        Shown::Histogram {
            buckets,
            count,
            sum,
        } => {
            let comma = if labels.is_empty() { "" } else { "," };
            for (bound, up_to) in buckets {
                let _ = writeln!(
                    text,
                    "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {up_to}"
                );
            }
            let _ = writeln!(text, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}");
            writeln!(
                text,
                "{name}_sum{braced} {sum}\n{name}_count{braced} {count}"
            )
        }
    };
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}
