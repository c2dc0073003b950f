//! A file of recorded votes of neighbours.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use switchyard_core::catalog::Catalog;
use switchyard_sim::votes::RecordedVotes;

use crate::error::InputError;

/// As `cargo bench --bench estimates -- --votes fall,heart` writes it.
#[derive(Deserialize)]
struct VotesFile {
    apps: Vec<AppVotes>,
}

#[derive(Deserialize)]
struct AppVotes {
    app: String,
    /// By class of the sample: the different votes, and how many samples got them.
    classes: Vec<Vec<VotesRow>>,
}

#[derive(Deserialize)]
struct VotesRow {
    votes: Vec<u32>,
    samples: u64,
}

/// The votes of each app of a catalog, by app; none for apps that the file lacks.
///
/// # Errors
/// Names the file and the app whose votes cannot be used.
pub(crate) fn read(
    file: &Path,
    catalog: &Catalog,
) -> Result<Vec<Option<Arc<RecordedVotes>>>, InputError> {
    let wrong = |reason: &dyn std::fmt::Display| {
        InputError::new(format!("--votes {}: {reason}", file.display()))
    };
    let text = fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let read: VotesFile = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let mut all = vec![None; catalog.apps.len()];
    for AppVotes { app, classes } in read.apps {
        let Some(at) = catalog.apps.iter().position(|known| known.name == app) else {
            continue;
        };
        let rows = |rows: Vec<VotesRow>| rows.into_iter().map(|row| (row.votes, row.samples));
        let classes = classes.into_iter().map(|class| rows(class).collect());
        let votes = RecordedVotes::try_new(classes.collect());
        let votes = votes.map_err(|reason| wrong(&format!("{app}: {reason}")))?;
        all[at] = Some(Arc::new(votes));
    }
    if all.iter().all(Option::is_none) {
        let known: Vec<&str> = catalog.apps.iter().map(|app| app.name.as_str()).collect();
        return Err(wrong(&format!(
            "has votes of no app; apps: {}",
            known.join(", ")
        )));
    }
    Ok(all)
}
