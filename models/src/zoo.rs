//! The zoo: a folder of applications, each a folder of variants.
//!
//! `ZOO/APP/app.toml`, `ZOO/APP/VARIANT/model.toml` and the weights next to it. Opening reads and
//! checks every card; weights are read when a variant is loaded.
//!
//! [`card`] defines the cards, `folder` reads a zoo, `load` a variant; `describe` makes cards.

pub mod card;
mod describe;
mod fit;
mod folder;
mod load;

pub use self::describe::{Description, Preprocessing, Statement, describe, reads_model_type};
pub use self::folder::{Zoo, ZooApp, ZooVariant};
pub use self::load::{
    LoadedVariant, load_variant, load_variant_at, load_variant_plain, load_variant_standing_in,
    tokenizer_of,
};
