//! Inputs that broke a target once: the process ended, or the error was of no use.

use serde_json::json;
use tempfile::TempDir;

use crate::text_zoo;

use super::{cards, config, profiles, workloads};

/// Each batch size up to the largest became a row: 824 GB.
#[test]
fn a_batch_of_an_imported_summary_has_a_largest_size() {
    let folder = TempDir::new().unwrap();
    let summary = include_str!("../../../profile/tests/layouts/summary.json");
    let mut summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    let models = summary["models"].as_array_mut().unwrap();
    let batches = &mut models[0]["latency_ms_by_batch"];
    let first = batches
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap()
        .clone();
    batches["4294967295"] = first;
    let error = profiles::read_import(
        folder.path(),
        "summary.json",
        summary.to_string().as_bytes(),
    );
    let error = error.unwrap_err();
    assert!(error.contains("latency_ms_by_batch.4294967295"), "{error}");
    assert!(error.contains("1 to 4096"), "{error}");
}

/// The arrivals of a window were drawn at once: 34 GB.
#[test]
fn arrivals_at_once_have_a_largest_number() {
    for (spec, field) in [
        ("window:4294967295x100ms", "window.count"),
        ("burst:1,4294967295x1s", "burst.size"),
        ("erlang:1,4294967295", "erlang.stages"),
    ] {
        let error = workloads::read_spec(spec.as_bytes()).unwrap_err();
        assert!(
            error.contains(field) && error.contains("1 to 1000000"),
            "{error}"
        );
    }
}

/// Each change of the phase is kept until the next arrival: 4.3 GB.
#[test]
fn changes_of_the_phase_between_arrivals_have_a_largest_number() {
    for spec in [
        "mmpp:180,10,4294967296,1e308@deadline=normal:150ms,20ms;burst:10,20x1s",
        "phases:0.001x1us,0x1us",
    ] {
        let error = workloads::read_spec(spec.as_bytes()).unwrap_err();
        assert!(error.contains("at most 10000 times"), "{error}");
    }
}

/// The tokenizer's library panicked at the first text.
#[test]
fn a_tokenizer_whose_parts_contradict_each_other_is_refused() {
    let (_zoo, folder) = cards::encoder();
    let mut tokenizer = text_zoo::tokenizer();
    tokenizer["post_processor"]["special_tokens"]["[CLS]"]["id"] = json!("[OTHER]");
    let mut other = tokenizer["post_processor"]["special_tokens"].take();
    other.as_object_mut().unwrap().remove("[SEP]");
    tokenizer["post_processor"]["special_tokens"] = other;
    let error = cards::read_tokenizer(&folder, tokenizer.to_string().as_bytes()).unwrap_err();
    assert!(error.contains("tokenizer.json"), "{error}");
}

/// The library panicked on JSON that is cut off or wrong within a part.
#[test]
fn a_tokenizer_that_is_not_json_is_refused() {
    let (_zoo, folder) = cards::encoder();
    let text = text_zoo::tokenizer().to_string();
    let wrong = text.replace("\"decoder\":null", "\"decoder\"::null");
    assert_ne!(wrong, text);
    let error = cards::read_tokenizer(&folder, wrong.as_bytes()).unwrap_err();
    assert!(error.contains("not a tokenizer"), "{error}");
}

/// The message repeated the line, and again for each of thousands of errors.
#[test]
fn a_line_of_any_length_gives_a_short_message() {
    let nested = format!("name = {}", "{\"a\":".repeat(20_000));
    let error = config::read(nested.as_bytes()).unwrap_err();
    assert!(error.len() < 20_000, "{} bytes", error.len());
    let folder = TempDir::new().unwrap();
    let long = format!("name = \"{}\nsummary = 1\n", "0,".repeat(50_000));
    let error = cards::read_app(folder.path(), long.as_bytes()).unwrap_err();
    assert!(error.len() < 2_000, "{} bytes", error.len());
}
