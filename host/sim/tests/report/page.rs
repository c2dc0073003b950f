//! The content of the page, and everything that it must not contain.

use proptest::prelude::*;
use switchyard_sim::PolicyOutcome;
use switchyard_sim::report::{Meta, PolicyMeta, ReportData, html};
use switchyard_sim::timeline::BARS_MAX;

use crate::sweep::report;

/// Text, table cells and text alternatives, one per line; without drawings and style.
fn skeleton(page: &str) -> String {
    let mut lines = Vec::new();
    let body = page.split_once("</style>").unwrap().1;
    let mut is_drawing = false;
    for piece in body.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        is_drawing = (is_drawing || tag.starts_with("svg")) && !tag.starts_with("/svg");
        if let Some((_, label)) = tag.split_once("aria-label=\"") {
            lines.push(format!("[{}]", label.split('"').next().unwrap()));
        }
        if !is_drawing && !text.trim().is_empty() {
            lines.push(text.trim().to_owned());
        }
    }
    lines.join("\n")
}

#[test]
fn the_page_in_words() {
    insta::assert_snapshot!(skeleton(&html(&report())));
}

#[test]
fn the_page_refers_to_no_other_file() {
    let page = html(&report());
    for outside in [
        "http",
        "src=",
        "url(",
        "@import",
        "<script",
        "<link",
        "<img",
        "javascript:",
    ] {
        assert!(!page.contains(outside), "{outside} is in the page");
    }
    let links = page.split("href=\"").skip(1);
    assert!(links.clone().count() > 3);
    assert!(links.into_iter().all(|link| link.starts_with('#')));
}

#[test]
fn a_cut_trace_is_named_before_any_result() {
    let mut data = report();
    assert!(!html(&data).contains("The trace was cut"));
    data.meta.left_out = vec!["2 of 3 arrivals <b>".to_owned()];
    let words = skeleton(&html(&data));
    let warning = words.find("2 of 3 arrivals &lt;b&gt;").unwrap();
    assert!(warning < words.find("Accuracy against violations").unwrap());
}

#[test]
fn both_themes_have_every_colour() {
    let page = html(&report());
    let (mut light, mut dark) = (String::new(), String::new());
    let blocks: Vec<&str> = page.split(":root").collect();
    for pair in blocks.windows(2) {
        let values = pair[1].split('}').next().unwrap();
        let is_dark = pair[0]
            .trim_end()
            .trim_end_matches('{')
            .trim_end()
            .ends_with("dark)");
        let theme = if is_dark { &mut dark } else { &mut light };
        theme.push_str(values);
    }
    for used in page.split("var(").skip(1) {
        let used = used.split(')').next().unwrap();
        // These two are set by the class of the element.
        if !["--c", "--t"].contains(&used) {
            let value = format!("{used}:");
            assert!(light.contains(&value) && dark.contains(&value), "{used}");
        }
    }
}

