//! One model on several workers that take batches from one queue, in simulated time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use switchyard_sim::random::{Purpose, Stream};

/// One model under one load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimulatedQueue<'a> {
    /// By batch from 1 up to the largest, in microseconds.
    pub(crate) latencies_us: &'a [u64],
    pub(crate) workers: u32,
    pub(crate) load_rps: f64,
    /// Seconds of arrivals.
    pub(crate) seconds: f64,
    pub(crate) seed: u64,
}

impl SimulatedQueue<'_> {
    /// The percentile (0 to 1, nearest rank) of the time from arrival to answer, in microseconds;
    /// none if it is not below `limit_us`. Arrivals are Poisson; an idle worker takes waiting
    /// requests at once, oldest first.
    pub(crate) fn response_us(&self, percentile: f64, limit_us: u64) -> Option<u64> {
        let expected = self.load_rps * self.seconds;
        let late_max = ((1.0 - percentile) * expected * 2.0) as usize + 1;
        let mut arrivals = PoissonArrivals::new(self);
        let mut free_us: BinaryHeap<Reverse<u64>> = (0..self.workers).map(|_| Reverse(0)).collect();
        let mut waiting = VecDeque::new();
        let (mut responses_us, mut late) = (Vec::with_capacity(expected as usize), 0);
        loop {
            if waiting.is_empty() {
                match arrivals.next() {
                    Some(at) => waiting.push_back(at),
                    None => break,
                }
            }
            let Reverse(free) = free_us.pop()?;
            let start = waiting.front().map_or(free, |&first| free.max(first));
            while let Some(at) = arrivals.next_until(start) {
                waiting.push_back(at);
            }
            let size = waiting.len().min(self.latencies_us.len());
            let end = start + self.latencies_us.get(size.checked_sub(1)?)?;
            free_us.push(Reverse(end));
            for at in waiting.drain(..size) {
                late += usize::from(end - at >= limit_us);
                responses_us.push(end - at);
            }
            if late > late_max {
                return None;
            }
        }
        let rank = (percentile * responses_us.len() as f64).ceil() as usize;
        let at = rank.clamp(1, responses_us.len().max(1)) - 1;
        if at >= responses_us.len() {
            return None;
        }
        let (_, response, _) = responses_us.select_nth_unstable(at);
        Some(*response).filter(|&us| us < limit_us)
    }
}

/// Poisson arrivals, in whole microseconds.
struct PoissonArrivals {
    random: Stream,
    gap_us: f64,
    end_us: f64,
    /// Time of the next arrival.
    at_us: f64,
}

impl PoissonArrivals {
    fn new(queue: &SimulatedQueue<'_>) -> Self {
        let mut made = Self {
            random: Stream::new(queue.seed, Purpose::Arrivals, 0),
            gap_us: 1e6 / queue.load_rps,
            end_us: queue.seconds * 1e6,
            at_us: 0.0,
        };
        made.advance();
        made
    }

    fn advance(&mut self) {
        self.at_us += self.random.exponential() * self.gap_us;
    }

    fn next(&mut self) -> Option<u64> {
        self.next_until(u64::MAX)
    }

    /// The next arrival, if it is no later than `until_us`.
    fn next_until(&mut self, until_us: u64) -> Option<u64> {
        let at = self.at_us as u64;
        if self.at_us >= self.end_us || at > until_us {
            return None;
        }
        self.advance();
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn queue(latencies_us: &[u64], workers: u32, load_rps: f64) -> SimulatedQueue<'_> {
        SimulatedQueue {
            latencies_us,
            workers,
            load_rps,
            seconds: 200.0,
            seed: 1,
        }
    }

    #[test]
    fn without_waiting_the_response_is_the_latency() {
        assert_eq!(
            queue(&[1_000], 4, 5.0).response_us(0.99, 10_000),
            Some(1_000)
        );
    }

    #[test]
    fn waiting_times_are_those_of_an_md1_queue() {
        // M/D/1 at half load: P(W > t) is about 0.661 exp(-1.256 t), t in services: p99 is 3.34.
        let us = queue(&[10_000], 1, 50.0)
            .response_us(0.99, 1_000_000)
            .unwrap();
        assert!((41_000..46_000).contains(&us), "{us}");
    }

    #[test]
    fn overload_is_never_below_the_limit() {
        assert_eq!(queue(&[10_000], 2, 220.0).response_us(0.99, 100_000), None);
        // Batches of two sustain the load.
        let batches = queue(&[10_000, 12_000], 2, 220.0).response_us(0.99, 100_000);
        assert!(batches.is_some_and(|us| us < 40_000), "{batches:?}");
        assert_eq!(queue(&[], 2, 220.0).response_us(0.99, 100_000), None);
    }
}
