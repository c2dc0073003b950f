//! HW-E.

use switchyard_sdk::host;
use switchyard_sdk::window::PlacedState;

use super::*;

const HW_E: &str = r#"{"algorithm": "hw-e"}"#;

#[test]
fn arrivals_that_will_be_late_are_rejected() {
    let catalog = catalog();
    host::native::seed(1);
    // Every instance is busy for 261 ms: 261 + 40 > 300.
    let busy = |for_us| {
        let window = WindowBuilder::new(&catalog).request("image");
        (0..4).fold(window, |w, worker| w.busy(worker, HEAVY, for_us))
    };
    let decisions = decide(&catalog, HW_E, busy(261_000));
    assert_eq!(decisions.rejects, [1]);
    let decisions = decide(&catalog, HW_E, busy(260_000));
    assert_eq!(decisions.dispatched(), [1]);
    assert_eq!(decisions.batches[0].variant, HEAVY);
}

#[test]
fn queued_requests_that_will_be_late_are_revoked() {
    let catalog = catalog();
    let queued = PlacedState::Queued;
    // Behind 30 ms of work: a request with 100 ms left ends at 70; one with 100 ms left would end
    // at 110; one with 250 ms left ends at 110 once that one is revoked.
    let window = WindowBuilder::new(&catalog)
        .busy(0, HEAVY, 30_000)
        .placed(0, HEAVY, 7, queued, 200_000)
        .placed(0, HEAVY, 8, queued, 200_000)
        .placed(0, HEAVY, 9, queued, 50_000);
    let decisions = decide(&catalog, HW_E, window);
    assert_eq!(decisions.revokes, [8]);
    assert_eq!(decisions.rejects, [1_001]);
}

#[test]
fn instances_are_filled_up_to_their_capacity() {
    let catalog = catalog();
    host::native::seed(1);
    let window = WindowBuilder::new(&catalog).requests(200, "image");
    let decisions = decide(&catalog, HW_E, window);
    for worker in 0..4 {
        let batches = decisions.batches.iter().filter(|b| b.worker == worker);
        // Seven end by 280 ms, the eighth at 320.
        assert_eq!(batches.count(), 7, "worker {worker}");
    }
    assert_eq!(decisions.rejects.len(), 200 - 4 * 7);
    let small = r#"{"algorithm": "hw-e", "capacity": 3}"#;
    let window = WindowBuilder::new(&catalog).requests(200, "image");
    assert_eq!(decide(&catalog, small, window).batches.len(), 4 * 3);
}
