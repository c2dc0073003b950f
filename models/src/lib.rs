//! The networks that Switchyard serves, and the zoo of shipped weights.
//!
//! In the order of their dependencies, lowest first:
//!
//! 1. `weights`: the files that hold weights, and their form in memory, in a [`Precision`].
//! 2. `ops`: the operations and layers that networks are built from. On a CPU, inference computes
//!    with `switchyard-kernels` on packed weights; training and other devices compute with tensors.
//! 3. [`features`]: fixed functions of a request's inputs.
//! 4. [`ImageCard`]: encoded images as tensors.
//! 5. [`networks`]: the architectures. All implement [`StagedModel`], a chain of stages with exits.
//! 6. [`evidence`]: the labels of an input's nearest neighbours, before any network runs.
//! 7. [`zoo`]: the cards of applications and variants, and loading: [`Zoo::open`],
//!    [`load_variant`].
//!
//! The crate knows nothing of requests, time or scheduling; `switchyard-training` makes the
//! weights. Files are untrusted: the result of reading one is a model or a [`ModelError`] that
//! names the file and the field or tensor.
//!
//! candle splits elementwise operations above 64 Ki values over a pool of spinning threads that the
//! whole process shares. Inference stays below that size (see `networks::slices`).
#![deny(unsafe_code)]

mod error;
pub mod evidence;
pub mod features;
mod images;
pub mod networks;
mod ops;
mod regular_file;
mod weights;
pub mod zoo;

pub use switchyard_kernels::{Instructions, without_kept};

pub use self::error::ModelError;
pub use self::evidence::SneakPeek;
pub use self::images::{Channels, FieldError, Filter, Fit, ImageCard, ImageError, Layout};
pub use self::networks::architecture::Architecture;
pub use self::networks::graph::{Graph, GraphAnswer, NamedTensor, RawData, RawTensor};
pub use self::networks::staged::StagedModel;
pub use self::networks::tokens::Tokenizer;
pub use self::networks::{onnx, tokens};
pub use self::weights::precision::Precision;
pub use self::weights::tensors::{adopt_tensors, write_tensors};
pub use self::zoo::card::{self, AppCard, VariantCard};
pub use self::zoo::{
    LoadedVariant, Zoo, load_variant, load_variant_at, load_variant_plain,
    load_variant_standing_in, tokenizer_of,
};
