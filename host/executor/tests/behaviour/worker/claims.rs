//! Batches that are cancelled while they wait.

use std::sync::{Arc, Barrier, Mutex};

use switchyard_core::ids::{BatchId, RequestId, VariantId};
use switchyard_core::time::Micros;
use switchyard_executor::{
    BatchOutput, CacheError, ExecuteError, Executor, InputTensor, Job, JobOutcome, Refused,
    Residency,
};
use switchyard_models::card::Datatype;
use switchyard_models::{RawData, RawTensor};

use super::{finished, spawn};
use crate::toy::job;

/// Waits at a barrier twice per batch, and notes the batches and releases.
struct Noting {
    gate: Arc<Barrier>,
    ran: Arc<Mutex<Vec<(BatchId, usize)>>>,
    released: Arc<Mutex<Vec<RequestId>>>,
}

impl Executor for Noting {
    fn run(&mut self, job: &mut Job) -> JobOutcome {
        let inputs = job.rows.iter().filter(|row| row.input.is_some()).count();
        self.ran.lock().unwrap().push((job.batch, inputs));
        self.gate.wait();
        self.gate.wait();
        JobOutcome {
            result: Ok(BatchOutput::Parked),
            compute: Micros(1),
            load: Micros::ZERO,
        }
    }

    fn release(&mut self, request: RequestId) {
        self.released.lock().unwrap().push(request);
    }

    fn preload(&mut self, _: VariantId) -> Result<Micros, CacheError> {
        panic!("no models here");
    }

    fn residency(&self) -> Residency {
        Residency::default()
    }
}

fn texts(text: Arc<str>) -> InputTensor {
    InputTensor::Raw(RawTensor {
        datatype: Datatype::Bytes,
        shape: vec![1, 1],
        data: RawData::Texts(vec![text]),
    })
}

#[test]
fn a_batch_whose_claim_is_dropped_while_it_waits_is_not_computed() {
    let (gate, ran, released) = (Arc::new(Barrier::new(2)), Arc::default(), Arc::default());
    let noting = Noting {
        gate: Arc::clone(&gate),
        ran: Arc::clone(&ran),
        released: Arc::clone(&released),
    };
    let (worker, events) = spawn(noting, 3);
    let running = worker.run_claimed(job(&[1], 0, 1, None)).unwrap();
    gate.wait();
    let text: Arc<str> = "a large input".into();
    let mut large = job(&[2], 0, 1, None);
    large.rows[0].input = Some([texts(Arc::clone(&text))].into());
    let fresh = worker.run_claimed(large).unwrap();
    let parked = worker.run_claimed(job(&[3, 4], 1, 2, None)).unwrap();
    let wanted = worker.run_claimed(job(&[5, 6], 0, 1, None)).unwrap();
    let Err(Refused::Full(back)) = worker.run_claimed(job(&[7], 0, 1, None)) else {
        panic!("taken beyond its bound");
    };
    assert!(back.rows[0].input.is_some(), "untouched");
    // A batch that has begun ends.
    drop((running, fresh, parked));
    assert_eq!(Arc::strong_count(&text), 1, "its memory is free at once");
    for _ in 0..3 {
        gate.wait();
    }
    finished(&events).result.unwrap();
    for batch in [2, 3] {
        let cancelled = finished(&events);
        assert_eq!(cancelled.batch, BatchId(batch));
        assert!(matches!(cancelled.result, Err(ExecuteError::Cancelled)));
    }
    finished(&events).result.unwrap();
    drop(wanted);
    assert_eq!(*ran.lock().unwrap(), [(BatchId(1), 1), (BatchId(5), 2)]);
    let of_cancelled = [2, 3, 4].map(RequestId);
    assert_eq!(*released.lock().unwrap(), of_cancelled, "none is parked");
}
