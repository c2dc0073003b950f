//! Measured confusion matrices for the exits of a catalog.

use switchyard_core::catalog::{App, Confusion, ConfusionError, Exit, Variant};

use crate::error::ProfileError;
use crate::schema::{AccuracyCell, AccuracySource, ProfileFile};

// === impl ProfileFile ===

impl ProfileFile {
    /// Gives the measured confusion matrices to exits without one, and the recalls that follow from
    /// them. An exit of a variant for which `lacks_card` holds gets its measured accuracy too: its
    /// own is that of the variant with full precision.
    ///
    /// # Errors
    /// A matrix does not fit the app's classes; names app, variant, exit and class.
    pub fn add_confusions(
        &self,
        apps: &[App],
        variants: &mut [Variant],
        lacks_card: impl Fn(&Variant) -> bool,
    ) -> Result<(), ProfileError> {
        for variant in variants {
            let Some(app) = apps.get(variant.app.index()) else {
                continue;
            };
            let takes_accuracy = lacks_card(variant);
            let name = variant.name.as_str();
            for exit in variant.exits.iter_mut() {
                if exit.confusion.is_some() {
                    continue;
                }
                let Some(cell) = self.confusion_cell(&app.name, name, &exit.name) else {
                    continue;
                };
                let shares = checked(cell, app, name, exit)?;
                exit.recall = shares.recall();
                exit.confusion = Some(shares);
                if takes_accuracy && cell.source == AccuracySource::Measured {
                    exit.accuracy = cell.accuracy;
                }
            }
        }
        Ok(())
    }

    fn confusion_cell(&self, app: &str, variant: &str, exit: &str) -> Option<&AccuracyCell> {
        let has_it = |cell: &&AccuracyCell| {
            (&*cell.app, &*cell.variant, &*cell.exit) == (app, variant, exit)
                && !cell.confusion.is_empty()
        };
        self.accuracies.iter().find(has_it)
    }
}

/// The matrix of a cell as shares, one row per class of the app.
fn checked(
    cell: &AccuracyCell,
    app: &App,
    variant: &str,
    exit: &Exit,
) -> Result<Confusion, ProfileError> {
    let shares = Confusion::from_counts(&cell.confusion).and_then(|shares| {
        let (rows, classes) = (shares.recall().len(), app.classes.len());
        if rows == classes {
            return Ok(shares);
        }
        Err(ConfusionError {
            class: classes.min(rows),
            reason: format!("{rows} rows for {classes} classes"),
        })
    });
    shares.map_err(|error| ProfileError::Confusion {
        cell: format!(
            "app {}, variant {variant}, exit {}, {}",
            app.name,
            exit.name,
            app.class(error.class)
        ),
        reason: error.reason,
    })
}
