//! The exits that can answer, in the order in which a report colours them.

use switchyard_core::ids::{AppId, ExitId, VariantId};

use super::catalog_data::{CatalogData, VariantData};

/// One exit of one variant.
#[derive(Clone, Copy)]
pub(super) struct AnswerKind<'a> {
    pub(super) app: &'a str,
    pub(super) app_id: AppId,
    pub(super) variant: &'a str,
    pub(super) variant_id: VariantId,
    pub(super) exit_id: ExitId,
    /// Absent if the variant has a single exit, which needs no name.
    pub(super) exit: Option<&'a str>,
    pub(super) accuracy: f64,
    /// From 0, the least accurate of the app, to 1.
    pub(super) rank: f64,
}

// === impl AnswerKind ===

impl<'a> AnswerKind<'a> {
    /// App by app, and in each from the least accurate variant to the most accurate.
    pub(super) fn all(catalog: &'a CatalogData) -> Vec<Self> {
        let apps = (0..).map(AppId).zip(&catalog.apps);
        apps.flat_map(|(app_id, app)| Self::of_app(catalog, app_id, &app.name))
            .collect()
    }

    fn of_app(catalog: &'a CatalogData, app_id: AppId, app: &'a str) -> Vec<Self> {
        let all = (0..).map(VariantId).zip(&catalog.variants);
        let mut own: Vec<(VariantId, &VariantData)> =
            all.filter(|(_, variant)| variant.app == app).collect();
        own.sort_by(|a, b| a.1.accuracy().total_cmp(&b.1.accuracy()));
        let count: usize = own.iter().map(|(_, variant)| variant.exits.len()).sum();
        let exits = own.into_iter().flat_map(|(variant_id, variant)| {
            let exits = (0..).map(ExitId).zip(&variant.exits);
            exits.map(move |(exit_id, exit)| (variant_id, variant, exit_id, exit))
        });
        let kind =
            |(at, (variant_id, variant, exit_id, exit)): (usize, (_, &'a VariantData, _, _))| {
                let exit: &'a super::catalog_data::ExitData = exit;
                Self {
                    app,
                    app_id,
                    variant: &variant.name,
                    variant_id,
                    exit_id,
                    exit: (variant.exits.len() > 1).then_some(exit.name.as_str()),
                    accuracy: exit.accuracy,
                    rank: match count {
                        1 => 0.6,
                        _ => at as f64 / (count - 1) as f64,
                    },
                }
            };
        exits.enumerate().map(kind).collect()
    }

    pub(super) fn label(&self) -> String {
        match self.exit {
            Some(exit) => format!("{} · {exit}", self.variant),
            None => self.variant.to_owned(),
        }
    }
}
