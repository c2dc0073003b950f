//! Rows of a folder of images: a folder per class.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::fault::DataFault;
use super::table::{Column, Label, Table, Wanted};

/// Endings of images.
const ENDINGS: [&str; 4] = ["jpg", "jpeg", "png", "webp"];

/// The names of the classes, in sorted order.
///
/// # Errors
/// The folder cannot be read, or has no folders.
pub(crate) fn class_names(folder: &Path) -> Result<Vec<String>, DataFault> {
    let mut names = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            names.push(name_of(&path)?);
        } else if is_image(&path) {
            let reason = "is outside the folders of the classes: FOLDER/CLASS/IMAGE";
            return Err(DataFault::new(&path, reason));
        }
    }
    match names.is_empty() {
        true => {
            let reason = "has no folders; it must have one per class, with the class's images";
            Err(DataFault::new(folder, reason))
        }
        false => Ok(names),
    }
}

pub(super) fn read(wanted: Wanted<'_>) -> Result<Table, DataFault> {
    let only = match wanted.app.inputs.as_slice() {
        [only] if !wanted.is_paired() => only,
        [_] => {
            let reason = "has images by class, and task \"embed\" is measured on pairs: use a .csv \
                          or .jsonl file with their paths";
            return Err(wanted.fault(reason));
        }
        several => {
            let reason = format!(
                "has one image per row, the app has {} inputs: use a .csv or .jsonl file with the \
                 paths of the images",
                several.len()
            );
            return Err(wanted.fault(reason));
        }
    };
    let Some(image) = &only.image else {
        let reason = format!(
            "has images, and input `{}` takes tensors: add the model with the \
             preprocessor_config.json of its images (--image FILE), or use an .npz file",
            only.name
        );
        return Err(wanted.fault(reason));
    };
    let (mut files, mut labels) = (Vec::new(), Vec::new());
    for class in class_names(wanted.file)? {
        for path in entries(&wanted.file.join(&class))? {
            if !is_image(&path) {
                let reason = format!("is no image ({}): move it elsewhere", ENDINGS.join(", "));
                return Err(DataFault::new(&path, reason));
            }
            files.push(path);
            labels.push(Label::Text(class.clone()));
        }
    }
    Ok(Table {
        file: wanted.file.to_path_buf(),
        sides: vec![vec![Column::Images(files, image.clone())]],
        labels,
        label: "the name of the folder".to_owned(),
        lines: Vec::new(),
        note: None,
    })
}

/// The files and folders of a folder that are not hidden, sorted.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, DataFault> {
    let failed = |error: std::io::Error| DataFault::new(folder, error.to_string());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

fn name_of(path: &Path) -> Result<String, DataFault> {
    let name = path.file_name().and_then(OsStr::to_str);
    name.map(str::to_owned)
        .ok_or_else(|| DataFault::new(path, "a class needs a name in UTF-8"))
}

fn is_image(path: &Path) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| ENDINGS.contains(&ending.to_lowercase().as_str()))
}
