//! `models`: the page follows from a profile, to the letter.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use super::binary::switchyard;

/// Two apps on one kind, with exits, stages, a card's accuracies, and gaps.
const PROFILE: &str = "host/cli/tests/cli/fixtures/profile.json";

#[test]
fn the_page_follows_from_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("docs/models.md");
    let arguments = [
        "models",
        "--profile",
        PROFILE,
        "--markdown",
        page.to_str().unwrap(),
    ];
    let ran = switchyard(&arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let written = fs::read_to_string(&page).unwrap();
    assert_snapshot!("models_page", written);
    let table = ran.stdout.replace(page.to_str().unwrap(), "PAGE");
    assert_snapshot!("models_table", table);

    // Handwritten text around the marks stays.
    let edited = written.replace("# Models\n", "# Models\n\nMine.\n") + "\nMine too.\n";
    fs::write(&page, edited.replace("sliced, 1", "gone")).unwrap();
    assert_eq!(switchyard(&arguments).code, Some(0));
    assert_eq!(fs::read_to_string(&page).unwrap(), edited);
}

#[test]
fn a_page_without_marks_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("mine.md");
    fs::write(&page, "mine\n").unwrap();
    let ran = switchyard(&[
        "models",
        "--profile",
        PROFILE,
        "--markdown",
        page.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("mine.md: has no line `<!-- begin"),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read_to_string(&page).unwrap(), "mine\n");
}

#[test]
fn programs_get_json() {
    let ran = switchyard(&["models", "--profile", PROFILE, "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let sheet: Value = serde_json::from_str(&ran.stdout).unwrap();
    let resnet = &sheet["apps"][0]["variants"][1];
    assert_eq!(resnet["variant"], "resnet");
    assert_eq!(resnet["exits"].as_array().unwrap().len(), 2);
    assert_eq!(resnet["exits"][1]["recall_min"], 0.6);
    assert_eq!(resnet["slicing"][0]["ratio"], 1.06);
    assert_eq!(resnet["slicing"][0]["is_noise"], true, "{resnet:#}");
}

#[test]
fn the_engine_of_each_variant_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile.json");
    let text = fs::read_to_string(super::binary::root().join(PROFILE)).unwrap();
    let named = text.replacen("\"stages\":1}", "\"stages\":1,\"engine\":\"rten\"}", 1);
    assert_ne!(text, named);
    fs::write(&profile, named).unwrap();
    let profile = profile.to_str().unwrap();
    let page = folder.path().join("models.md");
    let ran = switchyard(&[
        "models",
        "--profile",
        profile,
        "--markdown",
        page.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let page = fs::read_to_string(&page).unwrap();
    for part in [
        "| variant | engine | parameters |",
        "| cnn | rten | 23,643 |",
        "| resnet | - |",
    ] {
        assert!(page.contains(part), "{page}\n{part}");
    }
    assert!(page.contains("|---|---|---:|---:|---|---:|"), "{page}");
    let header = ran.stdout.lines().next().unwrap_or_default();
    assert!(
        header.contains("variant") && header.contains("engine"),
        "{header}"
    );
    let ran = switchyard(&["models", "--profile", profile, "--json"]);
    assert!(
        ran.stdout.contains("\"engine\": \"rten\""),
        "{}",
        ran.stdout
    );
}
