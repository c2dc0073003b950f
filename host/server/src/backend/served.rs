//! An app of a pool, as the backend serves it.

use std::sync::Arc;

use switchyard_core::ids::{AppId, VariantId};
use switchyard_core::time::Micros;
use switchyard_models::ImageCard;
use switchyard_models::card::Datatype;

use super::lengths::LengthMeter;
use super::outputs::Layout;
use crate::driver::{AppState, PoolHandle};

/// One app and its pool.
pub(super) struct ServedApp {
    pub(super) pool: Arc<PoolHandle>,
    pub(super) app: AppId,
    /// The app's variants, in the order of its `AppInfo`.
    pub(super) variants: Vec<VariantId>,
    pub(super) slo: Micros,
    /// For each input its type, if a row has its shape with it.
    pub(super) raw: Vec<Option<Datatype>>,
    /// For each input the way from an encoded image to its tensor, if clients send images.
    pub(super) images: Vec<Option<ImageCard>>,
    pub(super) outputs: Layout,
    /// Present if its requests differ in cost.
    pub(super) lengths: Option<LengthMeter>,
}

// === impl ServedApp ===

impl ServedApp {
    /// The app's name in the URL.
    pub(super) fn name(&self) -> &str {
        let known = self.pool.catalog().app(self.app);
        known.map_or("", |app| app.name.as_str())
    }

    /// Why none of its variants can be loaded, if so. One that can is enough to serve.
    pub(super) fn failure(&self) -> Option<String> {
        let models = self.pool.models();
        let mut variants = self.variants.iter();
        let first = models.failure(*variants.next()?)?;
        variants
            .all(|&variant| models.failure(variant).is_some())
            .then_some(first)
    }

    /// Why its requests are not taken.
    pub(super) fn unavailable(&self) -> String {
        let name = self.name();
        match self.pool.models().app(self.app) {
            AppState::Loading => format!("app {name} is being loaded"),
            AppState::Unloading | AppState::Unloaded | AppState::Ready => format!(
                "app {name} is unloaded: POST /v2/repository/models/{name}/load brings it back"
            ),
        }
    }
}
