//! Apps that ask for more than their share of the workers.

use smallvec::SmallVec;

use crate::ids::AppId;
use crate::time::{Micros, Time};

/// The workers that each app's requests keep busy.
pub(crate) type Demands = SmallVec<[f64; 8]>;

/// An app that asks for more than its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flood {
    pub(crate) app: AppId,
    /// It is over once it has not been noticed for so long.
    pub(crate) until: Time,
    /// The time of its usual batch.
    pub(crate) batch: Micros,
}

/// The max-min fair share of `capacity` among these demands: an app that asks for less gets all it
/// asks for, and the others share the rest equally. Infinite when all demands fit, or when only
/// one app asks for anything.
pub(crate) fn fair_level(mut asking: Demands, capacity: f64) -> f64 {
    asking.retain(|demand| *demand > 0.0);
    if asking.len() < 2 || asking.iter().sum::<f64>() <= capacity {
        return f64::INFINITY;
    }
    asking.sort_by(f64::total_cmp);
    let mut left = capacity;
    for (served, demand) in asking.iter().enumerate() {
        let share = left / (asking.len() - served) as f64;
        if *demand > share {
            return share;
        }
        left -= demand;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fair_share_is_max_min() {
        let level = |demands: &[f64], capacity| fair_level(demands.into(), capacity);
        assert_eq!(level(&[0.4, 0.5], 1.0), f64::INFINITY);
        assert_eq!(level(&[10.0, 0.0], 1.0), f64::INFINITY, "alone");
        assert_eq!(level(&[10.0, 0.25], 1.0), 0.75);
        assert_eq!(level(&[10.0, 10.0, 0.5], 2.0), 0.75);
    }
}
