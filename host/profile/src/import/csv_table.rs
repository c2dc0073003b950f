//! Comma-separated values with a header, read by column name. Errors name file, line and column.

use std::path::Path;
use std::str::FromStr;

use csv::{Position, ReaderBuilder, StringRecord, Trim};

use super::error::ImportError;

/// A file with a header. Empty lines are skipped, cells are trimmed.
pub(super) struct CsvTable<'a> {
    file: &'a Path,
    header: StringRecord,
    /// With their line numbers, counted from 1.
    records: Vec<(u64, StringRecord)>,
}

/// One record below the header; its cells are as many as the header's.
pub(super) struct CsvRecord<'a> {
    table: &'a CsvTable<'a>,
    line: u64,
    cells: &'a StringRecord,
}

// === impl CsvTable ===

impl<'a> CsvTable<'a> {
    pub(super) fn parse(file: &'a Path, text: &str) -> Result<Self, ImportError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .trim(Trim::All)
            .from_reader(text.as_bytes());
        let mut header: Option<StringRecord> = None;
        let mut records = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| {
                let line = error.position().map_or(1, |at| line_of(text, at));
                ImportError::line(file, line, error.to_string())
            })?;
            if record.len() == 1 && record[0].is_empty() {
                continue; // A line of spaces.
            }
            let line = record.position().map_or(1, |at| line_of(text, at));
            let Some(header) = &header else {
                header = Some(record);
                continue;
            };
            if record.len() != header.len() {
                let reason = format!("{} cells, the header has {}", record.len(), header.len());
                return Err(ImportError::line(file, line, reason));
            }
            records.push((line, record));
        }
        let header = header.ok_or_else(|| ImportError::line(file, 1, "there is no header"))?;
        Ok(Self {
            file,
            header,
            records,
        })
    }

    /// Names of the columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = &str> + Clone {
        self.header.iter()
    }

    /// The records, in the order of the file.
    pub(super) fn records(&self) -> impl Iterator<Item = CsvRecord<'_>> {
        self.records.iter().map(|(line, cells)| CsvRecord {
            table: self,
            line: *line,
            cells,
        })
    }

    /// An error about the header.
    pub(super) fn fault(&self, reason: impl Into<String>) -> ImportError {
        ImportError::line(self.file, 1, reason)
    }
}

/// The line of a record. The reader's position is before the empty lines that it skipped.
fn line_of(text: &str, position: &Position) -> u64 {
    let skipped = text.as_bytes().get(position.byte() as usize..);
    let skipped = skipped.unwrap_or_default().iter();
    let ends = skipped.take_while(|byte| matches!(byte, b'\r' | b'\n'));
    position.line() + ends.filter(|&&byte| byte == b'\n').count() as u64
}

// === impl CsvRecord ===

impl CsvRecord<'_> {
    /// An error about this line.
    pub(super) fn fault(&self, reason: impl Into<String>) -> ImportError {
        ImportError::line(self.table.file, self.line, reason)
    }

    /// A cell; `None` if it is empty or the column does not exist.
    pub(super) fn text(&self, column: &str) -> Option<&str> {
        let at = self.table.columns().position(|name| name == column)?;
        self.cells.get(at).filter(|cell| !cell.is_empty())
    }

    /// A cell as a number.
    pub(super) fn number<T: FromStr>(&self, column: &str) -> Result<Option<T>, ImportError> {
        let Some(text) = self.text(column) else {
            return Ok(None);
        };
        let fault = || self.fault(format!("column `{column}`: `{text}` is no such number"));
        text.parse().map(Some).map_err(|_| fault())
    }

    /// A cell as a number from 0 on.
    pub(super) fn amount(&self, column: &str) -> Result<Option<f64>, ImportError> {
        let amount: Option<f64> = self.number(column)?;
        match amount {
            Some(amount) if !(amount.is_finite() && amount >= 0.0) => {
                Err(self.fault(format!("column `{column}`: {amount}, must be 0 or more")))
            }
            amount => Ok(amount),
        }
    }

    /// The column `accuracy` or `accuracy_percent` as a share, 0 to 1.
    pub(super) fn accuracy(&self) -> Result<Option<f64>, ImportError> {
        let columns = [("accuracy", 1.0), ("accuracy_percent", 100.0)];
        for (column, whole) in columns {
            if let Some(amount) = self.amount(column)? {
                if amount > whole {
                    let reason = format!("column `{column}`: {amount}, must be 0 to {whole}");
                    return Err(self.fault(reason));
                }
                return Ok(Some(amount / whole));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn lines(text: &str) -> Vec<(u64, Vec<String>)> {
        let table = CsvTable::parse(Path::new("t.csv"), text).unwrap();
        let records = table.records.iter();
        records
            .map(|(line, cells)| (*line, cells.iter().map(str::to_owned).collect()))
            .collect()
    }

    #[test]
    fn lines_are_counted_with_the_empty_ones() {
        let text = "\u{feff}\n  \na,b\r\n\r\n\n 1 , 2\r\n   \n3,4";
        let cells = |a: &str, b: &str| vec![a.to_owned(), b.to_owned()];
        assert_eq!(lines(text), [(6, cells("1", "2")), (8, cells("3", "4"))]);
    }

    #[test]
    fn quoted_cells_may_hold_commas() {
        let cells = vec!["net, large".to_owned(), "1".to_owned()];
        assert_eq!(lines("name,batch\n\"net, large\",1\n"), [(2, cells)]);
    }
}
