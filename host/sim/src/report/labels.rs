//! Names beside the lines they belong to.

use super::svg::text_width;

/// Least distance between the baselines of two names.
const LINE: f64 = 14.0;

/// Moves names apart that stand above each other, as little as it takes, inside `low` to `high`.
pub(super) fn spread(wanted: &[f64], low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut placed = wanted.to_vec();
    let mut floor = low;
    for &at in &order {
        placed[at] = placed[at].max(floor);
        floor = placed[at] + LINE;
    }
    let mut ceiling = high;
    for &at in order.iter().rev() {
        placed[at] = placed[at].min(ceiling);
        ceiling = placed[at] - LINE;
    }
    placed
}

/// A rectangle: left, top, right, bottom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Box2 {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

/// Places of names beside points, and what is in their way.
pub(super) struct Placer {
    inside: Box2,
    taken: Vec<Box2>,
}

// === impl Placer ===

impl Placer {
    pub(super) fn new([left, top, width, height]: [f64; 4]) -> Self {
        Self {
            inside: Box2::new([left, top, width, height]),
            taken: Vec::new(),
        }
    }

    /// Nothing is written here if it can be helped.
    pub(super) fn avoid(&mut self, (x, y): (f64, f64), radius: f64) {
        let side = 2.0 * radius;
        self.taken
            .push(Box2::new([x - radius, y - radius, side, side]));
    }

    /// The baseline's start for a name near a point: where it covers least.
    pub(super) fn place(&mut self, (x, y): (f64, f64), text: &str) -> (f64, f64) {
        let width = text_width(text);
        let beside = [
            (x + 9.0, y + 4.0),
            (x - 9.0 - width, y + 4.0),
            (x - width / 2.0, y - 10.0),
            (x - width / 2.0, y + 19.0),
            (x + 8.0, y - 9.0),
            (x + 8.0, y + 17.0),
            (x - 8.0 - width, y - 9.0),
            (x - 8.0 - width, y + 17.0),
        ];
        let cost = |&(x, y): &(f64, f64)| {
            let own = Box2::new([x, y - 10.0, width, 13.0]);
            let covered: f64 = self.taken.iter().map(|other| own.overlap(other)).sum();
            let outside = width * 13.0 - own.overlap(&self.inside);
            covered + 5.0 * outside
        };
        let best = beside
            .into_iter()
            .min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let (x, y) = best.unwrap_or((x, y));
        self.taken.push(Box2::new([x, y - 10.0, width, 13.0]));
        (x, y)
    }
}

// === impl Box2 ===

impl Box2 {
    fn new([left, top, width, height]: [f64; 4]) -> Self {
        Self {
            left,
            top,
            right: left + width,
            bottom: top + height,
        }
    }

    fn overlap(&self, other: &Self) -> f64 {
        let width = self.right.min(other.right) - self.left.max(other.left);
        let height = self.bottom.min(other.bottom) - self.top.max(other.top);
        width.max(0.0) * height.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_their_distance() {
        let placed = spread(&[50.0, 52.0, 10.0, 95.0], 0.0, 100.0);
        assert_eq!(placed, [50.0, 64.0, 10.0, 95.0]);
        let crowded = spread(&[98.0, 99.0, 100.0], 0.0, 100.0);
        assert_eq!(crowded, [72.0, 86.0, 100.0]);
    }

    #[test]
    fn names_avoid_what_is_there() {
        let mut placer = Placer::new([0.0, 0.0, 300.0, 100.0]);
        placer.avoid((130.0, 50.0), 20.0);
        let (x, _) = placer.place((100.0, 50.0), "edf");
        assert!(x < 100.0, "to the left, for the right is taken: {x}");
    }
}
