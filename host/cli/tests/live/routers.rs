//! The PPO router on a running server: weights are artifacts, and new ones are taken into service
//! under load.

use std::fs;
use std::path::Path;
use std::time::Instant;

use ppo_router_net::{Kind, Network};
use ppo_router_train::{Model, TestBed as RouterTestBed, train};
use switchyard_core::guard::HOST_LABEL;
use switchyard_server::policies::SwapResult;

use super::client::Client;
use super::fixture::{beat, policy};
use super::load::{Load, Tally};
use super::test_bed::{PATIENCE, Setup, TestBed};

const WEIGHTS: &str = "default/policy.safetensors";

/// Variants of the pool's two instances, by position.
const VARIANTS: [&str; 2] = ["resnet", "cnn-small"];

/// Biases whose softmax leaves the other instance less than one request in 10^30.
const ALL: f32 = 70.0;

/// Weights that give every arrival to one instance, for every observation.
fn weights(chosen: usize) -> Vec<u8> {
    let model = |variant: &str| Model {
        variant: variant.to_owned(),
        accuracy: 0.8,
        instances: 1,
        service_us: vec![(1, 1_000)],
    };
    let test_bed = RouterTestBed {
        models: VARIANTS.map(model).to_vec(),
        slot_us: 20_000,
        ..RouterTestBed::paper()
    };
    let meta = train::meta(&test_bed, Kind::Extended, &[], "poisson:100", 1, "by hand");
    let numbers = vec![0.0; meta.layout.width() * VARIANTS.len()];
    let mut biases = vec![0.0; VARIANTS.len()];
    biases[chosen] = ALL;
    let network = Network::try_new(meta, vec![(numbers, biases)]).unwrap();
    network.to_bytes().unwrap()
}

/// The numbers come last in the file, the biases of the last layer last of them.
fn poisoned(mut weights: Vec<u8>) -> Vec<u8> {
    let last = weights.len() - size_of::<f32>();
    weights[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    weights
}

/// Atomically: written under another name, then renamed.
fn replace(test_bed: &TestBed, weights: &[u8]) {
    let part = test_bed.policy.with_extension("part");
    fs::write(&part, weights).unwrap();
    fs::rename(&part, test_bed.policy.with_extension("").join(WEIGHTS)).unwrap();
}

/// Requests that the host drew by the router's distribution, and those that the router placed itself
/// because they were pending when it became active.
fn routed(tally: &Tally) -> u64 {
    tally.by(HOST_LABEL) + tally.by("ppo-router@")
}

async fn variant(client: &mut Client, nth: u64) -> String {
    let answer = client.infer(beat(nth)).await;
    let version = &answer.json()["model_version"];
    version
        .as_str()
        .unwrap_or_else(|| panic!("{answer:?}"))
        .to_owned()
}

/// Waits for the first answer of a variant, after which all are its.
async fn all_answered_by(test_bed: &TestBed, expected: &str) {
    let mut client = test_bed.client().await;
    let give_up = Instant::now() + PATIENCE;
    while variant(&mut client, 0).await != expected {
        assert!(Instant::now() < give_up, "waited for {expected}");
    }
    for nth in 1..=20 {
        assert_eq!(variant(&mut client, nth).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_weights_are_taken_into_service_and_no_request_is_lost() {
    let furnish = |folder: &Path| {
        let file = folder.join(WEIGHTS);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, weights(0)).unwrap();
    };
    let setup = Setup::new("router").policy(policy("ppo-router"));
    let test_bed = setup.start_with_artifacts(furnish).await;
    let load = Load::start(test_bed.http, 4);
    load.answered_by(HOST_LABEL, 20).await;
    all_answered_by(&test_bed, VARIANTS[0]).await;

    let mut swaps = 1;
    for chosen in [1, 0, 1] {
        replace(&test_bed, &weights(chosen));
        swaps += 1;
        let swap = test_bed.swap_number(swaps).await;
        assert_eq!(swap.result, SwapResult::Switched, "{swap:?}");
        load.answered_by(HOST_LABEL, 20).await;
        all_answered_by(&test_bed, VARIANTS[chosen]).await;
    }

    let tally = load.stop().await;
    assert_eq!(routed(&tally), tally.sent, "nobody else decided: {tally:?}");
    let pool = test_bed.settled().await;
    assert_eq!(pool.driver.faults.len(), 0, "{:?}", pool.driver.last_fault);
    assert_eq!(
        pool.policies.swaps.len(),
        swaps,
        "{:#?}",
        pool.policies.swaps
    );
    test_bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn weights_that_are_no_good_are_refused_by_name_and_the_old_ones_serve_on() {
    let furnish = |folder: &Path| {
        let file = folder.join(WEIGHTS);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, weights(1)).unwrap();
    };
    let setup = Setup::new("poisoned").policy(policy("ppo-router"));
    let test_bed = setup.start_with_artifacts(furnish).await;
    let load = Load::start(test_bed.http, 2);
    load.answered_by(HOST_LABEL, 10).await;
    all_answered_by(&test_bed, VARIANTS[1]).await;

    // Each of them would send everything to the other instance.
    let other = weights(0);
    let cut = other[..other.len() - 4].to_vec();
    let files = [
        (
            poisoned(other.clone()),
            "tensor policy.0.bias: number 1 is NaN",
        ),
        (cut, "tensor policy.0.bias: bytes"),
        (b"hello".to_vec(), "is shorter than a safetensors header"),
    ];
    let mut swaps = 1;
    for (file, words) in files {
        replace(&test_bed, &file);
        swaps += 1;
        let swap = test_bed.swap_number(swaps).await;
        assert_eq!(swap.result, SwapResult::Refused, "{words}: {swap:?}");
        let reason = swap.error.unwrap();
        assert!(
            reason.contains("configure") && reason.contains(WEIGHTS),
            "{reason}"
        );
        assert!(reason.contains(words), "{words}: {reason}");
        load.answered_by(HOST_LABEL, 10).await;
        all_answered_by(&test_bed, VARIANTS[1]).await;
    }
    replace(&test_bed, &other);
    let swap = test_bed.swap_number(swaps + 1).await;
    assert_eq!(swap.result, SwapResult::Switched, "{swap:?}");
    all_answered_by(&test_bed, VARIANTS[0]).await;

    let tally = load.stop().await;
    assert_eq!(routed(&tally), tally.sent, "{tally:?}");
    let refused = test_bed.logged("policy refused: the old one serves on");
    assert_eq!(refused.len(), 3, "{refused:?}");
    test_bed.settled().await;
    test_bed.stop().await;
}
