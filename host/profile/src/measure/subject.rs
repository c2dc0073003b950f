//! The apps and variants that a measurement covers.

use switchyard_core::catalog::{App, Variant};

/// The apps and variants to measure. Positions are the core's ids, and the bench's.
#[derive(Clone, Copy)]
pub struct MeasureSubject<'a> {
    /// Apps.
    pub apps: &'a [App],
    /// Variants of all apps.
    pub variants: &'a [Variant],
}

// === impl MeasureSubject ===

impl<'a> MeasureSubject<'a> {
    /// The name of a variant's app.
    pub(super) fn app_of(self, variant: &Variant) -> &'a str {
        let app = self.apps.get(variant.app.index());
        app.map_or("", |app| app.name.as_str())
    }

    /// The account of a kind's time. Two pools may have the same kind, but no app is in two pools.
    pub(super) fn account(self, kind: &str) -> String {
        let apps: Vec<&str> = self.apps.iter().map(|app| app.name.as_str()).collect();
        format!("{kind}: {}", apps.join(", "))
    }
}
