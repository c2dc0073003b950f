//! The cost of a request: its share of the time of a batch, in rows of the profile.
//!
//! A profile is measured with equal requests, and the requests of texts and of tensors with open
//! dimensions are not equal. A request that takes as long as one of those measured costs 1; a batch
//! takes as long as one of the profile with as many rows as its requests cost together.

use std::iter::Sum;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

const UNIT: u32 = 256;

/// A number of rows of the profile, fixed-point, so that it is the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cost(u32);

/// The cost of a request by its length: linear between the points, that of the first point below it,
/// and beyond the last one as between the last two, if costs grow there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostCurve(Vec<CostPoint>);

/// The cost of requests of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostPoint {
    /// Tokens of a text, or values of a tensor with open dimensions.
    pub length: u32,
    /// Its cost.
    pub cost: Cost,
}

// === impl Cost ===

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// A request as long as those of the profile.
    pub const ONE: Self = Self(UNIT);

    /// The least cost of a request.
    pub const LEAST: Self = Self(UNIT / 32);

    /// As many requests of cost 1.
    pub fn rows(count: usize) -> Self {
        Self::whole(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// As many requests of cost 1.
    pub const fn whole(rows: u32) -> Self {
        Self(rows.saturating_mul(UNIT))
    }

    /// The rows, if they are whole.
    pub(crate) fn as_whole(self) -> Option<u32> {
        self.0.is_multiple_of(UNIT).then_some(self.0 / UNIT)
    }

    /// Rows, rounded up.
    pub fn ceil(self) -> u32 {
        self.0.div_ceil(UNIT)
    }

    /// As a number of rows.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(UNIT)
    }

    /// The cost nearest to a number of rows, and no less than [`LEAST`](Self::LEAST).
    pub fn from_f64(rows: f64) -> Self {
        // A cast saturates, and makes 0 of what is no number.
        Self((rows * f64::from(UNIT) + 0.5) as u32).max(Self::LEAST)
    }

    /// Whole rows, and the part of a further one in 1/256.
    pub(crate) fn parts(self) -> (u32, u32) {
        (self.0 / UNIT, self.0 % UNIT)
    }

    /// The part of `value` that belongs to `fraction` 256ths, rounded up.
    pub(crate) fn share(value: u64, fraction: u32) -> u64 {
        (value * u64::from(fraction)).div_ceil(u64::from(UNIT))
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::ZERO, Add::add)
    }
}

// === impl CostCurve ===

impl CostCurve {
    /// A curve through these points. Of points with equal lengths the last one counts.
    pub fn new(points: impl IntoIterator<Item = CostPoint>) -> Self {
        let mut curve: Vec<CostPoint> = Vec::new();
        for point in points {
            match curve.binary_search_by_key(&point.length, |known| known.length) {
                Ok(at) => curve[at] = point,
                Err(at) => curve.insert(at, point),
            }
        }
        Self(curve)
    }

    /// The points, by ascending length.
    pub fn points(&self) -> &[CostPoint] {
        &self.0
    }

    /// The cost of a request of this length; 1 without points.
    pub fn of(&self, length: u32) -> Cost {
        let at = self.0.partition_point(|point| point.length < length);
        let below = at.checked_sub(1).map(|below| self.0[below]);
        match (below, self.0.get(at)) {
            (Some(low), Some(high)) => {
                let span = u64::from(high.length - low.length);
                let into = u64::from(length - low.length);
                let rise = |from: Cost, to: Cost| u64::from((to - from).0) * into / span;
                let up = rise(low.cost, high.cost) as u32;
                let down = rise(high.cost, low.cost) as u32;
                Cost(low.cost.0 + up - down)
            }
            (Some(last), None) => self.beyond(last, length),
            (None, Some(only)) => only.cost,
            (None, None) => Cost::ONE,
        }
    }

    /// Long requests are not measured if they take long, and cost the more.
    fn beyond(&self, last: CostPoint, length: u32) -> Cost {
        let before = self.0.len().checked_sub(2).map(|before| self.0[before]);
        let Some(before) = before.filter(|before| before.cost < last.cost) else {
            return last.cost;
        };
        let span = u64::from(last.length - before.length);
        let into = u64::from(length - last.length);
        let rise = u64::from((last.cost - before.cost).0).saturating_mul(into) / span;
        Cost(u32::try_from(rise).unwrap_or(u32::MAX)) + last.cost
    }

    /// The least length with at least this cost, or the greatest length of a point; none without points.
    /// The costs must grow with the lengths.
    pub fn length_of(&self, cost: Cost) -> Option<u32> {
        let (mut least, mut greatest) = (self.0.first()?.length, self.0.last()?.length);
        while least < greatest {
            let middle = least.midpoint(greatest);
            match self.of(middle) < cost {
                true => least = middle + 1,
                false => greatest = middle,
            }
        }
        Some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_to_rows() {
        let half = Cost::from_f64(0.5);
        let sum: Cost = [half, Cost::ONE, Cost::from_f64(2.25)].into_iter().sum();
        assert_eq!((sum.as_f64(), sum.ceil(), sum.parts()), (3.75, 4, (3, 192)));
        assert_eq!(Cost::rows(3) - half, Cost::from_f64(2.5));
        assert_eq!(half - Cost::ONE, Cost::ZERO);
        assert_eq!(Cost::from_f64(f64::NAN), Cost::LEAST);
        assert_eq!(Cost::rows(usize::MAX) + Cost::ONE, Cost(u32::MAX));
    }

    #[test]
    fn a_curve_is_linear_between_its_points_and_beyond_them() {
        let point = |length, rows: f64| CostPoint {
            length,
            cost: Cost::from_f64(rows),
        };
        let curve = CostCurve::new([point(64, 1.0), point(16, 0.25), point(128, 4.0)]);
        let of = |length| curve.of(length).as_f64();
        assert_eq!(
            [of(1), of(16), of(64), of(96), of(128), of(256)],
            [0.25, 0.25, 1.0, 2.5, 4.0, 10.0]
        );
        assert_eq!(of(40), 0.625);
        let lengths =
            [0.1, 0.25, 0.625, 4.0, 9.0].map(|rows| curve.length_of(Cost::from_f64(rows)));
        assert_eq!(lengths, [16, 16, 40, 128, 128].map(Some));
        assert_eq!(CostCurve::default().length_of(Cost::ONE), None);
        let falls = CostCurve::new([point(1, 2.0), point(3, 1.0)]);
        assert_eq!(falls.of(2).as_f64(), 1.5);
        assert_eq!(falls.of(9), Cost::ONE);
        assert_eq!(curve.of(u32::MAX), Cost(u32::MAX));
        assert_eq!(CostCurve::new([point(64, 1.0)]).of(640), Cost::ONE);
        assert_eq!(CostCurve::default().of(7), Cost::ONE);
    }
}
