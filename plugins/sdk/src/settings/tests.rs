use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Sample {
    tau: u32,
    inner: Inner,
    kind: Kind,
    shares: Vec<f64>,
    limit: Option<u64>,
    by_batch: BTreeMap<u32, Inner>,
}

#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Inner {
    share: f64,
}

#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    #[default]
    Plain,
    OfSize(u32),
    Named {
        name: String,
    },
}

fn refused(json: &str) -> String {
    parse::<Sample>(json).expect_err(json)
}

#[test]
fn errors_name_the_field_at_any_depth() {
    let cases = [
        (
            r#"{"inner": {"share": true}}"#,
            "inner.share: invalid type: boolean `true`, expected f64",
        ),
        (
            r#"{"shares": [1, "two"]}"#,
            "shares[1]: invalid type: string \"two\", expected f64",
        ),
        (
            r#"{"by_batch": {"4": {"share": []}}}"#,
            "by_batch.4.share: invalid type: a list, expected f64",
        ),
        (
            r#"{"tau": 1.5}"#,
            "tau: invalid type: floating point `1.5`, expected u32",
        ),
        (
            r#"{"tau": -1}"#,
            "tau: invalid value: integer `-1`, expected u32",
        ),
        (r#"{"tau": null}"#, "tau: invalid type: null, expected u32"),
        (r#"{"tau": 1, "tau": 2}"#, "duplicate field `tau`"),
        ("[1", "JSON: expected a comma or `]` at byte 2"),
        (r#"{"tau": 1} {}"#, "JSON: expected the end at byte 11"),
        (r#"{"tau": nul}"#, "tau: JSON: expected a value at byte 8"),
        (r#"{"tau": 3,}"#, "JSON: expected a string at byte 10"),
        (r#"{"tau" 3}"#, "JSON: expected `:` at byte 7"),
    ];
    for (json, expected) in cases {
        let error = refused(json);
        let error = error.strip_prefix("settings: ").expect("the prefix");
        assert_eq!(error, expected, "{json}");
    }
}

#[test]
fn a_misspelt_field_or_variant_is_refused_with_the_known_ones() {
    let error = refused(r#"{"tua": 3}"#);
    assert!(
        error.contains("unknown field `tua`, expected one of `tau`, "),
        "{error}"
    );
    let error = refused(r#"{"kind": "palin"}"#);
    assert!(
        error.starts_with("settings: kind: unknown variant `palin`"),
        "{error}"
    );
}

#[test]
fn nothing_means_defaults() {
    assert_eq!(parse::<Sample>(""), Ok(Sample::default()));
    assert_eq!(parse::<Sample>(" {\n} "), Ok(Sample::default()));
}

#[test]
fn every_kind_of_setting_is_read_as_serde_json_reads_it() {
    let cases = [
        r#"{"tau": 4294967295, "limit": 18446744073709551615, "shares": [1, -2, 0.1, -0.0, 2.5e-3, 1E2]}"#,
        r#"{"limit": null, "kind": "plain", "by_batch": {"1": {}, "16": {"share": 0.25}}}"#,
        r#"{"kind": {"of-size": 3}}"#,
        r#"{"kind": {"named": {"name": "a \"b\" \\ \/ \u00e9 \ud83d\ude80 \n"}}}"#,
    ];
    for json in cases {
        let expected: Sample = serde_json::from_str(json).expect(json);
        assert_eq!(parse::<Sample>(json), Ok(expected), "{json}");
    }
}

#[test]
fn broken_json_is_refused() {
    let deep = "[".repeat(10_000);
    for json in [
        "{",
        "[1 2]",
        "[,1]",
        "[1,]",
        "01",
        "1.",
        ".5",
        "+1",
        "-",
        "1e",
        "1e999",
        "nulls",
        "'a'",
        "\"a",
        "\"\u{1}\"",
        r#""\x""#,
        r#""\u12""#,
        r#""\ud800""#,
        r#""\ud800A""#,
        "{a: 1}",
        r#"{"a": 1 "b": 2}"#,
        &deep,
    ] {
        assert!(serde_json::from_str::<Value>(json).is_err(), "{json}");
        assert!(parse::<Value>(json).is_err(), "{json}");
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (any::<i32>(), 0..12)
            .prop_map(|(n, places)| { Value::from(f64::from(n) / 10f64.powi(places)) }),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..5).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn values_are_read_as_they_were_written(value in values(), is_pretty: bool) {
        let json = match is_pretty {
            true => serde_json::to_string_pretty(&value),
            false => serde_json::to_string(&value),
        };
        prop_assert_eq!(parse::<Value>(&json.expect("JSON")), Ok(value));
    }

    #[test]
    fn any_text_ends_in_a_value_or_an_error(text in "[ -~]{0,40}") {
        let ours = parse::<Value>(&text);
        if !text.trim().is_empty() {
            prop_assert_eq!(ours.is_ok(), serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
