//! Tables of equally long columns.

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Whole(Vec<u64>),
    /// Whole numbers, -1 where there is none.
    Signed(Vec<i64>),
    /// Numbers, NaN where there is none.
    Number(Vec<f64>),
    /// 0 or 1.
    Flag(Vec<u8>),
    /// Positions in a list of names, -1 where there is none.
    Name(Vec<i32>, Vec<String>),
}

/// A column with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// With its unit, such as `latency_us`.
    pub name: &'static str,
    /// One per row.
    pub values: Values,
}

/// Columns of equal lengths.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnTable {
    /// In the order of their names' declaration.
    pub columns: Vec<Column>,
}

/// Names in the order in which they are first seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameList {
    names: Vec<String>,
}

// === impl Values ===

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Whole(values) => values.len(),
            Self::Signed(values) => values.len(),
            Self::Number(values) => values.len(),
            Self::Flag(values) => values.len(),
            Self::Name(codes, _) => codes.len(),
        }
    }

    /// Without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// === impl ColumnTable ===

impl ColumnTable {
    pub(crate) fn with(mut self, name: &'static str, values: Values) -> Self {
        self.columns.push(Column { name, values });
        self
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// The rows of `other` after the own ones. Both have the same columns; lists of names are joined.
    pub(crate) fn append(&mut self, other: Self) {
        if self.columns.is_empty() {
            *self = other;
            return;
        }
        for (own, other) in self.columns.iter_mut().zip(other.columns) {
            match (&mut own.values, other.values) {
                (Values::Whole(to), Values::Whole(from)) => to.extend(from),
                (Values::Signed(to), Values::Signed(from)) => to.extend(from),
                (Values::Number(to), Values::Number(from)) => to.extend(from),
                (Values::Flag(to), Values::Flag(from)) => to.extend(from),
                (Values::Name(to, names), Values::Name(from, others)) => {
                    let mut list = NameList {
                        names: std::mem::take(names),
                    };
                    let codes: Vec<i32> = others.iter().map(|name| list.code(name)).collect();
                    to.extend(from.iter().map(|&code| match usize::try_from(code) {
                        Ok(at) => codes[at],
                        Err(_) => code,
                    }));
                    *names = list.names;
                }
                _ => unreachable!("columns of one table have one type"),
            }
        }
    }
}

// === impl NameList ===

impl NameList {
    pub(crate) fn of(names: impl IntoIterator<Item = String>) -> Self {
        Self {
            names: names.into_iter().collect(),
        }
    }

    /// The position of a name, which is added if it is new.
    pub(crate) fn code(&mut self, name: &str) -> i32 {
        let at = self.names.iter().position(|known| known == name);
        let at = at.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        i32::try_from(at).unwrap_or(-1)
    }

    pub(crate) fn with(self, codes: Vec<i32>) -> Values {
        Values::Name(codes, self.names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(codes: &[i32], names: &[&str]) -> ColumnTable {
        let names = NameList::of(names.iter().map(|&name| name.to_owned()));
        ColumnTable::default().with("policy", names.with(codes.to_vec()))
    }

    #[test]
    fn appended_rows_keep_their_names() {
        let mut joined = ColumnTable::default();
        joined.append(table(&[0, -1], &["a"]));
        joined.append(table(&[1, 0, -1], &["a", "b"]));
        joined.append(table(&[0], &["c"]));
        assert_eq!(joined, table(&[0, -1, 1, 0, -1, 2], &["a", "b", "c"]));
        assert_eq!(joined.rows(), 6);
    }
}
