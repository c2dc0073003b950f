//! The CPU's kernels on every shipped network, compared with the plain operations of training; and
//! with themselves, bit for bit, for every way to cut a run.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use candle_core::{Device, Tensor};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use rayon::{ThreadPool, ThreadPoolBuilder};
use switchyard_models::{
    Instructions, Precision, StagedModel, Zoo, load_variant, load_variant_at, load_variant_plain,
};

/// Largest difference of two logits, relative to the largest of them.
const TOLERANCE: f32 = 1e-4;

/// The same with weights and activations rounded to bf16.
const TOLERANCE_BF16: f32 = 0.04;

/// More than two threads' shares, and no multiple of either.
const BATCH: usize = 5;

/// The instruction set of a process of these tests; the best one by default.
const ASKED: &str = "SWITCHYARD_TEST_INSTRUCTIONS";

/// Runs `check` with each shipped variant: name, packed in f32, bf16 and int8, plain, and a batch
/// of inputs.
fn each(check: impl Fn(&str, [&dyn StagedModel; 3], &dyn StagedModel, &Tensor)) {
    if let Ok(asked) = std::env::var(ASKED) {
        let all = Instructions::ALL;
        let asked = all.into_iter().find(|one| one.name() == asked).unwrap();
        Instructions::limit(asked).unwrap();
    }
    let zoo = Zoo::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("zoo")).unwrap();
    let mut count = 0;
    for variant in zoo.apps.iter().flat_map(|app| &app.variants) {
        let packed = load_variant(&variant.dir, &Device::Cpu).unwrap();
        let bf16 = load_variant_at(&variant.dir, Precision::Bf16, &Device::Cpu).unwrap();
        let int8 = load_variant_at(&variant.dir, Precision::Int8, &Device::Cpu).unwrap();
        let plain = load_variant_plain(&variant.dir, &Device::Cpu).unwrap();
        let samples = variant.card.architecture.samples();
        let mut rng = Pcg64::seed_from_u64(7);
        let values: Vec<f32> = (0..BATCH * samples)
            .map(|_| rng.random_range(-1.0..1.0))
            .collect();
        let batch = Tensor::from_vec(values, (BATCH, samples), &Device::Cpu).unwrap();
        let packed = [&*packed.model, &*bf16.model, &*int8.model];
        check(&variant.card.name, packed, &*plain.model, &batch);
        count += 1;
    }
    assert!(count >= 14, "{count} variants");
}

