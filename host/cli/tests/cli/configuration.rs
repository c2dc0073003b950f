//! docs/configuration.md and the example at the root, checked against the program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use switchyard_server::assembly::PoolPlan;
use switchyard_server::config::{Config, ConfigError};

use super::binary::root;

/// The smallest configuration. Each section ends where `docs` adds a line to it.
const SMALLEST: [(&str, &str); 12] = [
    ("[[app]]", "name = \"heart\"\n"),
    ("[[worker]]", "name = \"cpu-a\"\n"),
    (
        "[[pool]]",
        "name = \"main\"\napps = [\"heart\"]\nworkers = [\"cpu-a\"]\npolicy = \"fcfs\"\n",
    ),
    ("[pool.fault_limit]", ""),
    ("[pool.record]", "file = \"main.rec\"\n"),
    ("[pool.prepare]", "command = [\"make-tables\"]\n"),
    ("[pool.shadow]", "policy = \"candidate\"\n"),
    ("[server]", ""),
    ("[server.traces]", "endpoint = \"http://127.0.0.1:4317\"\n"),
    ("[policies]", ""),
    ("[profile]", ""),
    ("[etcd]", ""),
];

/// One row of a table of the documentation.
struct Row {
    field: String,
    default: String,
    /// Where the default is none.
    example: Option<String>,
}

/// Rows by section.
fn documented() -> BTreeMap<String, Vec<Row>> {
    let text = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let mut sections: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let mut section = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = quoted(heading).map(str::to_owned);
        }
        let cells: Vec<&str> = line.split(" | ").collect();
        let [field, _, default, _] = cells[..] else {
            continue;
        };
        let (default, example) = match default.split_once("; example ") {
            Some((default, example)) => (default, Some(example.to_owned())),
            None => (default, None),
        };
        if let (Some(section), Some(field)) = (&section, quoted(field)) {
            sections.entry(section.clone()).or_default().push(Row {
                field: field.to_owned(),
                default: default.to_owned(),
                example,
            });
        }
    }
    sections
}

/// The text of a cell that is one span of code.
fn quoted(cell: &str) -> Option<&str> {
    let cell = cell.trim_start_matches("| ").trim();
    let inner = cell.strip_prefix('`')?.strip_suffix('`')?;
    (!inner.contains('`')).then_some(inner)
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("test.toml"), Path::new(""))
}

/// The smallest configuration with lines of one section replaced or added.
fn with(section: &str, lines: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, own) in SMALLEST {
        text += &format!("{name}\n");
        let is_here = name == section;
        // A table of its own is not written twice.
        for line in own.lines() {
            let field = line.split(" = ").next().unwrap();
            if !(is_here && lines.iter().any(|(other, _)| *other == field)) {
                text += &format!("{line}\n");
            }
        }
        if is_here {
            lines
                .iter()
                .for_each(|(field, value)| text += &format!("{field} = {value}\n"));
        }
    }
    if lines.iter().any(|(field, _)| *field == "fault_limit") {
        text = text.replace("[pool.fault_limit]\n", "");
    }
    if lines.iter().any(|(field, _)| *field == "record") {
        text = text.replace("[pool.record]\nfile = \"main.rec\"\n", "");
    }
    if lines.iter().any(|(field, _)| *field == "prepare") {
        text = text.replace("[pool.prepare]\ncommand = [\"make-tables\"]\n", "");
    }
    if lines.iter().any(|(field, _)| *field == "traces") {
        let own = "[server.traces]\nendpoint = \"http://127.0.0.1:4317\"\n";
        text = text.replace(own, "");
    }
    if lines.iter().any(|(field, _)| *field == "shadow") {
        text = text.replace("[pool.shadow]\npolicy = \"candidate\"\n", "");
    }
    text
}

