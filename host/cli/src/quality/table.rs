//! The rows of a file: their inputs, as an app takes them, and their labels.

use std::path::{Path, PathBuf};

use switchyard_executor::{InputTensor, RowTensors};
use switchyard_models::ImageCard;
use switchyard_models::card::{AppCard, Task};

use super::fault::{DataFault, Place};
use super::npy::RowArray;

/// A file of labelled rows.
pub(crate) struct Table {
    pub(super) file: PathBuf,
    /// The inputs of a row, in the app's order; twice for pairs.
    pub(super) sides: Vec<Vec<Column>>,
    /// One per row.
    pub(super) labels: Vec<Label>,
    /// Name of the labels, for errors.
    pub(super) label: String,
    /// Lines of the rows; of arrays and images none.
    pub(super) lines: Vec<u64>,
    /// How inputs were found, if not by their names.
    pub(super) note: Option<String>,
}

/// The label of a row, as its file has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Label {
    Text(String),
    /// The only one for a class or a score.
    Numbers(Vec<f64>),
}

/// One input of all rows.
pub(super) enum Column {
    Tensors(Vec<InputTensor>),
    Array(RowArray),
    /// Decoded when they are needed.
    Images(Vec<PathBuf>, ImageCard),
}

/// The labels and inputs sought in a file.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) file: &'a Path,
    pub(super) app: &'a AppCard,
    /// Name of the labels.
    pub(super) label: &'a str,
}

// === impl Table ===

impl Table {
    /// How inputs were found, if not by their names.
    pub(crate) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    pub(super) fn rows(&self) -> usize {
        self.labels.len()
    }

    /// The place of a row in the file.
    pub(super) fn place(&self, row: usize) -> Place {
        match self.lines.get(row) {
            Some(line) => Place::Line(*line),
            None => Place::Row(row),
        }
    }

    /// The inputs of a row on one of its sides.
    pub(super) fn inputs(&self, side: usize, row: usize) -> Result<RowTensors, DataFault> {
        let columns = self.sides.get(side).into_iter().flatten();
        columns.map(|column| self.input(column, row)).collect()
    }

    fn input(&self, column: &Column, row: usize) -> Result<InputTensor, DataFault> {
        let missing = || DataFault::new(&self.file, "has no such row").at(self.place(row));
        match column {
            Column::Tensors(tensors) => tensors.get(row).cloned().ok_or_else(missing),
            Column::Array(array) => array.row(row).map_err(|reason| {
                let fault = DataFault::new(&self.file, reason).at(self.place(row));
                fault.column(array.name())
            }),
            Column::Images(files, card) => {
                let file = files.get(row).ok_or_else(missing)?;
                let bytes = std::fs::read(file);
                let bytes = bytes.map_err(|error| DataFault::new(file, error.to_string()))?;
                let mut values = Vec::new();
                card.tensor(&bytes, &mut values)
                    .map_err(|error| DataFault::new(file, error.to_string()))?;
                Ok(InputTensor::F32(values.into()))
            }
        }
    }
}

// === impl Wanted ===

impl Wanted<'_> {
    /// Whether a row is a pair of requests.
    pub(super) fn is_paired(self) -> bool {
        self.app.task == Task::Embed
    }

    pub(super) fn fault(self, reason: impl Into<String>) -> DataFault {
        DataFault::new(self.file, reason)
    }

    /// The names of each input on each side, given those of a file without its labels.
    pub(super) fn names(self, others: &[String]) -> Result<Vec<Vec<String>>, DataFault> {
        let inputs = &self.app.inputs;
        let is_there = |name: &str| others.iter().any(|other| other == name);
        let endings: &[&str] = match self.is_paired() {
            true => &["1", "2"],
            false => &[""],
        };
        let named = |ending: &&str| -> Vec<String> {
            let names = inputs.iter().map(|input| format!("{}{ending}", input.name));
            names.collect()
        };
        let sides: Vec<Vec<String>> = endings.iter().map(named).collect();
        if sides.iter().flatten().all(|name| is_there(name)) {
            return Ok(sides);
        }
        if inputs.len() == 1 && others.len() == endings.len() {
            return Ok(others.iter().map(|name| vec![name.clone()]).collect());
        }
        let mut missing = sides.iter().flatten().filter(|name| !is_there(name));
        let missing = missing.next().map_or("", String::as_str);
        Err(self.lacks(missing, others))
    }

    /// The refusal of a file without a column that an input needs.
    pub(super) fn lacks(self, missing: &str, others: &[String]) -> DataFault {
        let inputs = self.app.inputs.iter().map(|input| input.name.as_str());
        let inputs = inputs.collect::<Vec<_>>().join(", ");
        let pairs = match self.is_paired() {
            true => " (of pairs: each name with 1 and with 2 after it)",
            false => "",
        };
        self.fault(format!(
            "has no `{missing}`; the app's inputs are {inputs}{pairs}, the file has {} and the \
             labels `{}`",
            listed(others),
            self.label
        ))
    }

    /// The refusal of a file without labels.
    pub(super) fn unlabelled(self, names: &[String]) -> DataFault {
        self.fault(format!(
            "has no labels `{}`, it has {}: --label NAME names them",
            self.label,
            listed(names)
        ))
    }
}

/// The first names of a list.
pub(super) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let first = names.iter().take(SHOWN).map(|name| format!("`{name}`"));
    let first = first.collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "nothing else".to_owned(),
        count if count > SHOWN => format!("{first} and {} more", count - SHOWN),
        _ => first,
    }
}
