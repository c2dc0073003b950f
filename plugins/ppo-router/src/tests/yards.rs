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
