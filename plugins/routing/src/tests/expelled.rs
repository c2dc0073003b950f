//! HW-E.

use switchyard_sdk::host;
use switchyard_sdk::window::PlacedState;

use super::*;

const HW_E: &str = r#"{"algorithm": "hw-e"}"#;

#[test]
fn arrivals_that_will_miss_are_refused() {
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
fn buffered_requests_that_will_miss_are_taken_back() {
    let catalog = catalog();
    let queued = PlacedState::Queued;
    // Behind 30 ms of work wait, of an SLO of 300 ms: one with 100 ms left, which ends after 70;
    // one with 100 ms left, which would end after 110; one with 250 ms left, which ends after
    // 110 once that one is gone.
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
fn all_instances_get_their_share_and_no_more_than_they_hold() {
    let catalog = catalog();
    host::native::seed(1);
    let window = WindowBuilder::new(&catalog).requests(200, "image");
    let decisions = decide(&catalog, HW_E, window);
    for worker in 0..4 {
        let batches = decisions.batches.iter().filter(|b| b.worker == worker);
        // Seven in a row end by 280 ms, the eighth at 320.
        assert_eq!(batches.count(), 7, "worker {worker}");
    }
    assert_eq!(decisions.rejects.len(), 200 - 4 * 7);
    let small = r#"{"algorithm": "hw-e", "capacity": 3}"#;
    let window = WindowBuilder::new(&catalog).requests(200, "image");
    assert_eq!(decide(&catalog, small, window).batches.len(), 4 * 3);
}
