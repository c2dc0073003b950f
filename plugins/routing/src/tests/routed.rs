//! LW, HW, SA and INFaaS.

use switchyard_sdk::window::PlacedState;

use super::*;

#[test]
fn lw_and_hw_have_one_variant_on_all_workers() {
    let catalog = catalog();
    for (json, variant) in [
        (r#"{"algorithm": "lw"}"#, LIGHT),
        (r#"{"algorithm": "hw"}"#, HEAVY),
    ] {
        let decisions = decide(&catalog, json, WindowBuilder::new(&catalog));
        let expected: Vec<_> = (0..4).map(|worker| (worker, variant, 0.25)).collect();
        assert_eq!(lanes(&decisions), expected);
        let lane = &decisions.routes[0].lanes[0];
        assert_eq!((lane.min_batch, lane.max_batch), (1, 1));
        assert_eq!(lane.capacity, 14, "15 with the one in service");
        assert_eq!(decisions.wake_us, Some(1_100_000));
    }
}

#[test]
fn the_route_stays_within_a_slot_unless_a_worker_goes_down() {
    let catalog = catalog();
    let mut policy = policy(&catalog, r#"{"algorithm": "lw"}"#);
    let at = |now_us| WindowBuilder::new(&catalog).now_us(now_us);
    run(&mut policy, &catalog, &at(1_000_000).build());
    let between = run(&mut policy, &catalog, &at(1_050_000).build());
    assert!(between.routes.is_empty());
    let one_away = at(1_060_000).away(1).request("image");
    let one_away = run(&mut policy, &catalog, &one_away.build());
    let workers: Vec<u32> = lanes(&one_away).iter().map(|lane| lane.0).collect();
    assert_eq!(workers, [0, 2, 3]);
    assert_eq!(one_away.dispatched(), [1], "the request of the lost worker");
    let all_away = (0..4).fold(at(1_070_000), WindowBuilder::away);
    let all_away = run(&mut policy, &catalog, &all_away.build());
    assert!(lanes(&all_away).is_empty());
}

#[test]
fn sa_infers_the_phase_from_the_rate() {
    let catalog = catalog();
    let json = r#"{"algorithm": "sa", "rates": [180, 10]}"#;
    let at_rate = |per_s| {
        let window = WindowBuilder::new(&catalog).arrival_rate(0, per_s);
        lanes(&decide(&catalog, json, window))
    };
    // Both phases are equally likely at 170 / ln 18 = 58.8/s.
    let (normal, bursty) = (at_rate(58.0), at_rate(60.0));
    assert_eq!(normal[0].2 + normal[1].2, 1.0, "all heavy: {normal:?}");
    let heavy = bursty[0].2 + bursty[1].2;
    assert!((0.2..0.3).contains(&heavy), "{heavy}");
    assert_eq!(bursty[0].2, bursty[1].2);
    assert_eq!(bursty[2].2, bursty[3].2);
}

#[test]
fn infaas_spares_instances_with_more_work_than_a_slot() {
    let catalog = catalog();
    let json = r#"{"algorithm": "infaas"}"#;
    let waiting = |worker, variant, count| {
        let window = WindowBuilder::new(&catalog).busy(worker as usize, variant, 20_000);
        let lane = PlacedState::Lane;
        (0..count).fold(window, |w, _| w.placed(worker, variant, 0, lane, 0))
    };
    let shares = |window| -> Vec<f64> {
        let lanes = lanes(&decide(&catalog, json, window));
        lanes.iter().map(|lane| lane.2).collect()
    };
    // 20 + 2 * 40 ms = 100 ms, with one more 140 ms.
    assert_eq!(shares(waiting(0, HEAVY, 2)), [0.25; 4]);
    let third = 1.0 / 3.0;
    assert_eq!(shares(waiting(0, HEAVY, 3)), [0.0, third, third, third]);
    // 20 + 8 * 10 ms = 100 ms, with one more 110 ms.
    assert_eq!(shares(waiting(2, LIGHT, 8)), [0.25; 4]);
    assert_eq!(shares(waiting(2, LIGHT, 9)), [third, third, 0.0, third]);
}

#[test]
fn infaas_uses_all_instances_if_all_are_overloaded() {
    let catalog = catalog();
    let window = WindowBuilder::new(&catalog);
    let window = (0..4).fold(window, |w, worker| w.busy(worker, LIGHT, 100_001));
    let decisions = decide(&catalog, r#"{"algorithm": "infaas"}"#, window);
    assert_eq!(lanes(&decisions).iter().map(|l| l.2).sum::<f64>(), 1.0);
}

#[test]
fn the_setting_instances_names_workers() {
    let catalog = catalog();
    let json = r#"{"algorithm": "infaas", "instances": {"w3": "heavy", "w1": "light"}}"#;
    let decisions = decide(&catalog, json, WindowBuilder::new(&catalog));
    assert_eq!(lanes(&decisions), [(1, LIGHT, 0.5), (3, HEAVY, 0.5)]);
    let error = Routing::configure(&catalog, r#"{"instances": {"w3": "huge"}}"#).unwrap_err();
    let at = "settings: instances.w3: ";
    assert!(error.starts_with(at) && error.contains("huge"), "{error}");
}
