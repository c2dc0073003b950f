//! Workloads as text, as JSON and as traces, and the messages about wrong ones.

use std::fs;
use std::path::Path;

use switchyard_core::time::Micros;
use switchyard_sim::workload::{Apps, Arrivals, Deadline, Phase, Trace};
use switchyard_sim::{Workload, run};

use crate::policies::edf;
use crate::test_bed::{catalog, scenario};

#[test]
fn specs_are_parsed() {
    let workload: Workload =
        "heart=poisson:50@deadline=slo*1.5; *=window:12x100ms; phases:180x27.8s,10x500s@mix=heart:2,fall:1@deadline=normal:150ms,20ms"
            .parse()
            .unwrap();
    let [heart, each, mixed] = &workload.streams[..] else {
        panic!("{workload:?}");
    };
    assert_eq!(heart.apps, Apps::Mix([("heart".to_owned(), 1.0)].into()));
    assert_eq!(heart.arrivals, Arrivals::Poisson { rate: 50.0 });
    assert_eq!(heart.deadline, Deadline::Scaled(1.5));
    assert_eq!(each.apps, Apps::Each);
    let window = Arrivals::Window {
        count: 12,
        length_us: Micros(100_000),
    };
    assert_eq!(each.arrivals, window);
    let phase = |rate, us| Phase {
        rate,
        length_us: Micros(us),
    };
    let phases = vec![phase(180.0, 27_800_000), phase(10.0, 500_000_000)];
    assert_eq!(mixed.arrivals, Arrivals::Phases(phases));
    let law = Deadline::Normal {
        mean_us: Micros(150_000),
        sd_us: Micros(20_000),
    };
    assert_eq!(mixed.deadline, law);
}

#[test]
fn json_and_text_mean_the_same() {
    let json = r#"{"streams": [{
        "apps": {"mix": {"heart": 1.0}},
        "arrivals": {"mmpp": {"rates": [180, 10], "leave": [0.036, 0.002]}},
        "deadline": {"fixed": 300000}
    }]}"#;
    let from_json: Workload = serde_json::from_str(json).unwrap();
    let from_text = "heart=mmpp:180,10,0.036,0.002@deadline=300ms".parse();
    assert_eq!(Ok(from_json), from_text);
}

#[test]
fn wrong_specs_are_named() {
    for (spec, message) in [
        ("", "workload: spec: is empty"),
        (
            "posson:200",
            "workload: arrival process: `posson` is unknown; use one of poisson, gamma, erlang, periodic, mmpp, phases, window, burst, trace (map: as JSON)",
        ),
        (
            "poisson:0",
            "workload: poisson.rate: must be positive, not 0",
        ),
        (
            "poisson:-3",
            "workload: poisson.rate: must be positive, not -3",
        ),
        (
            "poisson:nan",
            "workload: poisson.rate: must be positive, not NaN",
        ),
        (
            "poisson:fast",
            "workload: poisson.rate: `fast` is not a number",
        ),
        (
            "poisson",
            "workload: poisson: write poisson:RATE; it has 0 of 1 numbers",
        ),
        (
            "gamma:200",
            "workload: gamma: write gamma:RATE,SHAPE; it has 1 of 2 numbers",
        ),
        (
            "erlang:200,2.5",
            "workload: erlang.stages: 2.5 is not a whole number",
        ),
        (
            "mmpp:180,10,0.036",
            "workload: mmpp: write mmpp:RATE,RATE,LEAVE,LEAVE: a rate per phase, then a leaving rate per phase",
        ),
        (
            "mmpp:180,10,0.036,0",
            "workload: mmpp.leave[1]: must be positive, not 0",
        ),
        (
            "mmpp:0,0,1,1",
            "workload: mmpp.rates: at least one rate must be positive",
        ),
        (
            "window:12",
            "workload: window.count: `12` is not COUNTxTIME, such as 12x100ms",
        ),
        (
            "window:12x100",
            "workload: window.time: `100` is not a time such as 100ms (us, ms, s, m, h)",
        ),
        (
            "window:0x100ms",
            "workload: window.count: must be 1 to 1000000, not 0",
        ),
        (
            "phases:5x0s",
            "workload: phases.[0].length_us: must be positive, not 0",
        ),
        (
            "burst:5",
            "workload: burst: write burst:RATE,SIZExTIME, such as burst:50,20x1s",
        ),
        (
            "trace:",
            "workload: trace.file: is missing; write trace:FILE",
        ),
        (
            "poisson:5@deadline=soon",
            "workload: deadline.length: `soon` is not a time such as 100ms (us, ms, s, m, h)",
        ),
        (
            "poisson:5@deadline=0ms",
            "workload: deadline.fixed: must be positive, not 0",
        ),
        (
            "poisson:5@penalty=step",
            "workload: @penalty=step: `penalty=step` is unknown; use one of deadline=..., mix=..., length=..., known",
        ),
        (
            "poisson:5@mix=heart",
            "workload: mix.heart: write mix=APP:WEIGHT,APP:WEIGHT",
        ),
    ] {
        let error = spec.parse::<Workload>().unwrap_err();
        assert_eq!(error.to_string(), message, "{spec}");
    }
}

