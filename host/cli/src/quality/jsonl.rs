//! Rows of a file with a JSON object per line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use serde_json::{Map, Value};
use switchyard_executor::InputTensor;
use switchyard_models::card::TensorCard;

use super::element::{Element, RowElements};
use super::fault::{DataFault, Place};
use super::table::{Column, Label, Table, Wanted};

/// The field with the input, or with all inputs by name.
const INPUT: &str = "input";

/// Most dimensions of a nested array.
const DEPTH_MAX: usize = 16;

/// A field at fault, and the reason.
type FieldFault = (String, String);

/// The values of one input.
enum FieldValues {
    Tensors(Vec<InputTensor>),
    Images(Vec<PathBuf>),
}

pub(super) fn read(wanted: Wanted<'_>) -> Result<Table, DataFault> {
    let open = File::open(wanted.file).map_err(|error| wanted.fault(error.to_string()))?;
    let sides = if wanted.is_paired() { 2 } else { 1 };
    let values = |card: &TensorCard| match card.image {
        Some(_) => FieldValues::Images(Vec::new()),
        None => FieldValues::Tensors(Vec::new()),
    };
    let side = || wanted.app.inputs.iter().map(values).collect();
    let mut columns: Vec<Vec<FieldValues>> = (0..sides).map(|_| side()).collect();
    let (mut labels, mut lines) = (Vec::new(), Vec::new());
    for (line, text) in (1..).zip(BufReader::new(open).lines()) {
        let at = |reason: String| wanted.fault(reason).at(Place::Line(line));
        let text = text.map_err(|error| at(error.to_string()))?;
        if text.trim().is_empty() {
            continue;
        }
        let row: Map<String, Value> =
            serde_json::from_str(&text).map_err(|error| at(format!("no JSON object: {error}")))?;
        let field = |(field, reason): FieldFault| at(reason).column(field);
        let Some(found) = row.get(wanted.label) else {
            let names: Vec<String> = row.keys().cloned().collect();
            return Err(wanted.unlabelled(&names).at(Place::Line(line)));
        };
        let found = label(found).map_err(|reason| field((wanted.label.to_owned(), reason)))?;
        labels.push(found);
        let inputs = inputs(wanted, &row).map_err(|fault| match fault {
            InputFault::Field(fault) => field(fault),
            InputFault::File(fault) => fault.at(Place::Line(line)),
        })?;
        for (side, inputs) in columns.iter_mut().zip(inputs) {
            for ((values, card), (name, value)) in
                side.iter_mut().zip(&wanted.app.inputs).zip(inputs)
            {
                let pushed = push(values, card, value, wanted);
                pushed.map_err(|reason| field((name, reason)))?;
            }
        }
        lines.push(line);
    }
    let column = |(values, card): (FieldValues, &TensorCard)| match values {
        FieldValues::Tensors(tensors) => Column::Tensors(tensors),
        FieldValues::Images(files) => Column::Images(files, card.image.clone().unwrap_or_default()),
    };
    let sides = columns.into_iter().map(|side| {
        side.into_iter()
            .zip(&wanted.app.inputs)
            .map(column)
            .collect()
    });
    Ok(Table {
        file: wanted.file.to_path_buf(),
        sides: sides.collect(),
        labels,
        label: wanted.label.to_owned(),
        lines,
        note: None,
    })
}

enum InputFault {
    Field(FieldFault),
    File(DataFault),
}

/// Name and value of each input, on each side.
fn inputs<'a>(
    wanted: Wanted<'_>,
    row: &'a Map<String, Value>,
) -> Result<Vec<Vec<(String, &'a Value)>>, InputFault> {
    let cards = &wanted.app.inputs;
    let is_named = cards.iter().any(|card| card.name == INPUT);
    let whole = row.get(INPUT).filter(|_| !is_named);
    let Some(whole) = whole else {
        let others = row.keys().filter(|name| *name != wanted.label).cloned();
        let others: Vec<String> = others.collect();
        let names = wanted.names(&others).map_err(InputFault::File)?;
        let value = |name: &String| Some((name.clone(), row.get(name)?));
        let sides = names
            .iter()
            .map(|side| side.iter().filter_map(value).collect());
        return Ok(sides.collect());
    };
    let refuse = |reason: String| InputFault::Field((INPUT.to_owned(), reason));
    let sides: Vec<&Value> = match (wanted.is_paired(), whole) {
        (false, whole) => vec![whole],
        (true, Value::Array(pair)) if pair.len() == 2 => pair.iter().collect(),
        (true, _) => {
            return Err(refuse(
                "must be an array of the pair's two inputs".to_owned(),
            ));
        }
    };
    let of_side = |side: &'a Value| match (cards.as_slice(), side) {
        ([only], Value::Object(fields)) => match fields.get(&only.name) {
            Some(value) => Ok(vec![(only.name.clone(), value)]),
            None => Err(refuse(format!("has no field `{}`", only.name))),
        },
        ([_], value) => Ok(vec![(INPUT.to_owned(), value)]),
        (cards, Value::Object(fields)) => {
            let value = |card: &TensorCard| match fields.get(&card.name) {
                Some(value) => Ok((card.name.clone(), value)),
                None => Err(refuse(format!("has no field `{}`", card.name))),
            };
            cards.iter().map(value).collect()
        }
        (cards, _) => {
            let names = cards.iter().map(|card| card.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            Err(refuse(format!("must be an object with the fields {names}")))
        }
    };
    sides.into_iter().map(of_side).collect()
}

