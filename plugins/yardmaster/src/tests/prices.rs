use super::*;
use crate::classes;
use crate::price::{Demand, price};

/// The price with 1,000 us of one worker, and choices of 0.6 in 10 us, 0.8 in 30 us (0.01 per us more)
/// and 0.9 in 80 us (0.002 per us more).
fn of(waiting: f64, arriving: f64) -> f64 {
    let variants = [("a", 0.6, 10), ("b", 0.8, 30), ("c", 0.9, 80)];
    let catalog = with_app(CatalogBuilder::new(), "app", &variants)
        .worker("w")
        .build();
    let (menus, classes) = classes::of_catalog(&catalog).unwrap();
    let demand = Demand {
        waiting,
        arriving,
        batch_max: 4,
        within_us: 100_000.0,
    };
    price(&menus, &classes, &[demand], 1_000.0, 0.0)
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}

#[test]
fn time_is_free_while_the_most_accurate_choice_fits() {
    // 10 * 80 us fill 800 of 1,000 us.
    close(of(0.0, 10.0), 0.0);
    close(of(5.0, 5.0), 0.0);
}

#[test]
fn the_price_is_that_of_the_first_step_that_does_not_fit() {
    // 20 * 80 us do not fit, 20 * 30 us do.
    close(of(0.0, 20.0), 0.002);
    // 60 * 30 us do not fit, 60 * 10 us do.
    close(of(0.0, 60.0), 0.01);
    // 200 * 10 us do not fit: answers themselves have the price of 0.6 in 10 us.
    close(of(0.0, 200.0), 0.06);
}

#[test]
fn a_queue_alone_prices_no_request_out() {
    close(of(200.0, 0.0), 0.01);
}
