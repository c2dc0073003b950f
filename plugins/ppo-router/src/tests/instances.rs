//! The workers of the instances.

use super::*;

fn workers(catalog: &Catalog, json: &str) -> Result<Vec<(u32, u32)>, String> {
    install(&three_to_one());
    let policy = PpoRouter::configure(catalog, json)?;
    let instances = policy.routed.instances.iter();
    Ok(instances.map(|i| (i.worker.0, i.variant.0)).collect())
}

#[test]
fn workers_serve_in_order_or_as_set() {
    let catalog = catalog();
    assert_eq!(workers(&catalog, "{}").unwrap(), [(0, HEAVY), (1, LIGHT)]);
    let named = r#"{"instances": {"w0": "light", "w1": "heavy"}}"#;
    assert_eq!(workers(&catalog, named).unwrap(), [(1, HEAVY), (0, LIGHT)]);
    let twice = r#"{"instances": {"w0": "light", "w1": "light"}}"#;
    assert_eq!(
        workers(&catalog, twice).unwrap_err(),
        "settings: instances: must have a worker for each of heavy, light, as the weights"
    );
}

#[test]
fn apps_without_weights_are_served_at_once() {
    let builder = CatalogBuilder::new()
        .app("text", &["x"])
        .variant("only", &[0.9])
        .latency(0, 1_000)
        .app("image", &["x"])
        .variant("heavy", &[0.8])
        .latency(0, 40_000)
        .variant("light", &[0.7])
        .latency(0, 10_000);
    let catalog = builder.worker("w0").worker("w1").build();
    install(&three_to_one());
    let mut policy = policy(&catalog, "{}");
    let window = WindowBuilder::new(&catalog).requests(3, "text");
    let decisions = run(&mut policy, &catalog, &window.build());
    assert_eq!(decisions.dispatched(), [1, 2, 3]);
    assert_eq!(decisions.routes[0].app, 1);
}

#[test]
fn the_setting_batches_is_for_weights_without_bounds() {
    let catalog = catalog();
    install(&three_to_one());
    let mut policy = policy(&catalog, r#"{"batches": {"light": [2, 3]}}"#);
    let decisions = run(&mut policy, &catalog, &WindowBuilder::new(&catalog).build());
    let bounds = decisions.routes[0].lanes.iter();
    let bounds: Vec<_> = bounds
        .map(|lane| (lane.min_batch, lane.max_batch, lane.capacity))
        .collect();
    // A capacity of 3: one in service and two waiting; or three in service, and room for a batch.
    assert_eq!(bounds, [(1, 1, 2), (2, 3, 2)]);
    for (json, error) in [
        (
            r#"{"batches": {"tiny": [1, 2]}}"#,
            "settings: batches.tiny: unknown variant of the weights",
        ),
        (
            r#"{"batches": {"heavy": [1, 9]}}"#,
            "settings: batches: is 9, but heavy takes at most 5",
        ),
    ] {
        assert_eq!(PpoRouter::configure(&catalog, json).unwrap_err(), error);
    }
    install(&network(meta(Kind::Paper, &[1, 3]), &[], &[0.0; 8]));
    assert_eq!(
        PpoRouter::configure(&catalog, r#"{"batches": {"light": [1, 3]}}"#).unwrap_err(),
        "settings: batches.light: must be absent: the weights choose batches"
    );
}
