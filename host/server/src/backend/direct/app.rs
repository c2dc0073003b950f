//! An app whose variants run as they are asked for.

use std::sync::Arc;

use switchyard_core::ids::{AppId, ExitId, VariantId};
use switchyard_models::card;

use crate::backend::outputs;

/// Name of the policy in its answers.
pub(super) const NO_POLICY: &str = "worker";

pub(super) struct DirectApp {
    pub(super) name: String,
    pub(super) versions: Vec<DirectVersion>,
    pub(super) raw: Vec<Option<card::Datatype>>,
    pub(super) outputs: outputs::Layout,
}

/// A variant up to one of its exits.
pub(super) struct DirectVersion {
    pub(super) app: AppId,
    pub(super) variant: VariantId,
    pub(super) exit: ExitId,
    pub(super) to_stage: u32,
    pub(super) variant_name: Arc<str>,
    pub(super) exit_name: Arc<str>,
}
