//! Rows of a CSV file: a column per value, a text or the path of an image per cell.

use std::path::{Path, PathBuf};

use csv::{ReaderBuilder, StringRecord, Trim};
use switchyard_executor::InputTensor;
use switchyard_models::card::{Datatype, TensorCard};

use super::element::{Element, RowElements};
use super::fault::{DataFault, Place};
use super::table::{Column, Label, Table, Wanted};

/// The cells of one input.
struct Cells<'a> {
    card: &'a TensorCard,
    /// Positions of their columns.
    at: Vec<usize>,
    values: CellValues,
}

enum CellValues {
    Tensors(Vec<InputTensor>),
    Images(Vec<PathBuf>),
}

pub(super) fn read(wanted: Wanted<'_>) -> Result<Table, DataFault> {
    let failed = |error: csv::Error| fault_of(wanted.file, &error);
    let mut reader = ReaderBuilder::new()
        .trim(Trim::Headers)
        .from_path(wanted.file)
        .map_err(failed)?;
    let header: Vec<String> = reader
        .headers()
        .map_err(failed)?
        .iter()
        .map(str::to_owned)
        .collect();
    let labelled = label_columns(wanted, &header)?;
    let (mut sides, note) = inputs(wanted, &header, &labelled)?;
    let (mut labels, mut lines) = (Vec::new(), Vec::new());
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(failed)? {
        let line = record.position().map_or(0, csv::Position::line);
        let at = |column: usize, reason: String| {
            let fault = wanted.fault(reason).at(Place::Line(line));
            fault.column(header.get(column).cloned().unwrap_or_default())
        };
        labels.push(label(&record, &labelled).map_err(|(column, reason)| at(column, reason))?);
        for cells in sides.iter_mut().flatten() {
            let pushed = cells.push(&record, wanted);
            pushed.map_err(|(column, reason)| at(column, reason))?;
        }
        lines.push(line);
    }
    let sides = sides
        .into_iter()
        .map(|side| side.into_iter().map(Cells::column).collect());
    Ok(Table {
        file: wanted.file.to_path_buf(),
        sides: sides.collect(),
        labels,
        label: wanted.label.to_owned(),
        lines,
        note,
    })
}

fn fault_of(file: &Path, error: &csv::Error) -> DataFault {
    let fault = DataFault::new(file, error.to_string());
    match error.position() {
        Some(position) => fault.at(Place::Line(position.line())),
        None => fault,
    }
}

/// The columns of the label: `label`, or `label_0`, `label_1` and so on.
fn label_columns(wanted: Wanted<'_>, header: &[String]) -> Result<Vec<usize>, DataFault> {
    let find = |name: &str| header.iter().position(|column| column == name);
    if let Some(at) = find(wanted.label) {
        return Ok(vec![at]);
    }
    let several = (0..).map_while(|i| find(&format!("{}_{i}", wanted.label)));
    let several: Vec<usize> = several.collect();
    match several.is_empty() {
        true => Err(wanted.unlabelled(header)),
        false => Ok(several),
    }
}

/// The columns of the inputs, and how they were found if not by their names.
fn inputs<'a>(
    wanted: Wanted<'a>,
    header: &[String],
    labelled: &[usize],
) -> Result<(Vec<Vec<Cells<'a>>>, Option<String>), DataFault> {
    let is_input = |at: &usize| !labelled.contains(at);
    let others: Vec<usize> = (0..header.len()).filter(is_input).collect();
    let names: Vec<String> = others.iter().map(|&at| header[at].clone()).collect();
    let cards = &wanted.app.inputs;
    for card in cards.iter().filter(|card| !is_cell(card)) {
        if card.fixed_shape().is_none() {
            let reason = format!(
                "input `{}` is {} {:?}, which a CSV file cannot hold: use .jsonl or .npz",
                card.name,
                card.datatype.name(),
                card.shape
            );
            return Err(wanted.fault(reason));
        }
    }
    if let ([card], false) = (cards.as_slice(), wanted.is_paired())
        && !is_cell(card)
    {
        let by_name = numbered(card, "", header);
        let note = format!(
            "input `{}`: the {} columns from `{}` to `{}`, in their order",
            card.name,
            names.len(),
            names.first().map_or("", String::as_str),
            names.last().map_or("", String::as_str)
        );
        let (at, note) = match by_name {
            Some(at) => (at, None),
            None if others.len() == card.width() => (others, Some(note)),
            None => {
                let reason = format!(
                    "has {} columns next to `{}`, input `{}` has {} values, {:?}: one column per \
                     value, or `{}_0` to `{}_{}`",
                    others.len(),
                    wanted.label,
                    card.name,
                    card.width(),
                    card.shape,
                    card.name,
                    card.name,
                    card.width().saturating_sub(1)
                );
                return Err(wanted.fault(reason));
            }
        };
        return Ok((vec![vec![Cells::new(card, at)]], note));
    }
    if cards.iter().all(is_cell) {
        let named = wanted.names(&names)?;
        let cells = |(card, name): (&'a TensorCard, &String)| {
            let at = header.iter().position(|column| column == name);
            Cells::new(card, at.into_iter().collect())
        };
        let sides = named
            .iter()
            .map(|side| cards.iter().zip(side).map(cells).collect());
        return Ok((sides.collect(), None));
    }
    let endings: &[&str] = match wanted.is_paired() {
        true => &["1", "2"],
        false => &[""],
    };
    let mut sides = Vec::new();
    for ending in endings {
        let mut side = Vec::new();
        for card in cards {
            let name = format!("{}{ending}", card.name);
            let at = match is_cell(card) {
                true => header
                    .iter()
                    .position(|column| *column == name)
                    .map(|at| vec![at]),
                false => numbered(card, ending, header),
            };
            let missing = match is_cell(card) {
                true => name,
                false => format!("{name}_0"),
            };
            let at = at.ok_or_else(|| wanted.lacks(&missing, &names))?;
            side.push(Cells::new(card, at));
        }
        sides.push(side);
    }
    Ok((sides, None))
}

