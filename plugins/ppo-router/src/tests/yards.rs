//! Which worker is which instance.

use super::*;

fn workers(catalog: &Catalog, json: &str) -> Result<Vec<(u32, u32)>, String> {
    install(&three_to_one());
    let policy = PpoRouter::configure(catalog, json)?;
    let instances = policy.yard.instances.iter();
    Ok(instances.map(|i| (i.worker.0, i.variant.0)).collect())
}

#[test]
fn workers_serve_in_turn_or_as_they_are_told() {
    let catalog = catalog();
    assert_eq!(workers(&catalog, "{}").unwrap(), [(0, HEAVY), (1, LIGHT)]);
    let named = r#"{"instances": {"w0": "light", "w1": "heavy"}}"#;
    assert_eq!(workers(&catalog, named).unwrap(), [(1, HEAVY), (0, LIGHT)]);
    let twice = r#"{"instances": {"w0": "light", "w1": "light"}}"#;
    assert_eq!(
        workers(&catalog, twice).unwrap_err(),
        "settings: instances: the weights were trained for heavy, light, a worker each"
    );
}

#[test]
fn other_apps_are_served_as_they_come() {
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
fn batches_of_weights_that_choose_none_are_a_setting() {
    let catalog = catalog();
    install(&three_to_one());
    let mut policy = policy(&catalog, r#"{"batches": {"light": [2, 3]}}"#);
    let decisions = run(&mut policy, &catalog, &WindowBuilder::new(&catalog).build());
    let bounds = decisions.routes[0].lanes.iter();
    let bounds: Vec<_> = bounds
        .map(|lane| (lane.min_batch, lane.max_batch, lane.capacity))
        .collect();
    // Three inside: one in service and two that wait; or three in service, and room for a batch.
    assert_eq!(bounds, [(1, 1, 2), (2, 3, 2)]);
    for (json, error) in [
        (
            r#"{"batches": {"tiny": [1, 2]}}"#,
            "settings: batches.tiny: the weights are for no such variant",
        ),
        (
            r#"{"batches": {"heavy": [1, 9]}}"#,
            "settings: batches: 9 requests are more than a batch of heavy, 5",
        ),
    ] {
        assert_eq!(PpoRouter::configure(&catalog, json).unwrap_err(), error);
    }
    install(&network(meta(Kind::Paper, &[1, 3]), &[], &[0.0; 8]));
    assert_eq!(
        PpoRouter::configure(&catalog, r#"{"batches": {"light": [1, 3]}}"#).unwrap_err(),
        "settings: batches.light: the weights choose them"
    );
}
