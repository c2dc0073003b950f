//! AFF, availability and ENR.

use super::*;

/// Two of each app, then where they went.
fn placed(json: &str) -> Vec<(u64, u32)> {
    let catalog = yard().build();
    let window = WindowBuilder::new(&catalog).all_resident();
    let window = window.requests(2, "long").requests(2, "short");
    workers(&decide(&catalog, json, window))
}

#[test]
fn aff_takes_the_fastest_worker_however_long_its_queue() {
    let json = r#"{"algorithm": "aff"}"#;
    assert_eq!(placed(json), [(1, 0), (2, 0), (3, 1), (4, 1)]);
    let catalog = yard().build();
    let window = WindowBuilder::new(&catalog).all_resident();
    let decisions = decide(&catalog, json, window.busy(0, 0, 1_000_000).request("long"));
    assert_eq!(workers(&decisions), [(1, 0)]);
}

#[test]
fn availability_takes_the_shortest_queue() {
    let json = r#"{"algorithm": "availability"}"#;
    // In order of arrival; ties go to the first worker.
    assert_eq!(placed(json), [(1, 0), (2, 1), (3, 2), (4, 0)]);
    let catalog = yard().build();
    let window = WindowBuilder::new(&catalog).all_resident();
    let window = window.busy(0, 0, 1).busy(1, 1, 1).request("short");
    assert_eq!(workers(&decide(&catalog, json, window)), [(1, 2)]);
}

#[test]
fn enr_takes_the_least_energy_and_wants_to_know_it() {
    let json = r#"{"algorithm": "enr"}"#;
    let mut raw = yard().raw();
    let error = Mael::configure(&Catalog::new(raw.clone()).unwrap(), json).unwrap_err();
    assert!(error.contains("energy of long"), "{error}");
    // One, two and a third of a watt: c is the slowest for long, and needs the least.
    for row in &mut raw.profile {
        let milliwatts = [1_000, 2_000, 333][row.kind as usize];
        row.energy_uj = Some(row.latency * milliwatts / 1_000);
    }
    let catalog = Catalog::new(raw).unwrap();
    let window = WindowBuilder::new(&catalog).all_resident();
    let decisions = decide(&catalog, json, window.requests(2, "long").request("short"));
    assert_eq!(workers(&decisions), [(1, 2), (2, 2), (3, 2)]);
}
