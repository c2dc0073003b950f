//! The rows whose activations are kept on this worker, by scheduler and row.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rustc_hash::FxBuildHasher;
use switchyard_core::ids::RequestId;

use crate::ingress::{ConnectionLife, StageCall};

/// Longest time that activations are kept for a scheduler that does not come back to them.
const KEPT_FOR: Duration = Duration::from_secs(300);

/// A row of a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ParkKey {
    pub(super) session: u64,
    pub(super) row: u64,
}

/// The rows of a batch that will be kept, and the connection that they came on.
#[derive(Clone, Debug)]
pub(super) struct ParkingBatch {
    pub(super) rows: Vec<(ParkKey, RequestId)>,
    pub(super) connection: ConnectionLife,
}

/// All rows that are kept.
#[derive(Debug)]
pub(super) struct Parking {
    rows: HashMap<ParkKey, KeptRow, FxBuildHasher>,
    /// Requests whose activations the executor is yet to drop.
    dropped: Vec<RequestId>,
    /// Most rows.
    max: usize,
    /// Rows that were ever kept.
    pub(super) parked: u64,
    /// Rows that were dropped although their scheduler may come back to them.
    pub(super) lost: u64,
}

#[derive(Debug)]
struct KeptRow {
    request: RequestId,
    connection: ConnectionLife,
    since: Instant,
}

// === impl ParkKey ===

impl ParkKey {
    /// The keys of a call's rows.
    pub(super) fn of(call: &StageCall) -> Vec<Self> {
        let session = call.session;
        call.rows.iter().map(|&row| Self { session, row }).collect()
    }
}

// === impl Parking ===

impl Parking {
    pub(super) fn new(max: usize) -> Self {
        Self {
            rows: HashMap::default(),
            dropped: Vec::new(),
            max,
            parked: 0,
            lost: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Keeps the rows of a batch. Beyond the most rows the oldest ones go.
    pub(super) fn park(&mut self, now: Instant, batch: ParkingBatch) {
        self.parked += batch.rows.len() as u64;
        for (key, request) in batch.rows {
            let kept = KeptRow {
                request,
                connection: batch.connection.clone(),
                since: now,
            };
            let before = self.rows.insert(key, kept);
            self.dropped.extend(before.map(|before| before.request));
        }
        while self.rows.len() > self.max {
            let oldest = self
                .rows
                .iter()
                .min_by_key(|(_, row)| (row.since, row.request));
            let Some(oldest) = oldest.map(|(&key, _)| key) else {
                return;
            };
            self.release(oldest);
            self.lost += 1;
        }
    }

    /// Takes the rows of a batch that goes on: their requests. An error: the first row that is not
    /// here; the others stay.
    pub(super) fn take(&mut self, keys: &[ParkKey]) -> Result<Vec<RequestId>, ParkKey> {
        let missing = keys.iter().find(|key| !self.rows.contains_key(key));
        if let Some(missing) = missing {
            return Err(*missing);
        }
        let taken = keys.iter().filter_map(|key| self.rows.remove(key));
        let requests: Vec<RequestId> = taken.map(|row| row.request).collect();
        // A row that is named twice.
        match requests.len() == keys.len() {
            true => Ok(requests),
            false => {
                self.dropped.extend(requests);
                Err(keys[0])
            }
        }
    }

    /// Forgets a row, if it is here.
    pub(super) fn release(&mut self, key: ParkKey) {
        let row = self.rows.remove(&key);
        self.dropped.extend(row.map(|row| row.request));
    }

    /// Forgets the rows whose connection has ended, and those that are kept for too long.
    pub(super) fn sweep(&mut self, now: Instant) {
        let Self {
            rows,
            dropped,
            lost,
            ..
        } = self;
        rows.retain(|_, row| {
            let is_alive = row.connection.strong_count() > 0;
            let is_old = now.saturating_duration_since(row.since) > KEPT_FOR;
            if !is_alive || is_old {
                dropped.push(row.request);
                *lost += u64::from(is_alive);
            }
            is_alive && !is_old
        });
    }

    /// The requests whose activations the executor is to drop, each once.
    pub(super) fn take_dropped(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.dropped)
    }

    /// The executor could not take this one now.
    pub(super) fn not_dropped(&mut self, request: RequestId) {
        self.dropped.push(request);
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::sync::{Arc, Weak};

    use super::*;

    fn key(session: u64, row: u64) -> ParkKey {
        ParkKey { session, row }
    }

    fn ended() -> ConnectionLife {
        Weak::<()>::new()
    }

    fn batch(connection: &ConnectionLife, rows: &[(u64, u64)]) -> ParkingBatch {
        let rows = rows.iter();
        ParkingBatch {
            rows: rows
                .map(|&(row, request)| (key(1, row), RequestId(request)))
                .collect(),
            connection: connection.clone(),
        }
    }

    #[test]
    fn rows_of_another_session_and_rows_that_went_are_missing() {
        let alive: Arc<dyn Any + Send + Sync> = Arc::new(());
        let life = Arc::downgrade(&alive);
        let mut parking = Parking::new(8);
        parking.park(Instant::now(), batch(&life, &[(7, 70), (8, 80)]));
        assert_eq!(parking.take(&[key(2, 7)]), Err(key(2, 7)));
        assert_eq!(parking.take(&[key(1, 7), key(1, 9)]), Err(key(1, 9)));
        assert_eq!(parking.len(), 2, "the others stay");
        let both = parking.take(&[key(1, 8), key(1, 7)]);
        assert_eq!(both, Ok(vec![RequestId(80), RequestId(70)]));
        assert_eq!(parking.take(&[key(1, 7)]), Err(key(1, 7)));
        assert!(parking.take_dropped().is_empty());
        parking.park(Instant::now(), batch(&life, &[(7, 71)]));
        parking.release(key(1, 7));
        parking.release(key(1, 7));
        assert_eq!(parking.take_dropped(), [RequestId(71)]);
        parking.park(Instant::now(), batch(&life, &[(7, 72)]));
        assert!(parking.take(&[key(1, 7), key(1, 7)]).is_err(), "twice");
        assert_eq!(parking.take_dropped(), [RequestId(72)]);
    }

    #[test]
    fn the_oldest_rows_go_first_and_the_number_is_bounded() {
        let life: Arc<dyn Any + Send + Sync> = Arc::new(());
        let weak = Arc::downgrade(&life);
        let mut parking = Parking::new(2);
        let began = Instant::now();
        parking.park(began, batch(&weak, &[(1, 10), (2, 20)]));
        let later = began + Duration::from_secs(1);
        parking.park(later, batch(&weak, &[(3, 30)]));
        assert_eq!(parking.take_dropped(), [RequestId(10)]);
        assert_eq!((parking.len(), parking.lost), (2, 1));
        parking.sweep(began + KEPT_FOR + Duration::from_millis(1));
        assert_eq!(parking.take_dropped(), [RequestId(20)]);
        assert_eq!((parking.len(), parking.lost), (1, 2));
        parking.park(later, batch(&ended(), &[(4, 40)]));
        parking.sweep(later);
        assert_eq!(parking.take_dropped(), [RequestId(40)]);
        drop(life);
        parking.sweep(later);
        assert_eq!(parking.take_dropped(), [RequestId(30)]);
        assert_eq!((parking.len(), parking.lost), (0, 2));
    }
}
