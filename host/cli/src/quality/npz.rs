//! Rows of a file of numpy arrays: an array per input, and one of labels.

use std::fs::File;
use std::io::{BufReader, Read};

use zip::ZipArchive;

use super::element::Element;
use super::fault::DataFault;
use super::npy::{NpyArray, RowArray};
use super::table::{Column, Label, Table, Wanted};

/// The ending of an array's name in the archive.
const ENDING: &str = ".npy";

type Archive = ZipArchive<BufReader<File>>;

pub(super) fn read(wanted: Wanted<'_>) -> Result<Table, DataFault> {
    let open = File::open(wanted.file).map_err(|error| wanted.fault(error.to_string()))?;
    let mut archive = ZipArchive::new(BufReader::new(open))
        .map_err(|error| wanted.fault(format!("is no file of numpy.savez: {error}")))?;
    let entries: Result<Vec<_>, _> = archive.file_names().collect();
    let entries = entries.map_err(|error| wanted.fault(error.to_string()))?;
    let names = entries.iter().filter_map(|name| name.strip_suffix(ENDING));
    let names: Vec<String> = names.map(str::to_owned).collect();
    drop(entries);
    if !names.iter().any(|name| name == wanted.label) {
        return Err(wanted.unlabelled(&names));
    }
    if let Some(image) = wanted.app.inputs.iter().find(|input| input.image.is_some()) {
        let reason = format!(
            "input `{}` takes encoded images, which arrays are not: use a folder of images, or a \
             .csv or .jsonl file with their paths",
            image.name
        );
        return Err(wanted.fault(reason));
    }
    let labels = labels(&array(&mut archive, wanted, wanted.label)?)
        .map_err(|reason| wanted.fault(reason).column(wanted.label))?;
    let others = names.into_iter().filter(|name| name != wanted.label);
    let others: Vec<String> = others.collect();
    let mut sides = Vec::new();
    for side in wanted.names(&others)? {
        let mut columns = Vec::new();
        for (card, name) in wanted.app.inputs.iter().zip(&side) {
            let array = array(&mut archive, wanted, name)?;
            if array.rows() != labels.len() {
                let reason = format!(
                    "has {} rows, `{}` has {}: both need the same",
                    array.rows(),
                    wanted.label,
                    labels.len()
                );
                return Err(wanted.fault(reason).column(name));
            }
            let rows = RowArray::new(name, array, card, wanted.app.non_finite);
            columns.push(Column::Array(rows));
        }
        sides.push(columns);
    }
    Ok(Table {
        file: wanted.file.to_path_buf(),
        sides,
        labels,
        label: wanted.label.to_owned(),
        lines: Vec::new(),
        note: None,
    })
}

fn array(archive: &mut Archive, wanted: Wanted<'_>, name: &str) -> Result<NpyArray, DataFault> {
    let refuse = |reason: String| wanted.fault(reason).column(name);
    let entry = archive.by_name(&format!("{name}{ENDING}"));
    let mut entry = entry.map_err(|error| refuse(error.to_string()))?;
    let mut bytes = Vec::new();
    entry
        .read_to_end(&mut bytes)
        .map_err(|error| refuse(error.to_string()))?;
    NpyArray::parse(&bytes).map_err(refuse)
}

fn labels(array: &NpyArray) -> Result<Vec<Label>, String> {
    if array.shape.is_empty() {
        return Err("is a single value, must have an element per row".to_owned());
    }
    let label = |row: usize| {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        array.each(row, |element| {
            match element {
                Element::Integer(value) => numbers.push(value as f64),
                Element::Float(value) => numbers.push(value),
                Element::Bool(value) => numbers.push(f64::from(u8::from(value))),
                Element::Text(text) => texts.push(text.to_owned()),
            }
            Ok(())
        })?;
        match (texts.pop(), texts.is_empty(), numbers.is_empty()) {
            (Some(text), true, _) => Ok(Label::Text(text)),
            (None, _, false) => Ok(Label::Numbers(numbers)),
            _ => {
                let shape = &array.shape;
                Err(format!(
                    "is {shape:?}, must have a class or numbers per row"
                ))
            }
        }
    };
    (0..array.rows()).map(label).collect()
}