/// Whether an input is one cell.
fn is_cell(card: &TensorCard) -> bool {
    card.image.is_some() || card.fixed_shape().is_some() && card.width() == 1
}

/// The columns `NAME_0`, `NAME_1` and so on, if all are there.
fn numbered(card: &TensorCard, ending: &str, header: &[String]) -> Option<Vec<usize>> {
    let columns = (0..card.width()).map(|i| {
        let name = format!("{}{ending}_{i}", card.name);
        header.iter().position(|column| *column == name)
    });
    columns.collect()
}

/// A cell at fault: the position of its column, and the reason.
type CellFault = (usize, String);

fn label(record: &StringRecord, at: &[usize]) -> Result<Label, CellFault> {
    let cell = |&column: &usize| record.get(column).unwrap_or_default().trim();
    if let [only] = at {
        let text = cell(only);
        return match text.is_empty() {
            true => Err((*only, "is empty, must be a label".to_owned())),
            false => Ok(Label::Text(text.to_owned())),
        };
    }
    let number = |column: &usize| {
        let text = cell(column);
        let refused = |_| (*column, format!("{text:?}, must be a number"));
        text.parse::<f64>().map_err(refused)
    };
    let numbers: Result<Vec<f64>, CellFault> = at.iter().map(number).collect();
    Ok(Label::Numbers(numbers?))
}

// === impl Cells ===

impl<'a> Cells<'a> {
    fn new(card: &'a TensorCard, at: Vec<usize>) -> Self {
        let values = match card.image {
            Some(_) => CellValues::Images(Vec::new()),
            None => CellValues::Tensors(Vec::new()),
        };
        Self { card, at, values }
    }

    /// Appends a row.
    fn push(&mut self, record: &StringRecord, wanted: Wanted<'_>) -> Result<(), CellFault> {
        let first = self.at.first().copied().unwrap_or_default();
        match &mut self.values {
            CellValues::Images(files) => {
                let cell = record.get(first).unwrap_or_default().trim();
                if cell.is_empty() {
                    return Err((first, "is empty, must be the path of an image".to_owned()));
                }
                // Relative to the file that names it.
                files.push(wanted.file.with_file_name(cell));
            }
            CellValues::Tensors(tensors) => {
                let datatype = self.card.datatype;
                let mut elements = RowElements::new(datatype, wanted.app.non_finite);
                for &column in &self.at {
                    let cell = record.get(column).unwrap_or_default();
                    if cell.trim().is_empty() && datatype == Datatype::Bytes {
                        return Err((column, "is empty, must be a text".to_owned()));
                    }
                    let pushed = elements.push(Element::of_cell(cell, datatype));
                    pushed.map_err(|reason| (column, reason))?;
                }
                let tensor = elements.tensor(self.card, None);
                tensors.push(tensor.map_err(|reason| (first, reason))?);
            }
        }
        Ok(())
    }

    fn column(self) -> Column {
        match (self.values, &self.card.image) {
            (CellValues::Tensors(tensors), _) => Column::Tensors(tensors),
            (CellValues::Images(files), image) => {
                Column::Images(files, image.clone().unwrap_or_default())
            }
        }
    }
}
