//! Networks, data and training.
pub mod architecture;
pub mod card;
pub mod cnn1d;
mod confusion;
mod error;
pub mod evidence;
mod layers;
mod model;
mod params;
pub mod resnet1d;
pub mod zoo;

pub use card::{AppCard, VariantCard};
pub use confusion::Confusion;
pub use error::ModelError;
pub use evidence::SneakPeek;
pub use model::StagedModel;
pub use zoo::{LoadedVariant, Zoo, load_variant};
