#![allow(clippy::unwrap_used)]

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use switchyard_core::catalog::{App, Exit, Late, Penalty, Task as CoreTask, Variant};
use switchyard_core::profile::Profile;
use switchyard_executor::{CacheError, JobOutcome, Residency};
use switchyard_models::card::{Datatype, TensorCard};
use tokio::time::timeout;

use super::*;
use crate::ingress::{Tensor, TensorData};

/// Answers no batch before the sender of its gate is dropped.
struct Gated {
    gate: Receiver<()>,
    ran: Arc<Mutex<Vec<BatchId>>>,
}

impl Executor for Gated {
    fn run(&mut self, job: &mut Job) -> JobOutcome {
        self.ran.lock().unwrap().push(job.batch);
        let _ = self.gate.recv();
        JobOutcome {
            result: Ok(BatchOutput::Answered {
                classes: 2,
                probabilities: vec![0.5; 2 * job.rows.len()],
            }),
            compute: Micros(1),
            load: Micros::ZERO,
        }
    }

    fn release(&mut self, _: RequestId) {}

    fn preload(&mut self, _: VariantId) -> Result<Micros, CacheError> {
        Ok(Micros::ZERO)
    }

    fn residency(&self) -> Residency {
        Residency::default()
    }
}

fn catalog() -> Catalog {
    let app = App {
        name: "heart".to_owned(),
        task: CoreTask::Classify,
        classes: vec!["a".to_owned(), "b".to_owned()],
        slo: Micros::from_millis(100),
        penalty: Penalty::Sigmoid,
        prior: vec![0.5, 0.5],
        frequencies: vec![0.5, 0.5],
        sneakpeek: None,
        late: Late::Serve,
    };
    let variant = Variant {
        name: "only".to_owned(),
        app: AppId(0),
        stages: 1,
        exits: vec![Exit {
            name: "end".to_owned(),
            after_stage: 1,
            accuracy: 0.9,
            recall: vec![0.9; 2],
            confusion: None,
        }],
        memory_bytes: 1,
        max_batch: 8,
        quality_unknown: false,
    };
    Catalog {
        generation: 1,
        apps: vec![app],
        variants: vec![variant],
        kinds: Vec::new(),
        workers: Vec::new(),
        profile: Profile::new(0.95, [], []),
    }
}

fn backend(executor: Gated) -> DirectBackend {
    let tensors = AppTensors {
        task: Task::Classify,
        inputs: vec![TensorCard::fixed("beat", Datatype::Fp32, &[1])],
        outputs: vec![TensorCard::fixed("probabilities", Datatype::Fp32, &[2])],
        folders: Vec::new(),
        known_quality: vec![true],
        non_finite: false,
    };
    let options = DirectBackend::options("w", 1, Vec::new());
    let executor = Box::new(executor);
    DirectBackend::start(&catalog(), &[tensors], (8, 8), options, executor).unwrap()
}

fn call() -> InferCall {
    InferCall {
        app: AppIndex(0),
        variant: Some(VariantIndex(0)),
        rows: 1,
        inputs: vec![Tensor {
            shape: [1, 1].as_slice().into(),
            data: TensorData::F32(vec![1.0]),
        }],
        timeout_us: None,
        waited_us: 0,
        parent: None,
        priority: 0,
        min_accuracy: None,
        stages: None,
    }
}

#[tokio::test]
async fn the_batches_of_cancelled_calls_are_not_computed() {
    let (release, gate) = channel();
    let ran = Arc::<Mutex<Vec<BatchId>>>::default();
    let backend = Arc::new(backend(Gated {
        gate,
        ran: Arc::clone(&ran),
    }));
    let infer = || {
        let backend = Arc::clone(&backend);
        tokio::spawn(async move { backend.infer(call()).await })
    };
    let running = infer();
    while ran.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..3 {
        let late = timeout(Duration::from_millis(1), backend.infer(call()));
        assert!(late.await.is_err(), "it waits behind the first one");
    }
    let wanted = infer();
    drop(release);
    running.await.unwrap().unwrap();
    wanted.await.unwrap().unwrap();
    assert_eq!(*ran.lock().unwrap(), [BatchId(1), BatchId(5)]);
    assert!(backend.shared.waiting().is_empty());
}
