//! The baselines of section 6.1: single requests.

use super::*;

/// A fast model (10 ms, 0.8) and a slow one (40 ms, 0.9), for every batch; step penalty: a late
/// answer has utility 0.
fn catalog() -> Catalog {
    CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .penalty(Penalty::Step)
        .sneakpeek(5, 0.6)
        .variant("fast", &[0.8, 0.8])
        .latency(10_000, 0)
        .variant("slow", &[0.9, 0.9])
        .latency(40_000, 0)
        .app("voice", &["y", "n"])
        .penalty(Penalty::Step)
        .sneakpeek(5, 0.95)
        .variant("net", &[0.8, 0.8])
        .latency(10_000, 0)
        .worker("cpu")
        .build()
}

/// Variant and requests of each batch.
fn decide(
    catalog: &Catalog,
    json: &str,
    window: WindowBuilder,
) -> (Vec<(u32, Vec<u64>)>, Vec<u64>) {
    let mut policy = SneakPeek::configure(catalog, json).unwrap();
    let decisions = run(&mut policy, catalog, &window.all_resident().build());
    let batches = decisions.batches.into_iter();
    (
        batches
            .map(|batch| (batch.variant, batch.requests))
            .collect(),
        decisions.answers,
    )
}

/// A lookahead with which the whole schedule becomes the plan.
fn whole(algorithm: &str) -> String {
    format!(r#"{{"algorithm": "{algorithm}", "lookahead_ms": 1000}}"#)
}

/// Heart due in 100 ms, voice in 60 ms, heart in 45 ms.
fn window(catalog: &Catalog) -> WindowBuilder<'_> {
    let window = WindowBuilder::new(catalog);
    let window = window.request("heart").slack_us(100_000);
    let window = window.request("voice").slack_us(60_000);
    window.request("heart").slack_us(45_000)
}

#[test]
fn lo_edf_takes_the_best_model_in_time() {
    let catalog = &catalog();
    // By deadline: 3 slow ends at 40, 2 at 50, 1 slow at 90.
    let (batches, answers) = decide(catalog, &whole("lo-edf"), window(catalog));
    assert_eq!(batches, [(1, vec![3]), (2, vec![2]), (1, vec![1])]);
    assert_eq!(answers, [] as [u64; 0]);
}

#[test]
fn lo_priority_orders_by_variance_and_deadline() {
    let catalog = &catalog();
    // Eq. 12 with a unit of 1 ms orders by deadline; with 1000 s by variance: heart (0.0025) before
    // voice (one model: 0), and 3 before 1.
    let by_deadline = r#"{"algorithm": "lo-priority", "lookahead_ms": 1000,
        "priority_unit_ms": 1}"#;
    let (batches, _) = decide(catalog, by_deadline, window(catalog));
    assert_eq!(batches, [(1, vec![3]), (2, vec![2]), (1, vec![1])]);
    let by_variance = r#"{"algorithm": "lo-priority", "lookahead_ms": 1000,
        "priority_unit_ms": 1e6}"#;
    let (batches, _) = decide(catalog, by_variance, window(catalog));
    // 3 ends at 40 ms, 1 at 80 ms; voice would end at 90 ms with utility 0 and goes last.
    assert_eq!(batches, [(1, vec![3]), (1, vec![1]), (2, vec![2])]);
}

#[test]
fn max_acc_edf_never_gives_up_accuracy() {
    let catalog = &catalog();
    // 3 ends at 40 ms, 2 at 50 ms, 4 at 90 ms; 1 is late and still slow.
    let late = window(catalog).request("heart").slack_us(95_000);
    let (batches, answers) = decide(catalog, &whole("max-acc-edf"), late);
    assert_eq!(
        batches,
        [(1, vec![3]), (2, vec![2]), (1, vec![4]), (1, vec![1])]
    );
    assert_eq!(answers, [] as [u64; 0]);
}

#[test]
fn data_awareness_and_short_circuit_are_settings_of_each() {
    let catalog = &catalog();
    // Accuracy of voice: 0.95 from evidence, 0.8 from its network.
    let evident = || {
        let window = WindowBuilder::new(catalog);
        window.request("voice").slack_us(60_000).evidence(&[5, 0])
    };
    for algorithm in ["lo-edf", "lo-priority", "grouped"] {
        let (batches, answers) = decide(catalog, &whole(algorithm), evident());
        assert_eq!((batches.len(), answers.len()), (1, 0), "{algorithm}");
        let with = format!(r#"{{"algorithm": "{algorithm}", "short_circuit": true}}"#);
        let (batches, answers) = decide(catalog, &with, evident());
        assert_eq!((batches.len(), answers), (0, vec![1]), "{algorithm}");
    }
    // MaxAcc-EDF does not benefit (section 6.3.1).
    let with = r#"{"algorithm": "max-acc-edf", "short_circuit": true}"#;
    assert_eq!(decide(catalog, with, evident()).0.len(), 1);
}

#[test]
fn only_grouped_algorithms_batch() {
    let catalog = &catalog();
    let pair = || WindowBuilder::new(catalog).requests(2, "voice");
    assert_eq!(
        decide(catalog, &whole("grouped"), pair()).0,
        [(2, vec![1, 2])]
    );
    for algorithm in ["lo-edf", "lo-priority", "max-acc-edf"] {
        let (batches, _) = decide(catalog, &whole(algorithm), pair());
        assert_eq!(batches, [(2, vec![1]), (2, vec![2])], "{algorithm}");
    }
}

#[test]
fn only_requests_that_start_now_are_decided() {
    let catalog = &catalog();
    // 2000 requests without answers from evidence: the plan has the one batch that can start.
    let many = WindowBuilder::new(catalog).requests(2_000, "voice");
    let (batches, _) = decide(catalog, r#"{"algorithm": "lo-edf"}"#, many);
    assert_eq!(batches, [(2, vec![1])]);
}
