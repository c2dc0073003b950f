//! A profile with the cells of a later measurement of some variants.

use std::collections::BTreeSet;

use crate::schema::ProfileFile;

impl ProfileFile {
    /// With the cells of `later` in place of its own for the same worker kinds and variants.
    #[must_use]
    pub fn updated(mut self, later: Self) -> Self {
        let measured: BTreeSet<_> = later
            .models
            .iter()
            .map(|cell| (cell.kind.clone(), cell.app.clone(), cell.variant.clone()))
            .collect();
        let is_old = |kind: &String, app: &String, variant: &String| {
            measured.contains(&(kind.clone(), app.clone(), variant.clone()))
        };
        self.models
            .retain(|cell| !is_old(&cell.kind, &cell.app, &cell.variant));
        self.slicing
            .retain(|cell| !is_old(&cell.kind, &cell.app, &cell.variant));
        self.latencies
            .retain(|cell| !is_old(&cell.kind, &cell.app, &cell.variant));
        self.lengths
            .retain(|cell| !is_old(&cell.kind, &cell.app, &cell.variant));
        self.accuracies.retain(|cell| {
            let mut later = later.accuracies.iter();
            later.all(|new| (&new.app, &new.variant) != (&cell.app, &cell.variant))
        });
        let known: BTreeSet<String> = self.energy.iter().map(|cell| cell.kind.clone()).collect();
        let energy = later.energy.into_iter();
        self.energy
            .extend(energy.filter(|cell| !known.contains(&cell.kind)));
        self.made = later.made;
        self.models.extend(later.models);
        self.slicing.extend(later.slicing);
        self.lengths.extend(later.lengths);
        self.latencies.extend(later.latencies);
        self.accuracies.extend(later.accuracies);
        self
    }
}
