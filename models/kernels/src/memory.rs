//! Memory of weights, and of activations: buffers that each thread keeps and reuses, and images in them.

mod feature_map;
mod padded;
mod region;
mod scratch;
mod weights;

pub use self::feature_map::FeatureMap;
pub(crate) use self::feature_map::FeatureView;
pub(crate) use self::padded::{Padded, pad_image};
pub(crate) use self::scratch::Aligned;
pub use self::scratch::{Buffer, without_kept};
pub(crate) use self::weights::Weights;
