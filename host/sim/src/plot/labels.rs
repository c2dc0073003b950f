//! Positions of names that do not cover each other.

use super::svg::{Area, text_width};

/// Least distance between the base lines of two names.
const LINE: f64 = 14.0;

/// Height of a name, and how much of it is above its base line.
const NAME_HEIGHT: f64 = 13.0;
const ASCENT: f64 = 10.0;

/// Rings of positions around a point that are tried for its name.
const RINGS: i32 = 8;

/// Cost of covering another name, and of leaving the plotting area, compared with covering a mark.
const NAME_COST: f64 = 30.0;
const OUTSIDE_COST: f64 = 60.0;

/// Moves base lines that are too close apart, as little as possible, between `low` and `high`.
pub fn spread(wanted: &[f64], low: f64, high: f64) -> Vec<f64> {
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

/// Finds positions for names next to their points.
#[derive(Clone, Debug)]
pub struct LabelPlacer {
    inside: Area,
    marks: Vec<Area>,
    names: Vec<Area>,
}

// === impl LabelPlacer ===

impl LabelPlacer {
    /// For names inside an area.
    pub fn new(inside: Area) -> Self {
        Self {
            inside,
            marks: Vec::new(),
            names: Vec::new(),
        }
    }

    /// A mark that names should not cover.
    pub fn avoid(&mut self, (x, y): (f64, f64), radius: f64) {
        let side = 2.0 * radius;
        self.marks
            .push(Area::new(x - radius, y - radius, side, side));
    }

    /// The start of the base line of a name near its point: the position that covers the least, and
    /// of equals the nearest.
    pub fn place(&mut self, point: (f64, f64), text: &str) -> (f64, f64) {
        let width = text_width(text);
        let mut best = (f64::INFINITY, point);
        for (distance, at) in candidates(point, width) {
            let cost = self.cost(name_area(at, width)) + distance;
            if cost < best.0 {
                best = (cost, at);
            }
        }
        self.names.push(name_area(best.1, width));
        best.1
    }

    fn cost(&self, name: Area) -> f64 {
        let covered = |areas: &[Area]| areas.iter().map(|area| name.overlap(area)).sum::<f64>();
        let outside = name.width * name.height - name.overlap(&self.inside);
        covered(&self.marks) + NAME_COST * covered(&self.names) + OUTSIDE_COST * outside
    }
}

fn name_area((x, y): (f64, f64), width: f64) -> Area {
    Area::new(x, y - ASCENT, width, NAME_HEIGHT)
}

/// Positions around a point, each with the cost of its distance.
fn candidates((x, y): (f64, f64), width: f64) -> impl Iterator<Item = (f64, (f64, f64))> {
    let (right, left, middle) = (x + 9.0, x - 9.0 - width, x - width / 2.0);
    let level = [(0.0, (right, y + 4.0)), (0.5, (left, y + 4.0))];
    let around = (1..=RINGS).flat_map(move |ring| {
        let (by, far) = (LINE * f64::from(ring), 4.0 * f64::from(ring));
        [(far, y + 4.0 - by), (far + 0.2, y + 4.0 + by)]
            .into_iter()
            .flat_map(move |(far, y)| {
                [
                    (far, (right, y)),
                    (far + 0.5, (left, y)),
                    (far + 0.7, (middle, y)),
                ]
            })
    });
    level.into_iter().chain(around)
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
    fn a_name_avoids_marks() {
        let mut placer = LabelPlacer::new(Area::new(0.0, 0.0, 300.0, 100.0));
        placer.avoid((130.0, 50.0), 20.0);
        let (x, _) = placer.place((100.0, 50.0), "edf");
        assert!(
            x < 100.0,
            "to the left, because a mark is on the right: {x}"
        );
    }

    #[test]
    fn names_of_one_point_do_not_cover_each_other() {
        let mut placer = LabelPlacer::new(Area::new(40.0, 20.0, 340.0, 200.0));
        let names = [
            "sneakpeek",
            "edgeserving",
            "edf",
            "fcfs",
            "jellyfish",
            "slo-mael",
            "lo-edf",
        ];
        let corner = (42.0, 24.0);
        placer.avoid(corner, 6.0);
        for name in names {
            placer.place(corner, name);
        }
        for (at, name) in placer.names.iter().enumerate() {
            let outside = name.width * name.height - name.overlap(&placer.inside);
            assert!(outside < 1e-9, "{} leaves the area", names[at]);
            for other in &placer.names[..at] {
                assert!(name.overlap(other) < 1e-9, "{} is covered", names[at]);
            }
        }
    }
}
