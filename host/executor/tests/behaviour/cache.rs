//! The model cache: order of eviction, budget, sharing between workers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use switchyard_core::ids::VariantId;
use switchyard_core::time::Micros;
use switchyard_executor::cache::ModelCache;
use switchyard_executor::{CacheError, CandleExecutor, Device, Executor, Weights};

use crate::toy::{ToySource, ToySpec, job, job_of};

fn resident(executor: &impl Executor) -> Vec<u32> {
    let residency = executor.residency();
    residency.resident.iter().map(|variant| variant.0).collect()
}

#[test]
fn the_least_recently_used_model_is_evicted() {
    let weights = Weights::new(ToySource::new(&[40, 40, 40]));
    let mut executor = CandleExecutor::new(weights, Device::Cpu, 100);
    for variant in [0, 1, 0, 2] {
        executor.run(&mut job_of(variant, 1)).result.unwrap();
    }
    assert_eq!(resident(&executor), [0, 2]);
    assert_eq!(executor.residency().free_bytes, 20);
}

#[test]
fn a_pinned_model_stays() {
    let weights = Weights::new(ToySource::new(&[40, 40, 70]));
    let mut executor = CandleExecutor::new(weights, Device::Cpu, 100).with_pinned(VariantId(0));
    for variant in [0, 1] {
        executor.preload(VariantId(variant)).unwrap();
    }
    let error = executor.preload(VariantId(2)).unwrap_err();
    assert!(
        matches!(
            &error,
            CacheError::NoRoom {
                bytes: 70,
                free_bytes: 60,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(resident(&executor), [0, 1]);
}

#[test]
fn a_model_in_use_stays() {
    let weights = Weights::new(ToySource::new(&[60, 60]));
    let cache = ModelCache::new(weights, Device::Cpu, 100);
    let (in_use, _) = cache.acquire(VariantId(0), &[]).unwrap();
    assert!(matches!(
        cache.acquire(VariantId(1), &[]),
        Err(CacheError::NoRoom { free_bytes: 40, .. })
    ));
    drop(in_use);
    cache.acquire(VariantId(1), &[]).unwrap();
    assert_eq!(cache.variants(), [VariantId(1)]);
}

#[test]
fn a_model_larger_than_the_budget_is_a_typed_error() {
    let weights = Weights::new(ToySource::new(&[40, 101]));
    let mut executor = CandleExecutor::new(weights, Device::Cpu, 100);
    executor.preload(VariantId(0)).unwrap();
    let error = executor.run(&mut job_of(1, 1)).result.unwrap_err();
    assert_eq!(
        error.to_string(),
        "toy/v1: takes 101 bytes, the worker's budget is 100"
    );
    assert_eq!(resident(&executor), [0], "nothing was evicted for it");
}

#[test]
fn parked_activations_are_not_evicted_for_a_model() {
    let weights = Weights::new(ToySource::new(&[40, 70]));
    let mut executor = CandleExecutor::new(weights, Device::Cpu, 100);
    // Three rows of four f32: 48 bytes.
    executor
        .run(&mut job(&[1, 2, 3], 0, 1, None))
        .result
        .unwrap();
    let error = executor.preload(VariantId(1)).unwrap_err();
    assert!(
        matches!(error, CacheError::NoRoom { free_bytes: 52, .. }),
        "{error}"
    );
    executor
        .run(&mut job(&[1, 2, 3], 1, 3, Some(1)))
        .result
        .unwrap();
}

#[test]
fn a_load_is_measured_once_and_an_unknown_variant_is_named() {
    let source = ToySource::of(vec![ToySpec {
        bytes: 10,
        exits: vec![1, 3],
        load: Duration::from_millis(100),
    }]);
    let mut executor = CandleExecutor::new(Weights::new(source), Device::Cpu, 100);
    let first = executor.run(&mut job_of(0, 1));
    assert!(first.load.0 >= 100_000, "{}", first.load);
    assert!(
        first.compute.0 < 100_000,
        "the load is not compute: {}",
        first.compute
    );
    assert_eq!(executor.run(&mut job_of(0, 2)).load.0, 0);
    let error = executor.preload(VariantId(9)).unwrap_err();
    assert_eq!(error.to_string(), "toy/v9: no such toy");
}

#[test]
fn workers_share_weights_and_account_them_each() {
    let source = ToySource::of(vec![ToySpec {
        bytes: 40,
        exits: vec![1, 3],
        load: Duration::from_millis(20),
    }]);
    let weights = Weights::new(source.clone());
    let executors = [(), ()].map(|()| CandleExecutor::new(weights.clone(), Device::Cpu, 100));
    // At the same time: the second waits for the weights of the first instead of reading its own.
    let executors: Vec<_> = executors
        .map(|mut executor| {
            std::thread::spawn(move || {
                executor.preload(VariantId(0)).unwrap();
                executor
            })
        })
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    assert_eq!(source.loads(), 1);
    for executor in &executors {
        assert_eq!(executor.residency().free_bytes, 60);
    }
    drop(executors);
    weights.load(VariantId(0), &Device::Cpu).unwrap();
    assert_eq!(
        source.loads.load(Ordering::Relaxed),
        2,
        "the last holder freed them"
    );
}

#[test]
fn a_variant_that_waiting_batches_need_outlives_the_last_used() {
    let weights = Weights::new(ToySource::new(&[40, 40, 40]));
    let mut executor = CandleExecutor::new(weights, Device::Cpu, 100);
    for variant in [0, 1] {
        executor.run(&mut job_of(variant, 1)).result.unwrap();
    }
    let mut job = job_of(2, 1);
    job.soon.push(VariantId(0));
    executor.run(&mut job).result.unwrap();
    assert_eq!(resident(&executor), [0, 2]);
    let counts = executor.residency().counts;
    assert_eq!((counts.hits, counts.misses), (0, 3));
    assert_eq!((counts.loads, counts.evictions), (3, 1));
}

#[test]
fn a_variant_that_is_slow_to_load_outlives_the_last_used() {
    let weights = Weights::new(ToySource::new(&[40, 40, 40]));
    let loads = [9_000, 10, 10].map(Micros);
    let mut executor = CandleExecutor::new(weights, Device::Cpu, 100).with_loads(loads.into());
    for variant in [0, 1, 2] {
        executor.run(&mut job_of(variant, 1)).result.unwrap();
    }
    assert_eq!(resident(&executor), [0, 2]);
}

#[test]
fn a_load_that_failed_is_not_tried_again_at_once() {
    let source = ToySource::new(&[10]);
    source.break_it("its weights are cut off");
    let weights = Weights::new(source.clone());
    let mut executor = CandleExecutor::new(weights.clone(), Device::Cpu, 100);
    let first = executor.run(&mut job_of(0, 1)).result.unwrap_err();
    assert!(!first.is_repeated(), "{first}");
    source.mend();
    let second = executor.run(&mut job_of(0, 2)).result.unwrap_err();
    assert!(second.is_repeated(), "{second}");
    assert_eq!(second.to_string(), first.to_string(), "with the same words");
    assert_eq!(executor.residency().counts.load_errors, 1);
    weights.forgive(VariantId(0), &Device::Cpu);
    executor.run(&mut job_of(0, 3)).result.unwrap();
    assert_eq!(source.loads(), 1);
}

#[test]
fn an_unloaded_model_frees_its_memory_even_if_it_was_pinned() {
    let weights = Weights::new(ToySource::new(&[40]));
    let mut executor = CandleExecutor::new(weights, Device::Cpu, 100).with_pinned(VariantId(0));
    executor.preload(VariantId(0)).unwrap();
    executor.unload(VariantId(0));
    assert_eq!(resident(&executor), [0_u32; 0]);
    assert_eq!(executor.residency().free_bytes, 100);
    executor.run(&mut job_of(0, 1)).result.unwrap();
}