/// The fields that serde knows, from its own words about one that it does not.
fn known(section: &str) -> BTreeSet<String> {
    let unknown = [("no_such_field", "1")];
    let error = parse(&with(section, &unknown)).unwrap_err().to_string();
    let (_, expected) = error
        .split_once("unknown field `no_such_field`, expected ")
        .unwrap_or_else(|| panic!("{section}: {error}"));
    let expected = expected.split("; did you mean").next().unwrap();
    expected
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_section_and_field_is_documented_and_nothing_else() {
    let documented = documented();
    let sections: BTreeSet<&str> = SMALLEST.iter().map(|(name, _)| *name).collect();
    let described: BTreeSet<&str> = documented.keys().map(String::as_str).collect();
    assert_eq!(described, sections);
    for (section, rows) in &documented {
        let fields: BTreeSet<String> = rows.iter().map(|row| row.field.clone()).collect();
        assert_eq!(
            fields.len(),
            rows.len(),
            "{section}: a field is there twice"
        );
        assert_eq!(
            fields,
            known(section),
            "{section}: documented, and known to serde"
        );
    }
    let top = parse("no_such_section = 1").unwrap_err().to_string();
    let names = [
        "server", "app", "worker", "pool", "policies", "profile", "etcd",
    ];
    assert_eq!(top.matches('`').count() / 2 - 1, names.len(), "{top}");
    assert!(
        names.iter().all(|name| top.contains(&format!("`{name}`"))),
        "{top}"
    );
}

#[test]
fn documented_defaults_are_the_real_ones() {
    let smallest = parse(&with("", &[])).unwrap();
    let mut checked = 0;
    for (section, rows) in documented() {
        for Row { field, default, .. } in rows {
            if let Some(default) = quoted(&default) {
                let explicit = with(&section, &[(&field, default)]);
                let explicit = parse(&explicit).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(
                    explicit, smallest,
                    "{section} {field}: not {default} by default"
                );
                checked += 1;
            }
        }
    }
    assert!(
        checked > 25,
        "only {checked} defaults were found in the documentation"
    );
}

#[test]
fn fields_documented_as_required_are_required() {
    for (section, rows) in documented() {
        for Row { field, default, .. } in rows {
            // As a comment, the line is gone.
            let text = with(&section, &[]);
            let heading = format!("{section}\n");
            let (before, own) = text.split_once(&heading).unwrap();
            let own = format!("\n{own}").replacen(&format!("\n{field} = "), "\n# ", 1);
            let text = format!("{before}{heading}{own}");
            let missing = parse(&text).is_err_and(|error| {
                error
                    .to_string()
                    .contains(&format!("missing field `{field}`"))
            });
            if default == "required" {
                assert!(missing, "{section} {field} is not required");
            } else if default != "required" {
                assert!(!missing, "{section} {field} is required");
            }
        }
    }
}

/// Fields that one of `[etcd]` needs next to it.
fn next_to(field: &str) -> &'static [(&'static str, &'static str)] {
    const TLS: [(&str, &str); 4] = [
        ("endpoints", "[\"https://127.0.0.1:2379\"]"),
        ("ca", "\"ca.pem\""),
        ("key", "\"etcd.key\""),
        ("certificate", "\"etcd.pem\""),
    ];
    const TLS_OF_KEY: [(&str, &str); 3] = [TLS[0], TLS[1], TLS[3]];
    const ELECTION: [(&str, &str); 2] = [
        ("endpoints", "[\"http://127.0.0.1:2379\"]"),
        ("election", "\"yard/leader\""),
    ];
    match field {
        "election" | "policies" => &ELECTION[..1],
        "advertise" => &ELECTION,
        "ca" => &TLS[..1],
        "certificate" => &TLS[..3],
        "key" => &TLS_OF_KEY,
        _ => &[],
    }
}

#[test]
fn documented_examples_are_read_and_change_something() {
    let smallest = parse(&with("", &[])).unwrap();
    for (section, rows) in documented() {
        for Row {
            field,
            default,
            example,
        } in rows
        {
            let Some(example) = example else { continue };
            let value = quoted(&example).unwrap_or_else(|| panic!("{section} {field}: {example}"));
            let mut lines = vec![(field.as_str(), value)];
            if field == "prior_requests" {
                lines.push(("prior", "\"strong\""));
            }
            if section == "[etcd]" {
                lines.extend(next_to(&field));
            }
            let config = parse(&with(&section, &lines));
            let config = config.unwrap_or_else(|error| panic!("{section} {field}: {error}"));
            assert!(
                default == "required" || config != smallest,
                "{section} {field}: {value} changes nothing"
            );
        }
    }
}

/// Seen where it is to run, since a configuration may be read elsewhere.
#[test]
fn a_core_that_is_not_there_is_named_at_the_start() {
    let cores = |cores| {
        let lines = [("threads", "2"), ("cores", cores)];
        let config = parse(&with("[[worker]]", &lines)).unwrap();
        PoolPlan::all(&config).err().map(|error| error.to_string())
    };
    let error = cores("[0, 5000]").unwrap_or_default();
    let start = "worker[0].cores[1]: 5000, this process may run on ";
    let ours = if cfg!(target_os = "linux") {
        start
    } else {
        "Linux only"
    };
    assert!(error.contains(ours), "{error}");
}

#[test]
fn the_shipped_configuration_fits_the_zoo() {
    let file = root().join("switchyard.toml");
    let config = Config::read(&file).unwrap();
    PoolPlan::all(&config).unwrap();
    let policy = config.pools[0].policy_file(&config.policies.dir);
    assert_eq!(policy, root().join("target/policies/sneakpeek.wasm"));
}

#[test]
fn commented_lines_of_the_example_are_valid() {
    let text = fs::read_to_string(root().join("switchyard.toml")).unwrap();
    let mut used = 0;
    let lines = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(field)
            if field
                .split_once(" = ")
                .is_some_and(|(name, _)| !name.contains(' ')) =>
        {
            used += 1;
            field
        }
        _ => line,
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let config = parse(&text).unwrap();
    assert!(used >= 10, "{used} fields");
    assert!(config.pools[0].settings.is_some());
}