#[test]
fn a_workload_that_does_not_fit_the_catalog_is_refused() {
    for (spec, message) in [
        (
            "lung=poisson:5",
            "workload: unknown app `lung`; the catalog has heart, fall",
        ),
        (
            "poisson:5@mix=heart:0",
            "workload: mix: needs a weight above 0",
        ),
        (
            "poisson:5@mix=heart:-1",
            "workload: mix.heart: must be a number of at least 0, not -1",
        ),
    ] {
        let error = run(&scenario(catalog(1), spec), &edf(), 1).unwrap_err();
        assert_eq!(error.to_string(), message, "{spec}");
    }
}

#[test]
fn a_map_needs_square_matrices_with_rows_that_add_up_to_0() {
    let arrivals = |json: &str| serde_json::from_str::<Arrivals>(json).unwrap();
    let map = arrivals(r#"{"map": {"d0": [[-3, 1], [0.5, -2]], "d1": [[2, 0], [0, 1.5]]}}"#);
    assert_eq!(map.validate(), Ok(()));
    for (json, message) in [
        (
            r#"{"map": {"d0": [[-3]], "d1": [[2]]}}"#,
            "workload: map.d0[0]: with d1[0] must add up to 0, adds up to -1",
        ),
        (
            r#"{"map": {"d0": [[-3, 3]], "d1": [[0]]}}"#,
            "workload: map.d0[0]: needs 1 numbers, has 2",
        ),
        (
            r#"{"map": {"d0": [], "d1": []}}"#,
            "workload: map.d1: needs one row per row of d0, at least one",
        ),
    ] {
        let error = arrivals(json).validate().unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[allow(clippy::disallowed_methods)] // A test writes its own traces.
fn write(folder: &Path, text: &str) -> String {
    let file = folder.join("trace.json");
    fs::write(&file, text).unwrap();
    format!("trace:{}", file.display())
}

#[test]
fn a_trace_of_rates_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    // The unknown field `source` is ignored.
    let text = r#"{"source": "a day", "interval_s": 10, "qps": [50.0, 200.0, 0.0, 100.0]}"#;
    let report = run(
        &scenario(catalog(4), &write(folder.path(), text)),
        &edf(),
        1,
    )
    .unwrap();
    let arrivals: Vec<u64> = report.phases.iter().map(|p| p.summary.arrivals).collect();
    for (got, want) in arrivals.iter().zip([500.0, 2_000.0, 0.0, 1_000.0]) {
        assert!((*got as f64 - want).abs() <= 0.1 * want, "{arrivals:?}");
    }
    assert!(report.simulated_us < Micros::from_millis(40_100));
}

#[test]
fn recorded_arrivals_are_replayed() {
    let trace = Trace {
        arrivals_us: Some(vec![10, 10, 40_000, 41_000]),
        ..Trace::default()
    };
    let mut scenario = scenario(catalog(1), "poisson:1");
    scenario.workload.streams[0].arrivals = Arrivals::Trace(trace);
    scenario.workload.streams[0].apps = Apps::Mix([("fall".to_owned(), 1.0)].into());
    let report = run(&scenario, &edf(), 9).unwrap();
    assert_eq!(report.total.arrivals, 4);
    // The last one waits for 2 ms of the one before, and runs for 3 ms.
    assert_eq!(report.simulated_us, Micros(46_000));
}

#[test]
fn recorded_requests_keep_their_apps_and_deadlines() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"requests": [
        {"at_us": 10, "app": "fall"},
        {"at_us": 50000, "app": "heart", "deadline_us": 900},
        {"at_us": 90000, "app": "fall", "deadline_us": 3000}
    ]}"#;
    let report = run(
        &scenario(catalog(1), &write(folder.path(), text)),
        &edf(),
        1,
    )
    .unwrap();
    let [heart, fall] = &report.apps[..] else {
        panic!("{report:?}");
    };
    // The fastest variant of `heart` takes 1 ms; `fall` takes exactly its 3 ms.
    assert_eq!((heart.summary.arrivals, heart.summary.late), (1, 1));
    assert_eq!((fall.summary.arrivals, fall.summary.in_time), (2, 2));
    let each = format!("*={}", write(folder.path(), text));
    let error = run(&scenario(catalog(1), &each), &edf(), 1).unwrap_err();
    let message = "workload: apps: recorded requests name their own: not with `*=`";
    assert_eq!(error.to_string(), message);
    let unknown = write(
        folder.path(),
        r#"{"requests": [{"at_us": 1, "app": "lung"}]}"#,
    );
    let error = run(&scenario(catalog(1), &unknown), &edf(), 1).unwrap_err();
    let message = "workload: unknown app `lung`; the catalog has heart, fall";
    assert_eq!(error.to_string(), message);
}

