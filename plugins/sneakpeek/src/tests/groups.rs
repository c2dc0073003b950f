//! Groups (sections 5.2 and 5.3.2) and their order (eq. 12 and 14).

use super::*;

/// Two apps whose largest batches are 8 and 4.
fn catalog() -> Catalog {
    CatalogBuilder::new()
        .app("heart", &["n", "a", "b"])
        .variant("small", &[0.7, 0.7, 0.7])
        .max_batch(4)
        .latency(1_000, 100)
        .variant("large", &[0.9, 0.9, 0.9])
        .latency(2_000, 200)
        .app("voice", &["yes", "no"])
        .variant("net", &[0.8, 0.8])
        .max_batch(4)
        .latency(1_000, 100)
        .worker("cpu")
        .build()
}

#[test]
fn priorities_by_hand() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog)
        .request("heart")
        .slack_us(150_000)
        .request("voice")
        .slack_us(100_000)
        .request("voice")
        .slack_us(300_000)
        .build();
    let scene = TestBed::new(&catalog, "{}", &window, 1);
    // Eq. 12: accuracies 0.7 and 0.9, population variance 0.01; 1.01 * exp(-0.15).
    close(scene.jobs.live[0].priority, 1.01 * 0.860_707_976_425_057_8);
    // Eq. 14, one model, variance 0: (exp(-0.1) + exp(-0.3)) / 2.
    let mean = (0.904_837_418_035_959_6 + 0.740_818_220_681_717_8) / 2.0;
    close(scene.groups.list[1].priority, mean);
    // With a unit of 1 ms: exp(-150).
    let scene = TestBed::new(&catalog, r#"{"priority_unit_ms": 1}"#, &window, 1);
    assert!(scene.jobs.live[0].priority < 1e-60);
}

#[test]
fn groups_are_apps_in_order_of_priority() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog)
        .request("heart")
        .slack_us(90_000)
        .request("voice")
        .request("heart")
        .slack_us(20_000)
        .build();
    let scene = TestBed::new(&catalog, "{}", &window, 1);
    assert_eq!(scene.members(), [vec![3, 1], vec![2]]);
}

#[test]
fn only_likely_labels_split_groups() {
    let catalog = catalog();
    // Jeffreys: 0.5 per class. y = (3, 0, 2): 3.5 / 6.5 = 0.54: class 0. y = (2, 2, 1): at
    // most 2.5 / 6.5 = 0.38: none. y = (0, 5, 0): 5.5 / 6.5: class 1.
    let window = WindowBuilder::new(&catalog)
        .request("heart")
        .evidence(&[3, 0, 2])
        .request("heart")
        .evidence(&[2, 2, 1])
        .request("heart")
        .request("heart")
        .evidence(&[0, 5, 0])
        .build();
    let scene = TestBed::new(&catalog, "{}", &window, 1);
    let labels: Vec<_> = scene.groups.list.iter().map(|group| group.label).collect();
    assert_eq!(labels, [None, Some(0), Some(1)]);
    assert_eq!(scene.members(), [vec![2, 3], vec![1], vec![4]]);
}

#[test]
fn a_group_is_at_most_the_largest_batch() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog)
        .requests(20, "heart")
        .requests(5, "voice")
        .build();
    let sizes = |json: &str, workers| {
        let scene = TestBed::new(&catalog, json, &window, workers);
        scene.members().iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(sizes("{}", 1), [8, 8, 4, 4, 1]);
    assert_eq!(
        sizes(r#"{"group_max": 10}"#, 1),
        [8, 8, 4, 4, 1],
        "no model has a batch of 10"
    );
    assert_eq!(sizes(r#"{"group_max": 7}"#, 1), [7, 7, 6, 4, 1]);
    // Seven workers can start: the largest groups are halved.
    assert_eq!(sizes("{}", 7), [4, 4, 4, 4, 4, 4, 1]);
}

#[test]
fn the_sneakpeek_model_needs_the_evidence_of_all() {
    let catalog = CatalogBuilder::new()
        .app("heart", &["n", "a"])
        .sneakpeek(5, 0.95)
        .variant("net", &[0.8, 0.8])
        .latency(1_000, 100)
        .worker("cpu")
        .build();
    let ready = WindowBuilder::new(&catalog)
        .request("heart")
        .evidence(&[5, 0]);
    let answer = |window: WindowBuilder| {
        let json = r#"{"label_split": false}"#;
        TestBed::new(&catalog, json, &window.build(), 1)
            .problem()
            .answer(0)
    };
    // Its accuracy is the profiled one, no function of theta such as 5.5 / 6 * 0.95.
    assert_eq!(answer(ready.clone()), Some(0.95));
    assert_eq!(answer(ready.request("heart")), None);
}
