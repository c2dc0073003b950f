//! The cards of the zoo: the facts of an application and of each of its variants.
//!
//! Cards are TOML. A field that this version does not know is refused, so that a typing error never
//! silently means a default. Every figure was measured by the training run that wrote the card, on
//! the validation set it names, or on the labelled file of [`QualityCard`]. The cards of public
//! weights are written by hand and leave unknown figures out.

mod app;
mod check;
mod quality;
mod tensor;
mod variant;

pub use self::app::{
    ANSWER, APP_CARD, AppCard, EMBEDDING, Penalty, SneakPeekCard, ValidationCard, VoteCard,
};
pub use self::quality::{QualityCard, QualityMetric};
pub use self::tensor::{OPEN, TensorCard};
pub use self::variant::{ExitCard, MeasuredMemory, Provenance, VARIANT_CARD, VariantCard};
pub use crate::networks::datatype::Datatype;
pub use crate::networks::task::Task;