#[test]
fn wrong_traces_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (text, message) in [
        ("", ".: EOF while parsing a value at line 1 column 0"),
        ("{}", ".: has none of `qps`, `arrivals_us` and `requests`"),
        (
            r#"{"arrivals_us": [1]} {}"#,
            ".: trailing characters at line 1 column 22",
        ),
        (r#"{"requests": []}"#, "requests: is empty"),
        (
            r#"{"requests": [{"at_us": 5, "app": "fall"}, {"at_us": 4, "app": "fall"}]}"#,
            "requests[1].at_us: is 4, must be at least 5, that of the row before",
        ),
        (
            r#"{"requests": [{"at_us": 5}]}"#,
            "requests[0]: missing field `app` at line 1 column 26",
        ),
        (r#"{"interval_s": 1, "qps": []}"#, "qps: is empty"),
        (
            r#"{"interval_s": 1, "qps": [0, 0]}"#,
            "qps: needs a rate above 0",
        ),
        (
            r#"{"interval_s": 1, "qps": [5, -1]}"#,
            "qps[1]: is -1, must be at least 0",
        ),
        (
            r#"{"interval_s": 0, "qps": [5]}"#,
            "interval_s: must be positive",
        ),
        (r#"{"qps": [5]}"#, "interval_s: is missing"),
        (
            r#"{"interval_s": 1, "qps": [5, "x"]}"#,
            "qps[1]: invalid type: string \"x\", expected a number at line 1 column 32",
        ),
        (r#"{"arrivals_us": []}"#, "arrivals_us: is empty"),
        (
            r#"{"arrivals_us": [5, 4]}"#,
            "arrivals_us[1]: is 4, must be at least 5, that of the row before",
        ),
        (
            r#"{"arrivals_us": [5], "qps": [1]}"#,
            ".: has several of `qps`, `arrivals_us` and `requests`",
        ),
    ] {
        let spec = write(folder.path(), text);
        let error = run(&scenario(catalog(1), &spec), &edf(), 1).unwrap_err();
        let file = folder.path().join("trace.json");
        let expected = format!("trace {}: {message}", file.display());
        assert_eq!(error.to_string(), expected, "{text}");
    }
    let error = run(&scenario(catalog(1), "trace:nowhere.json"), &edf(), 1).unwrap_err();
    let begins = "trace nowhere.json: .: No such file";
    assert!(error.to_string().starts_with(begins), "{error}");
}

#[test]
fn a_scenario_can_last_as_long_as_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let length = |text: &str, load: f64| {
        let mut scenario = scenario(catalog(1), &write(folder.path(), text));
        scenario.workload = scenario.workload.scaled(load).unwrap();
        scenario.until_trace_ends().unwrap();
        scenario.duration
    };
    // Longer than the 60 s of a scenario without a trace, and the last arrival is part of it.
    let arrivals = r#"{"arrivals_us": [5, 90000000]}"#;
    assert_eq!(length(arrivals, 1.0), Micros(90_000_001));
    assert_eq!(length(arrivals, 0.5), Micros(180_000_001));
    let rates = r#"{"interval_s": 100, "qps": [5, 1]}"#;
    assert_eq!(length(rates, 0.5), Micros(200_000_000));
    let requests = r#"{"requests": [{"at_us": 7, "app": "fall"}]}"#;
    assert_eq!(length(requests, 1.0), Micros(8));
    let mut endless = scenario(catalog(1), "poisson:5");
    endless.until_trace_ends().unwrap();
    assert_eq!(endless.duration, Micros::from_millis(60_000));
}

#[test]
fn a_trace_that_is_cut_says_how_much_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let cut = |text: &str, load: f64, seconds: u64| {
        let workload: Workload = write(folder.path(), text).parse().unwrap();
        let workload = workload.scaled(load).unwrap();
        let cut = workload.cut_at(Micros::from_millis(seconds * 1_000), 1);
        cut.unwrap().map(|cut| cut.to_string())
    };
    let arrivals = r#"{"arrivals_us": [5, 10000000, 90000000]}"#;
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(
        cut(arrivals, 1.0, 10),
        said("2 of 3 arrivals of the trace, those after 10 s, are left out")
    );
    assert_eq!(
        cut(arrivals, 0.5, 60),
        said("1 of 3 arrivals of the trace, those after 60 s, are left out")
    );
    assert_eq!(cut(arrivals, 1.0, 91), None);
    let rates = r#"{"interval_s": 10, "qps": [5, 0, 2, 1]}"#;
    assert_eq!(
        cut(rates, 1.0, 25),
        said("about 20 of 80 arrivals of the trace, those after 25 s, are left out")
    );
    assert_eq!(cut(rates, 1.0, 40), None);
    let each: Workload = format!("*={}", write(folder.path(), arrivals))
        .parse()
        .unwrap();
    let each = each
        .cut_at(Micros::from_millis(10_000), 2)
        .unwrap()
        .unwrap();
    assert_eq!((each.left_out, each.of), (4.0, 6.0));
    let endless: Workload = "poisson:5".parse().unwrap();
    assert_eq!(endless.cut_at(Micros(1), 1), Ok(None));
}