/// Appends the value of a row.
fn push(
    values: &mut FieldValues,
    card: &TensorCard,
    value: &Value,
    wanted: Wanted<'_>,
) -> Result<(), String> {
    match values {
        FieldValues::Images(files) => {
            let Value::String(path) = value else {
                return Err("must be the path of an image".to_owned());
            };
            files.push(wanted.file.with_file_name(path));
        }
        FieldValues::Tensors(tensors) => {
            let mut elements = RowElements::new(card.datatype, wanted.app.non_finite);
            let mut shape = Vec::new();
            flatten(value, 0, &mut shape, &mut elements)?;
            let shape = value.is_array().then_some(shape.as_slice());
            tensors.push(elements.tensor(card, shape)?);
        }
    }
    Ok(())
}

/// Appends the elements of nested arrays, whose lengths must agree.
fn flatten(
    value: &Value,
    depth: usize,
    shape: &mut Vec<usize>,
    elements: &mut RowElements,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!("more than {DEPTH_MAX} nested arrays"));
    }
    match value {
        Value::Array(parts) => {
            match shape.get(depth) {
                None if elements.len() == 0 => shape.push(parts.len()),
                Some(&size) if size == parts.len() => {}
                _ => return Err("its arrays have different lengths".to_owned()),
            }
            for part in parts {
                flatten(part, depth + 1, shape, elements)?;
            }
            Ok(())
        }
        _ if shape.len() != depth => Err("its arrays have different depths".to_owned()),
        Value::Null => elements.push(Element::Float(f64::NAN)),
        Value::Bool(value) => elements.push(Element::Bool(*value)),
        Value::String(text) => elements.push(Element::Text(text)),
        Value::Number(number) => elements.push(match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Element::Integer(value.into()),
            (None, Some(value)) => Element::Integer(value.into()),
            (None, None) => Element::Float(number.as_f64().unwrap_or(f64::NAN)),
        }),
        Value::Object(_) => Err("is an object, must be a value or nested arrays".to_owned()),
    }
}

fn label(value: &Value) -> Result<Label, String> {
    let number = |value: &Value| value.as_f64().ok_or("must be a number");
    match value {
        Value::String(text) => Ok(Label::Text(text.trim().to_owned())),
        Value::Bool(value) => Ok(Label::Text(value.to_string())),
        Value::Number(_) => Ok(Label::Numbers(vec![number(value)?])),
        Value::Array(values) if !values.is_empty() => {
            let numbers: Result<Vec<f64>, &str> = values.iter().map(number).collect();
            Ok(Label::Numbers(numbers?))
        }
        _ => Err(format!("{value}, must be a class, a number or numbers")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use switchyard_models::card::Datatype;

    use super::*;

    #[test]
    fn nested_arrays_must_agree() {
        let flat = |value: Value| {
            let mut elements = RowElements::new(Datatype::Fp32, false);
            let mut shape = Vec::new();
            flatten(&value, 0, &mut shape, &mut elements).map(|()| (shape, elements.len()))
        };
        assert_eq!(
            flat(json!([[1, 2, 3], [4, 5.5, 6]])).unwrap(),
            (vec![2, 3], 6)
        );
        assert_eq!(flat(json!(7)).unwrap(), (vec![], 1));
        assert!(flat(json!([[1, 2], [3]])).unwrap_err().contains("lengths"));
        assert!(flat(json!([1, [2]])).unwrap_err().contains("different"));
        assert!(flat(json!([[1], 2])).unwrap_err().contains("depths"));
        assert!(flat(json!([null])).unwrap_err().contains("finite"));
    }
}
