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

#[test]
fn apps_share_the_queue_of_a_worker() {
    let catalog = CatalogBuilder::new()
        .app("image", &["x"])
        .slo_us(300_000)
        .variant("heavy", &[0.8])
        .max_batch(1)
        .latency(0, 40_000)
        .app("sound", &["x"])
        .slo_us(300_000)
        .variant("quick", &[0.8])
        .max_batch(1)
        .latency(0, 10_000)
        .worker("w0")
        .queue_max(14)
        .build();
    let (image, sound, queued) = (0, 1, PlacedState::Queued);
    // Behind 30 ms of work: an image ends at 70, in time. A sound with 75 ms left would end at 80.
    // The next sound has 85 ms left and ends at 80 once that one is revoked, the image after it at
    // 120.
    let window = WindowBuilder::new(&catalog)
        .busy(0, image, 30_000)
        .placed(0, image, 7, queued, 200_000)
        .placed(0, sound, 8, queued, 225_000)
        .placed(0, sound, 9, queued, 215_000)
        .placed(0, image, 10, queued, 175_000);
    let decisions = decide(&catalog, HW_E, window.clone());
    assert_eq!(decisions.revokes, [8]);
    assert_eq!(decisions.rejects, [1_001]);
    // A new image ends at 160, so a new sound ends at 170.
    let arrivals = |slack_us| {
        let window = window.clone().request("image").slack_us(160_000);
        decide(&catalog, HW_E, window.request("sound").slack_us(slack_us))
    };
    assert_eq!(arrivals(170_000).dispatched(), [1, 2]);
    let decisions = arrivals(169_000);
    assert_eq!(decisions.dispatched(), [1]);
    assert_eq!(decisions.rejects, [1_001, 2]);
}
