//! The price of a worker's time: the utility that a microsecond of it earns with the requests that wait and
//! those that will arrive within the horizon. The dual of
//!
//! ```text
//! maximise   sum over lanes of requests * accuracy of its choices
//! subject to sum over lanes of requests * time of its choices <= time of the workers
//! ```

use crate::classes::Classes;
use crate::menu::Menu;

/// The demand of one lane within the horizon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Requests that wait.
    pub(crate) waiting: f64,
    /// Requests that arrive.
    pub(crate) arriving: f64,
    /// Largest batch that the requests fill within an SLO.
    pub(crate) batch_max: usize,
    /// Longest batch: the time from arrival to deadline.
    pub(crate) within_us: f64,
}

/// The next better choice of a lane, and its price.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// Utility per microsecond.
    price: f64,
    /// Time that it takes more, for the requests that arrive.
    arriving_us: f64,
    /// And for those that wait.
    waiting_us: f64,
    /// The step from no answer to the cheapest.
    is_first: bool,
}

/// The earnings of a request of the lane with its best choice at a price, in the batches of the demand.
pub(crate) fn surplus(
    menu: &Menu,
    classes: &Classes,
    demand: &Demand,
    punctuality: f64,
    price: f64,
) -> f64 {
    let net = |(time_us, accuracy): (f64, f64)| accuracy - price * time_us;
    points(menu, classes, demand, punctuality)
        .map(net)
        .fold(f64::NEG_INFINITY, f64::max)
}

/// Time and utility of a request with each choice, on the class where it costs least.
fn points<'a>(
    menu: &'a Menu,
    classes: &'a Classes,
    demand: &'a Demand,
    punctuality: f64,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let choices = menu.choices.iter().zip(&menu.unseen);
    choices.filter_map(move |(choice, &accuracy)| {
        let times = choice
            .costs
            .iter()
            .zip(&classes.speeds)
            .map(|(cost, speed)| cost.per_request_us(demand.batch_max, demand.within_us) * speed);
        let time_us = times.fold(f64::INFINITY, f64::min);
        time_us
            .is_finite()
            .then_some((time_us, accuracy + punctuality))
    })
}

/// The price of a microsecond; `room_us` is the time of all workers at speed 1.
pub(crate) fn price(
    menus: &[Menu],
    classes: &Classes,
    demands: &[Demand],
    room_us: f64,
    punctuality: f64,
) -> f64 {
    let mut steps: Vec<Step> = Vec::new();
    for (menu, demand) in menus.iter().zip(demands) {
        if demand.waiting + demand.arriving > 0.0 {
            steps_of(menu, classes, demand, punctuality, &mut steps);
        }
    }
    steps.sort_by(|a, b| b.price.total_cmp(&a.price));
    let mut left_us = room_us;
    // A short queue alone is no reason to leave requests unanswered.
    for step in steps.iter().filter(|step| step.is_first) {
        left_us -= step.arriving_us;
        if left_us < 0.0 {
            return step.price;
        }
    }
    let firsts = steps.iter().filter(|step| step.is_first);
    left_us -= firsts.map(|step| step.waiting_us).sum::<f64>();
    for step in steps.iter().filter(|step| !step.is_first) {
        left_us -= step.arriving_us + step.waiting_us;
        if left_us < 0.0 {
            return step.price;
        }
    }
    0.0
}

/// The steps along the upper hull of accuracy over time, from no answer, or one from evidence, on.
fn steps_of(
    menu: &Menu,
    classes: &Classes,
    demand: &Demand,
    punctuality: f64,
    steps: &mut Vec<Step>,
) {
    let from_evidence = menu
        .from_evidence
        .map_or(0.0, |accuracy| accuracy + punctuality);
    let mut points: Vec<(f64, f64)> = points(menu, classes, demand, punctuality).collect();
    points.push((0.0, from_evidence));
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let mut hull: Vec<(f64, f64)> = Vec::new();
    let slope = |a: (f64, f64), b: (f64, f64)| (b.1 - a.1) / (b.0 - a.0).max(f64::MIN_POSITIVE);
    for point in points {
        if hull.last().is_some_and(|last| point.1 <= last.1) {
            continue;
        }
        while let [.., before, last] = hull[..]
            && slope(before, last) <= slope(last, point)
        {
            hull.pop();
        }
        hull.push(point);
    }
    let pairs = hull.windows(2).enumerate().map(|(at, pair)| {
        let more_us = pair[1].0 - pair[0].0;
        Step {
            price: slope(pair[0], pair[1]),
            arriving_us: more_us * demand.arriving,
            waiting_us: more_us * demand.waiting,
            is_first: at == 0 && menu.from_evidence.is_none(),
        }
    });
    steps.extend(pairs);
}
