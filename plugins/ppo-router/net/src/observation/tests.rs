use super::*;
use crate::fixtures::layout;

fn state<'a>(instances: &'a [InstanceState<'a>]) -> SlotState<'a> {
    SlotState {
        now_us: 5_000,
        instances,
        ended: 7,
        rate: 180.0,
        phase: PhaseState {
            phase: 1,
            since_us: 2_500,
        },
    }
}

#[test]
fn numbers_are_in_the_order_of_the_table() {
    let mut observer = Observer::new(layout(Kind::Paper));
    let busy = InstanceState {
        arrivals_us: &[4_500, 4_750],
        running_since_us: Some(4_950),
        running: 1,
    };
    let numbers = observer.observe(&state(&[busy, InstanceState::default()]));
    let busy = [0.0, 0.0, 1.0, 0.0, 0.5, 0.5, 0.25, 0.0, 0.0];
    let idle = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(numbers, [busy, idle].concat());
    // The paper's: 16 counts, 16 ages, one elapsed time, of four instances.
    let paper = Layout {
        instances: 4,
        capacity: 15,
        ..layout(Kind::Paper)
    };
    assert_eq!(paper.width(), 4 * 33);
}

#[test]
fn all_numbers_are_between_0_and_1() {
    let mut observer = Observer::new(layout(Kind::Full));
    let stuck = InstanceState {
        arrivals_us: &[0; 9],
        running_since_us: Some(0),
        running: 5,
    };
    let numbers = observer.observe(&state(&[stuck, stuck, stuck])).to_vec();
    assert_eq!(numbers.len(), observer.layout().width());
    assert!(numbers.iter().all(|x| (0.0..=1.0).contains(x)));
    assert_eq!(numbers[..9], [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    assert_eq!(numbers[18..], [0.0, 1.0, 0.25], "the phase");
}

#[test]
fn with_batch_bounds_requests_in_service_are_observed() {
    let batching = Layout {
        largest_batch: 5,
        ..layout(Kind::Paper)
    };
    let mut observer = Observer::new(batching);
    let running = InstanceState {
        arrivals_us: &[1, 2, 3],
        running_since_us: Some(4_990),
        running: 3,
    };
    let numbers = observer.observe(&state(&[running]));
    assert_eq!((numbers.len(), numbers[9], numbers[19]), (20, 0.6, 0.0));
}

#[test]
fn arrivals_are_ended_requests_plus_the_increase() {
    let mut observer = Observer::new(layout(Kind::Extended));
    let two = InstanceState {
        arrivals_us: &[1, 2],
        ..InstanceState::default()
    };
    let first = observer.observe(&state(&[two])).to_vec();
    assert_eq!(first.len(), observer.layout().width());
    assert_eq!(first[9], 2.0 / 3.0, "two more than before");
    let log = |count: f32| libm::logf(1.0 + count) * (1.0 / libm::logf(181.0));
    assert_eq!(first[20..], [log(9.0), 0.0, 0.0, 0.0, log(180.0)]);
    let second = observer.observe(&state(&[])).to_vec();
    assert_eq!(second[9], -2.0 / 3.0);
    assert_eq!(second[20..24], [log(5.0), log(9.0), 0.0, 0.0]);
}
