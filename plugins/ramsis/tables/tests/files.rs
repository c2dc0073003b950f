//! Files are read as written; damaged files are refused with the field.

#![allow(clippy::unwrap_used)]

use ramsis_tables::{
    Action, Arrivals, Balancing, Batching, FORMAT, INDEX_FILE, Objective, Reason, Set, Table,
    TableEntry, TablesError,
};

const FILE: &str = "load-200.tbl";

fn entry(load_rps: f64) -> TableEntry {
    TableEntry {
        load_rps,
        file: format!("load-{load_rps}.tbl"),
        hash: "0123456789abcdef".repeat(4),
        expected_accuracy: 0.75,
        expected_violation_rate: 0.002,
        states: 14,
        seconds: 0.25,
    }
}

fn set() -> Set {
    Set {
        format: FORMAT,
        app: None,
        variants: vec!["small".to_owned(), "large".to_owned()],
        kind: "cpu".to_owned(),
        workers: 60,
        slo_us: 150_000,
        percentile: "p95".to_owned(),
        queue_max: 3,
        slack_us: vec![0, 50_000, 100_000, 150_000],
        balancing: Balancing::RoundRobin,
        objective: Objective::Query,
        batching: Batching::Variable,
        arrivals: Arrivals::Gamma { shape: 2.0 },
        profile: "f".repeat(64),
        tables: vec![entry(200.0), entry(400.5)],
    }
}

/// The whole queue; the large variant from a slack of 100 ms on.
fn actions(set: &Set) -> Box<[Action]> {
    let slacks = set.slack_us.len();
    let action = |a: usize| Action {
        variant: u8::from(a % slacks >= 2),
        batch: (a / slacks + 1).min(3) as u8,
    };
    (0..set.actions()).map(action).collect()
}

fn table(set: &Set) -> Table {
    Table::new(&set.tables[0], set, actions(set)).unwrap()
}

fn bytes() -> Vec<u8> {
    let set = set();
    table(&set).to_bytes(&set.tables[0], &set)
}

fn refused(bytes: &[u8]) -> TablesError {
    let error = Table::parse(FILE, bytes, &set()).unwrap_err();
    assert_eq!(error.file, FILE);
    error
}

#[test]
fn a_set_is_read_as_it_was_written() {
    let set = set();
    let json = set.to_json().unwrap();
    assert_eq!(Set::parse(&json), Ok(set.clone()));
    let read = Table::parse(FILE, &bytes(), &set).unwrap();
    assert_eq!(read, table(&set));
    assert!((read.load_rps() - 200.0).abs() < 1e-9);
}

#[test]
fn the_action_is_that_of_the_state_rounded_down() {
    let table = table(&set());
    let action = |queued, slack_us| {
        let Action { variant, batch } = table.action(queued, slack_us);
        (variant, batch)
    };
    assert_eq!(action(0, 1), (0, 0));
    assert_eq!(action(1, 99_999), (0, 1));
    assert_eq!(action(1, 100_000), (1, 1));
    assert_eq!(action(3, 400_000), (1, 3));
    assert_eq!(action(3, -5), (0, 3));
    assert_eq!(action(4, 150_000), (0, 3));
    assert_eq!(action(u32::MAX, i64::MAX), (0, 3));
}

#[test]
fn the_lowest_covering_table_is_used_otherwise_the_highest() {
    let set = set();
    let covering = [0.0, 200.0, 200.1, 400.5, 401.0, f64::INFINITY].map(|load| set.covering(load));
    assert_eq!(covering, [0, 0, 1, 1, 1, 1]);
    assert!(set.covers(400.5) && !set.covers(400.6));
}

#[test]
fn an_index_field_out_of_range_is_named() {
    let json = set().to_json().unwrap();
    let cases = [
        ("\"format\": 1", "\"format\": 2", "format"),
        ("\"workers\": 60", "\"workers\": 0", "workers"),
        ("\"workers\": 60", "\"workers\": \"many\"", "workers"),
        ("\"slo_us\": 150000", "\"slo_us\": 140000", "slack_us"),
        ("\"queue_max\": 3", "\"queue_max\": 256", "queue_max"),
        ("    50000,", "    0,", "slack_us"),
        ("    0,\n", "", "slack_us"),
        ("\"shape\": 2.0", "\"shape\": 0.0", "arrivals"),
        ("400.5,", "100.5,", "tables[1].load_rps"),
        ("load-400.5.tbl", "../x.tbl", "tables[1].file"),
        ("0123456789abcdef0", "g123456789abcdef0", "tables[0].hash"),
        (": 0.75", ": 1.75", "tables[0].expected_accuracy"),
        (": 0.002", ": -1.0", "tables[0].expected_violation_rate"),
        (": 0.75", ": null", "tables[0].expected_accuracy"),
    ];
    for (from, to, field) in cases {
        let text = json.replacen(from, to, 1);
        assert_ne!(text, json, "{from}");
        let error = Set::parse(&text).unwrap_err();
        assert_eq!(
            (error.file.as_str(), error.field.as_str()),
            (INDEX_FILE, field)
        );
    }
    for end in 0..json.trim_end().len() {
        assert!(Set::parse(&json[..end]).is_err(), "{end}");
    }
    let mut empty = set();
    empty.tables.clear();
    assert_eq!(empty.to_json().unwrap_err().reason, Reason::Empty);
}

#[test]
fn a_file_of_another_length_is_refused() {
    let whole = bytes();
    for end in 0..whole.len() {
        assert!(matches!(
            refused(&whole[..end]).reason,
            Reason::Length { .. }
        ));
    }
    let longer = [whole.as_slice(), &[0]].concat();
    assert!(matches!(refused(&longer).reason, Reason::Length { .. }));
}

#[test]
fn every_changed_byte_is_detected() {
    let whole = bytes();
    let fields = [
        (0, "magic"),
        (8, "format"),
        (12, "variants"),
        (14, "queue_max"),
        (16, "slacks"),
        (20, "load_rps"),
        (28, "hash"),
        (60, "checksum"),
    ];
    for at in 0..whole.len() {
        let mut poisoned = whole.clone();
        poisoned[at] ^= 0x40;
        let error = refused(&poisoned);
        let field = fields.iter().rfind(|(from, _)| at >= *from).unwrap().1;
        assert_eq!(error.field, field, "byte {at}");
    }
}

#[test]
fn an_impossible_action_is_named() {
    let set = set();
    let poisoned = |a: usize, action: Action| {
        let mut actions = actions(&set);
        actions[a] = action;
        Table::new(&set.tables[0], &set, actions).unwrap_err().field
    };
    let no_variant = Action {
        variant: 2,
        batch: 1,
    };
    assert_eq!(poisoned(0, no_variant), "actions[0]");
    let too_many = Action {
        variant: 0,
        batch: 2,
    };
    assert_eq!(poisoned(3, too_many), "actions[3]");
    assert_eq!(poisoned(12, Action::default()), "actions[12]");
}

#[test]
fn a_file_of_another_set_is_refused() {
    let error = Table::parse("load-1.tbl", &bytes(), &set()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "load-1.tbl: `index`: has no entry for this file"
    );
    let mut other = set();
    other.tables[0].hash = "1".repeat(64);
    let error = Table::parse(FILE, &bytes(), &other).unwrap_err();
    assert_eq!(error.field, "hash");
}
