//! The links and deaths of the simulated fleets.

use switchyard_core::ids::WorkerId;
use switchyard_core::time::{Micros, Time};
use switchyard_sim::{LinkTimes, Observer, RandomDeaths};

/// Within a data centre: 100 to 300 us each way, one message of a thousand is sent again after 20 ms.
pub(crate) const LINKS: LinkTimes = LinkTimes {
    delay_us: Micros(100),
    jitter_us: Micros(200),
    loss: 0.001,
    resend_us: Micros::from_millis(20),
};

/// Of 1,000 workers one dies every 5 ms, and a tenth of them is away.
pub(crate) const DEATHS: RandomDeaths = RandomDeaths {
    lives_us: Micros::from_millis(4_500),
    away_us: Micros::from_millis(500),
};

/// Counts lost workers.
#[derive(Default)]
pub(crate) struct Lost(pub(crate) u64);

impl Observer for Lost {
    fn lost(&mut self, _: Time, _: WorkerId) {
        self.0 += 1;
    }
}
