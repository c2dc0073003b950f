//! The model of the race: an MLP of 187-128-7 with drawn weights.

use std::collections::BTreeMap;
use std::path::Path;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use safetensors::tensor::{Dtype, TensorView};

/// Its name in requests.
pub(crate) const APP: &str = "mlp";

/// A server's names of input and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) input: &'static str,
    pub(crate) output: &'static str,
}

/// As the card says.
pub(crate) const NAMES: Names = Names {
    input: "x",
    output: "probabilities",
};

/// Numbers of a request.
pub(crate) const SAMPLES: usize = 187;

/// Numbers of an answer.
pub(crate) const CLASSES: usize = 7;

const HIDDEN: usize = 128;

const CARD: &str = r#"name = "mlp"
summary = "A perceptron for races"
classes = ["a", "b", "c", "d", "e", "f", "g"]
slo_ms = 150.0
penalty = "step"
workload_mix = [0.16, 0.14, 0.14, 0.14, 0.14, 0.14, 0.14]

[[inputs]]
name = "x"
datatype = "FP32"
shape = [187]

[[outputs]]
name = "probabilities"
datatype = "FP32"
shape = [7]

[validation]
samples = 700
frequencies = [0.16, 0.14, 0.14, 0.14, 0.14, 0.14, 0.14]
seed = 10
"#;

const VARIANT: &str = r#"name = "only"
summary = "187-128-7"
weights = "weights.safetensors"
parameters = 24967
max_batch = 64
stages = 1

[architecture]
kind = "mlp"
samples = 187
classes = 7
layers = [128]

[[exits]]
name = "final"
after_stage = 1
accuracy = 0.5
recall = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]

[provenance]
command = "none: its weights are drawn"
seed = 187
steps = 0
batch = 0
data = "none"
"#;

/// Writes a zoo of one app with one variant.
pub(crate) fn write_zoo(zoo: &Path) {
    write_sized(zoo, SAMPLES, HIDDEN);
}

/// The same with other sizes of the input and of the hidden layer.
pub(crate) fn write_sized(zoo: &Path, samples: usize, hidden: usize) {
    let variant = variant(zoo);
    std::fs::create_dir_all(&variant).unwrap();
    let card = CARD.replace("[187]", &format!("[{samples}]"));
    std::fs::write(zoo.join(APP).join("app.toml"), card).unwrap();
    let parameters = (samples + 1) * hidden + (hidden + 1) * CLASSES;
    let sized = VARIANT
        .replace("24967", &parameters.to_string())
        .replace("187-128-7", &format!("{samples}-{hidden}-7"))
        .replace("samples = 187", &format!("samples = {samples}"))
        .replace("[128]", &format!("[{hidden}]"));
    std::fs::write(variant.join("model.toml"), sized).unwrap();
    let mut rng = Pcg64::seed_from_u64(187);
    let tensors: BTreeMap<&str, (Vec<usize>, Vec<u8>)> = [
        ("layer0.weight", vec![samples, hidden]),
        ("layer0.bias", vec![hidden]),
        ("head.weight", vec![hidden, CLASSES]),
        ("head.bias", vec![CLASSES]),
    ]
    .into_iter()
    .map(|(name, shape)| {
        let values = (0..shape.iter().product()).map(|_| rng.random_range(-0.1_f32..0.1));
        let bytes = values.flat_map(f32::to_le_bytes).collect();
        (name, (shape, bytes))
    })
    .collect();
    let views = tensors.iter().map(|(name, (shape, bytes))| {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap();
        ((*name).to_owned(), view)
    });
    let file = safetensors::serialize(views, None).unwrap();
    std::fs::write(variant.join("weights.safetensors"), file).unwrap();
}

/// The folder of the one variant.
pub(crate) fn variant(zoo: &Path) -> std::path::PathBuf {
    zoo.join(APP).join("only")
}

/// A request's numbers, with as many digits as a client's floats have.
pub(crate) fn beat() -> Vec<f32> {
    (0..SAMPLES)
        .map(|i| (i as f32 * 0.37).sin() * 0.8)
        .collect()
}
