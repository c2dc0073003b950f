//! SQ.

use switchyard_sdk::host;

use super::*;

fn workers(decisions: &Decisions) -> Vec<u32> {
    decisions.batches.iter().map(|batch| batch.worker).collect()
}

#[test]
fn heavy_instances_and_the_oldest_request_go_first() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog)
        .busy(0, HEAVY, 10_000)
        .requests(4, "image")
        .request("image")
        .age_us(500);
    let decisions = decide(&catalog, "{}", window);
    assert_eq!(workers(&decisions), [1, 2, 3]);
    // The fifth request is the oldest.
    assert_eq!(decisions.dispatched(), [5, 1, 2]);
    let variants: Vec<u32> = decisions.batches.iter().map(|b| b.variant).collect();
    assert_eq!(variants, [HEAVY, LIGHT, LIGHT]);
    assert!(decisions.routes.is_empty());
}

#[test]
fn last_pair_prefers_heavy_only_among_one_of_each() {
    let catalog = catalog();
    let json = r#"{"prefer": "last-pair"}"#;
    host::native::seed(1);
    let first_worker = |busy: &[usize]| {
        let window = WindowBuilder::new(&catalog).request("image");
        let window = busy.iter().fold(window, |w, &at| w.busy(at, HEAVY, 10_000));
        workers(&decide(&catalog, json, window))[0]
    };
    for _ in 0..20 {
        assert_eq!(first_worker(&[0, 3]), 1);
    }
    let of_all: Vec<u32> = (0..100).map(|_| first_worker(&[])).collect();
    for worker in 0..4 {
        assert!(of_all.contains(&worker), "worker {worker} of all four");
    }
    let of_light: Vec<u32> = (0..50).map(|_| first_worker(&[0, 1])).collect();
    assert!(of_light.contains(&2) && of_light.contains(&3));
}
