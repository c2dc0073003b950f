//! Labels as classes, or as numbers.

use super::fault::DataFault;
use super::table::{Label, Table, listed};

/// The class of each row.
///
/// Labels are the names of classes if all of them are; otherwise all are positions.
///
/// # Errors
/// A label is neither.
pub(super) fn classes(table: &Table, classes: &[String]) -> Result<Vec<usize>, DataFault> {
    let texts: Vec<String> = table.labels.iter().map(text).collect();
    let of_name = |text: &String| classes.iter().position(|class| class == text);
    let of_number = |text: &String| text.parse().ok().filter(|&at: &usize| at < classes.len());
    let by_name: Option<Vec<usize>> = texts.iter().map(of_name).collect();
    if let Some(found) = by_name {
        return Ok(found);
    }
    let by_number: Option<Vec<usize>> = texts.iter().map(of_number).collect();
    if let Some(found) = by_number {
        return Ok(found);
    }
    // A file of names has a wrong name; a file of positions has a wrong position.
    let are_names = texts.first().is_some_and(|text| of_name(text).is_some());
    let is_wrong = |text: &String| match are_names {
        true => of_name(text).is_none(),
        false => of_number(text).is_none(),
    };
    let row = texts.iter().position(is_wrong).unwrap_or_default();
    let reason = format!(
        "{:?}, must be the name of a class ({}), or else in all rows its position, 0 to {}",
        texts.get(row).map_or("", String::as_str),
        listed(classes),
        classes.len().saturating_sub(1)
    );
    Err(fault(table, row, reason))
}

/// The numbers of each row: `width` of them.
///
/// # Errors
/// A label is no finite number, or has another width.
pub(super) fn numbers(table: &Table, width: usize) -> Result<Vec<Vec<f64>>, DataFault> {
    let of_row = |(row, label): (usize, &Label)| {
        let numbers = match label {
            Label::Numbers(numbers) => numbers.clone(),
            Label::Text(text) => match text.parse() {
                Ok(number) => vec![number],
                Err(_) => return Err(fault(table, row, format!("{text:?}, must be a number"))),
            },
        };
        if let Some(odd) = numbers.iter().find(|number| !number.is_finite()) {
            return Err(fault(table, row, format!("{odd}, must be a finite number")));
        }
        match numbers.len() == width {
            true => Ok(numbers),
            false => {
                let reason = format!(
                    "{} numbers, the model answers with {width} per row",
                    numbers.len()
                );
                Err(fault(table, row, reason))
            }
        }
    };
    table.labels.iter().enumerate().map(of_row).collect()
}

fn fault(table: &Table, row: usize, reason: String) -> DataFault {
    let fault = DataFault::new(&table.file, reason).at(table.place(row));
    fault.column(&table.label)
}

/// A label as a file of names or positions writes it.
fn text(label: &Label) -> String {
    match label {
        Label::Text(text) => text.clone(),
        Label::Numbers(numbers) => {
            let numbers = numbers.iter().map(f64::to_string);
            numbers.collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(labels: &[&str]) -> Table {
        Table {
            file: "test.csv".into(),
            sides: Vec::new(),
            labels: labels
                .iter()
                .map(|text| Label::Text((*text).to_owned()))
                .collect(),
            label: "label".to_owned(),
            lines: (2..).take(labels.len()).collect(),
            note: None,
        }
    }

    #[test]
    fn labels_are_names_or_positions_and_never_both() {
        let names = ["3", "2", "1"].map(str::to_owned);
        let found = |labels: &[&str]| classes(&table(labels), &names);
        assert_eq!(found(&["1", "3"]).unwrap(), [2, 0], "names come first");
        assert_eq!(found(&["0", "2", "1"]).unwrap(), [0, 2, 1], "0 is no name");
        let refused = found(&["1", "x"]).unwrap_err().to_string();
        assert!(
            refused.starts_with("test.csv: line 3: `label`: \"x\", must be the name of a class"),
            "{refused}"
        );
        assert!(refused.ends_with("its position, 0 to 2"), "{refused}");
        assert!(
            found(&["0", "3"])
                .unwrap_err()
                .to_string()
                .contains("line 3")
        );
        let mut numbered = table(&["", ""]);
        numbered.labels = vec![Label::Numbers(vec![2.0]), Label::Numbers(vec![0.0])];
        assert_eq!(classes(&numbered, &names).unwrap(), [2, 0]);
        numbered.labels[1] = Label::Numbers(vec![0.5]);
        assert!(classes(&numbered, &names).is_err());
    }

    #[test]
    fn numbers_have_the_width_of_the_answer() {
        assert_eq!(numbers(&table(&["1.5", "-2"]), 1).unwrap(), [[1.5], [-2.0]]);
        let refused = |labels: &[&str], width| numbers(&table(labels), width).unwrap_err();
        assert!(
            refused(&["1", "high"], 1)
                .to_string()
                .contains("line 3: `label`: \"high\"")
        );
        assert!(refused(&["nan"], 1).to_string().contains("finite"));
        assert!(
            refused(&["1"], 2)
                .to_string()
                .contains("answers with 2 per row")
        );
    }
}
