//! AFF, availability and ENR.

use super::*;

/// The workers of two requests of each app.
fn placed(json: &str) -> Vec<(u64, u32)> {
    let catalog = test_bed().build();
    let window = WindowBuilder::new(&catalog).all_resident();
    let window = window.requests(2, "long").requests(2, "short");
    workers(&decide(&catalog, json, window))
}

#[test]
fn aff_takes_the_fastest_worker_regardless_of_its_queue() {
    let json = r#"{"algorithm": "aff"}"#;
    assert_eq!(placed(json), [(1, 0), (2, 0), (3, 1), (4, 1)]);
    let catalog = test_bed().build();
    let window = WindowBuilder::new(&catalog).all_resident();
    let decisions = decide(&catalog, json, window.busy(0, 0, 1_000_000).request("long"));
    assert_eq!(workers(&decisions), [(1, 0)]);
}

#[test]
fn availability_takes_the_shortest_queue() {
    let json = r#"{"algorithm": "availability"}"#;
    // In order of arrival; ties go to the first worker.
    assert_eq!(placed(json), [(1, 0), (2, 1), (3, 2), (4, 0)]);
    let catalog = test_bed().build();
    let window = WindowBuilder::new(&catalog).all_resident();
    let window = window.busy(0, 0, 1).busy(1, 1, 1).request("short");
    assert_eq!(workers(&decide(&catalog, json, window)), [(1, 2)]);
}

#[test]
fn enr_takes_the_least_energy_and_needs_it_in_the_profile() {
    let json = r#"{"algorithm": "enr"}"#;
    let mut raw = test_bed().raw();
    let error = Mael::configure(&Catalog::new(raw.clone()).unwrap(), json).unwrap_err();
    assert!(
        error.contains("energy_uj") && error.contains("app long"),
        "{error}"
    );
    // 1, 2 and 1/3 W: c is slowest for long and needs the least energy.
    for row in &mut raw.profile {
        let milliwatts = [1_000, 2_000, 333][row.kind as usize];
        row.energy_uj = Some(row.latency * milliwatts / 1_000);
    }
    let catalog = Catalog::new(raw).unwrap();
    let window = WindowBuilder::new(&catalog).all_resident();
    let decisions = decide(&catalog, json, window.requests(2, "long").request("short"));
    assert_eq!(workers(&decisions), [(1, 2), (2, 2), (3, 2)]);
}
