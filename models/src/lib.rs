//! What Switchyard serves: networks, the data they learn from, their training, and the zoo of
//! shipped weights.
//!
//! In the order in which data flows:
//!
//! 1. [`data`] says what labelled data is; [`fall`] makes windows of a subject's motion, [`heart`]
//!    heartbeats, [`images`] pictures and [`voice`] spoken keywords from a seed: training data,
//!    validation data, load.
//! 2. [`cnn1d`], [`fusion`], [`lstm`], [`minirocket`], [`mlp`], [`mobilenet`], [`resnet1d`],
//!    [`resnet2d`] and [`x3d`] are the architectures that are trained here; [`bert`],
//!    [`efficientnet`] and again [`resnet2d`] take public weights as they are published.
//!    [`onnx`] takes any other network as a graph. [`architecture`] is their closed set. All
//!    implement [`StagedModel`]: a chain of stages with exits. Their convolution lives in `layers` over `unfold`, their tensors come from `params`, in a [`precision`];
//!    [`tokens`] makes the input of those that read text. What is loaded to answer on a CPU
//!    computes in `kernels`, on packed weights; `flow` is what lets an architecture be written
//!    once for both.
//! 3. [`train`] fits them and writes cards, weights and evidence.
//! 4. [`card`] defines the cards, [`zoo`] reads them back: [`Zoo::open`], [`load_variant`].
//! 5. [`evidence`] answers "what do this input's nearest neighbours say", before any network has
//!    seen it; [`features`] is what of the input it looks at.
//!
//! Nothing here knows of requests, time or scheduling. Files are untrusted: whatever is in them,
//! the answer is a model or a [`ModelError`] that names the file and the field or tensor.
//!
//! candle splits elementwise operations above 64 Ki numbers over a pool of spinning threads that
//! the whole process shares. Inference stays below that size (see `in_slices` in `model`); a
//! process that trains runs better with `CANDLE_NUM_THREADS=1`, because training already uses a
//! thread per shard.

pub mod architecture;
pub mod bert;
pub mod card;
#[cfg(test)]
mod card_kernels;
pub mod cnn1d;
mod confusion;
mod convolve2d;
#[cfg(feature = "cuda")]
mod cuda;
pub mod data;
mod depthwise;
mod device;
pub mod efficientnet;
mod error;
pub mod evidence;
pub mod fall;
pub mod features;
mod fft;
mod flow;
pub mod fusion;
pub mod heart;
pub mod images;
mod kernels;
mod layers;
mod layers2d;
mod logmel;
pub mod lstm;
mod mapped;
pub mod minirocket;
pub mod mlp;
pub mod mobilenet;
mod model;
pub mod onnx;
mod params;
mod pointwise;
pub mod precision;
mod public;
pub mod resnet1d;
pub mod resnet2d;
mod slicing;
pub mod tokens;
pub mod train;
mod unfold;
mod unfold2d;
pub mod voice;
pub mod x3d;
pub mod zoo;

pub use architecture::Architecture;
pub use card::{AppCard, VariantCard};
pub use confusion::Confusion;
pub use error::ModelError;
pub use evidence::SneakPeek;
pub use kernels::Instructions;
pub use model::StagedModel;
pub use precision::Precision;
pub use tokens::Tokenizer;
pub use zoo::{
    LoadedVariant, Zoo, load_variant, load_variant_at, load_variant_plain, load_variant_standing_in,
};