/// Every element that is opened is closed.
fn elements_are_balanced(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in page.split('<').skip(2) {
        let tag = piece.split('>').next().unwrap();
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/', '\n'])
            .next()
            .unwrap();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed), "after {open:?}");
        } else if !tag.ends_with('/') && name != "meta" {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

/// The report with another name for everything that users name.
fn renamed(mut data: ReportData, name: &str) -> ReportData {
    for run in data.runs.iter_mut().filter(|run| run.policy == "edf") {
        run.policy = name.to_owned();
    }
    for run in &mut data.runs {
        run.point = format!("{name}={}", run.point);
        for report in &mut run.reports {
            report.faults.insert(name.to_owned(), 3);
            report.apps[0].name = name.to_owned();
            for served in report
                .served
                .iter_mut()
                .filter(|served| served.app == "heart")
            {
                served.app = name.to_owned();
                served.variant = name.to_owned();
            }
        }
    }
    data.catalog.apps[0].name = name.to_owned();
    for variant in data
        .catalog
        .variants
        .iter_mut()
        .filter(|variant| variant.app == "heart")
    {
        variant.app = name.to_owned();
        variant.name = name.to_owned();
        variant.exits[0].name = name.to_owned();
    }
    data.catalog.workers[0].name = name.to_owned();
    data.timelines[0].policy = name.to_owned();
    data.meta = Meta {
        title: name.to_owned(),
        command: name.to_owned(),
        workload: name.to_owned(),
        profile: name.to_owned(),
        date: name.to_owned(),
        version: name.to_owned(),
        profile_hash: name.to_owned(),
        policies: vec![PolicyMeta {
            policy: name.to_owned(),
            label: name.to_owned(),
            hash: name.to_owned(),
            settings: name.to_owned(),
        }],
        axis: None,
        ..data.meta
    };
    data.compared_with(name)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn names_stay_names(word in "[q-z]{4,9}", around in "[<>&\"'/= ]{0,3}") {
        let name = format!("<{word}>\"{around}{word}={around}</{word}><b>");
        let page = html(&renamed(report(), &name));
        for raw in [format!("<{word}"), format!("</{word}"), format!("\"{around}{word}=")] {
            prop_assert!(!page.contains(&raw));
        }
        let shown = format!("&lt;{word}&gt;&quot;");
        prop_assert!(page.contains(&shown), "the name is shown");
        elements_are_balanced(&page);
    }

    #[test]
    fn any_name_makes_a_page(name in "\\PC{0,40}") {
        elements_are_balanced(&html(&renamed(report(), &name)));
    }
}

#[test]
fn one_point_and_one_run_make_a_page() {
    let mut data = report();
    data.runs.truncate(2);
    data.comparisons.clear();
    data.meta.axis = None;
    for run in &mut data.runs {
        run.reports.truncate(1);
        *run = PolicyOutcome::new("", &run.policy, run.reports.clone());
    }
    let words = skeleton(&html(&data));
    assert!(words.contains("One run each."));
    assert!(
        !words.contains('±') || words.matches('±').count() == 1,
        "only in the definitions"
    );
    assert!(!words.contains("points"), "nothing was swept");
}

#[test]
fn values_that_are_not_numbers_are_names() {
    let mut data = report();
    for run in &mut data.runs {
        run.point = run
            .point
            .replace("rate=100", "penalty=step")
            .replace("rate=900", "penalty=linear");
    }
    let page = html(&data);
    assert!(page.contains(">step</text>") && page.contains(">linear</text>"));
    elements_are_balanced(&page);
}

#[test]
fn nothing_at_all_makes_a_page() {
    let nothing = ReportData {
        runs: Vec::new(),
        timelines: Vec::new(),
        comparisons: Vec::new(),
        ..report()
    };
    elements_are_balanced(&html(&nothing));
    let mut silent = report();
    for run in &mut silent.runs {
        *run = PolicyOutcome::new(&run.point, &run.policy, Vec::new());
    }
    let page = html(&silent);
    assert!(page.contains("<td>–</td>"));
    elements_are_balanced(&page);
}

#[test]
fn policies_that_failed_windows_are_named_first() {
    let mut data = report();
    let report = &mut data.runs[1].reports[0];
    report.faults.insert("trap".to_owned(), 12);
    report.taken_off = 1;
    let words = skeleton(&html(&data));
    let at = words
        .find("12 windows failed: trap; taken off 1 time")
        .unwrap();
    assert!(at < words.find("Accuracy against violations").unwrap());
    assert!(!skeleton(&html(&crate::sweep::report())).contains("windows failed"));
}

/// A long interval is shortened, and the page says so.
#[test]
fn a_long_timeline_does_not_make_a_long_page() {
    let mut data = report();
    let before = html(&data).len();
    let timeline = &mut data.timelines[0];
    let bar = timeline.bars[0];
    timeline.bars = (0..BARS_MAX as u64)
        .map(|at| switchyard_sim::timeline::BatchBar {
            start: switchyard_core::time::Time(100_000 + 10 * at),
            end: switchyard_core::time::Time(100_010 + 10 * at),
            ..bar
        })
        .collect();
    timeline.to_us = 100_000_000;
    timeline.bars_dropped = 5;
    let page = html(&data);
    assert!(page.len() < before + 1_500_000, "{} bytes", page.len());
    let left_out = BARS_MAX + 5 - 3_000;
    let left_out = format!(
        "{},{:03} batches are not shown",
        left_out / 1_000,
        left_out % 1_000
    );
    assert!(page.contains(&left_out), "{left_out}");
}