/// Logits of an exit, stage by stage.
fn logits(model: &dyn StagedModel, exit: usize, x: &Tensor) -> Vec<f32> {
    let mut x = x.clone();
    for stage in 0..model.exits()[exit] {
        x = model.run_stage(stage, &x).unwrap();
    }
    let logits = model.logits(exit, &x).unwrap();
    logits.flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn every_exit_of_every_network_is_that_of_the_plain_operations() {
    each(|name, [packed, bf16, _], plain, batch| {
        for exit in 0..packed.exits().len() {
            let theirs = logits(plain, exit, batch);
            let scale = theirs.iter().fold(0f32, |most, x| most.max(x.abs()));
            for (ours, tolerance) in [(packed, TOLERANCE), (bf16, TOLERANCE_BF16)] {
                let ours = logits(ours, exit, batch);
                assert_eq!(ours.len(), theirs.len(), "{name}");
                for (ours, theirs) in ours.iter().zip(&theirs) {
                    let apart = (ours - theirs).abs();
                    assert!(apart <= tolerance * scale, "{name} {exit}: {ours} {theirs}");
                }
            }
            // Inputs must differ by more than the tolerance, otherwise agreement would prove
            // nothing.
            let each = theirs.len() / BATCH;
            let apart = (0..each).map(|i| (theirs[i] - theirs[each + i]).abs());
            let apart = apart.fold(0f32, f32::max);
            assert!(apart > 10.0 * TOLERANCE * scale, "{name} {exit}: {apart}");
        }
    });
}

/// One value of one input is NaN: its logits are, and those of the other inputs are as before.
#[test]
fn nan_is_never_a_certain_class() {
    each(|name, packed, plain, batch| {
        let (_, samples) = batch.dims2().unwrap();
        let mut values: Vec<f32> = batch.flatten_all().unwrap().to_vec1().unwrap();
        let odd = BATCH / 2;
        values[(odd + 1) * samples - 1] = f32::NAN;
        let batch_with_nan = Tensor::from_vec(values, batch.dims2().unwrap(), &Device::Cpu);
        let batch_with_nan = batch_with_nan.unwrap();
        let ways = ["f32", "bf16", "int8", "plain"];
        for (way, model) in ways.into_iter().zip(packed.into_iter().chain([plain])) {
            let exit = model.exits().len() - 1;
            let before = logits(model, exit, batch);
            let after = logits(model, exit, &batch_with_nan);
            let classes = after.len() / BATCH;
            for (i, row) in after.chunks_exact(classes).enumerate() {
                match i == odd {
                    true => assert!(row.iter().all(|x| x.is_nan()), "{name} {way}: {row:?}"),
                    false => assert_eq!(row, &before[i * classes..][..classes], "{name} {way}"),
                }
            }
        }
    });
}

/// Bit for bit: alone, in a batch, in parts between stages, stages at once, on one thread or three.
#[test]
fn an_answer_does_not_depend_on_its_batch() {
    let pools = [1, 3].map(|threads| {
        let builder = ThreadPoolBuilder::new().num_threads(threads);
        builder.build().unwrap()
    });
    each(|name, packed, _, batch| {
        for packed in packed {
            check_company(&pools, name, packed, batch);
        }
    });
}

fn check_company(pools: &[ThreadPool; 2], name: &str, packed: &dyn StagedModel, batch: &Tensor) {
    let exit = packed.exits().len() - 1;
    let together = pools[0].install(|| logits(packed, exit, batch));
    assert_eq!(
        together,
        pools[1].install(|| logits(packed, exit, batch)),
        "{name}"
    );
    let each = together.len() / BATCH;
    for (i, row) in together.chunks_exact(each).enumerate() {
        let alone = batch.narrow(0, i, 1).unwrap();
        assert_eq!(
            row,
            pools[i % 2].install(|| logits(packed, exit, &alone)),
            "{name} {i}"
        );
    }
    // Several stages at once: all of them on one thread, the later half on three.
    let stages = packed.exits()[exit];
    for (pool, from) in pools.iter().zip([0, stages / 2]) {
        let mut x = batch.clone();
        for stage in 0..from {
            x = packed.run_stage(stage, &x).unwrap();
        }
        let x = pool.install(|| packed.run_stages(from..stages, &x).unwrap());
        let logits = packed.logits(exit, &x).unwrap().flatten_all().unwrap();
        assert_eq!(together, logits.to_vec1::<f32>().unwrap(), "{name} {from}");
    }
    assert!(packed.run_stages(0..stages + 1, batch).is_err());
    // Parked after every stage, and continued in other batches.
    let (mut first, mut rest) = (
        batch.narrow(0, 0, 2).unwrap(),
        batch.narrow(0, 2, 3).unwrap(),
    );
    for stage in 0..packed.exits()[exit] {
        let parts = [&first, &rest].map(|x| packed.run_stage(stage, x).unwrap());
        let all = packed.join(&parts).unwrap();
        let cut = 1 + stage % (BATCH - 1);
        first = all.narrow(0, 0, cut).unwrap();
        rest = all.narrow(0, cut, BATCH - cut).unwrap();
    }
    let parts = [&first, &rest].map(|x| packed.logits(exit, x).unwrap());
    let parted = Tensor::cat(&parts, 0).unwrap().flatten_all().unwrap();
    assert_eq!(together, parted.to_vec1::<f32>().unwrap(), "{name}");
}

/// The tests above, in one process for every other instruction set.
#[test]
fn every_instruction_set_of_the_machine_gives_the_same() {
    if std::env::var_os(ASKED).is_some() {
        return;
    }
    let mut others = Instructions::available();
    others.retain(|instructions| *instructions != Instructions::chosen());
    for instructions in others {
        let output = Command::new(std::env::current_exe().unwrap())
            .env(ASKED, instructions.name())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{instructions:?}: {said}");
        assert!(said.contains("4 passed"), "{said}");
    }
}
