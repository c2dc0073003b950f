//! Columns as buffers that numpy reads without a copy.

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyTuple};
use switchyard_simulate::tables::{ColumnTable, Values};

/// A list of `(name, type of numpy, buffer, names or None)`.
pub(crate) fn columns(py: Python<'_>, table: ColumnTable) -> PyResult<Bound<'_, PyList>> {
    let columns = table.columns.into_iter();
    let columns = columns.map(|column| {
        let (kind, bytes, names) = match &column.values {
            Values::Whole(values) => ("u8", bytemuck::cast_slice(values), None),
            Values::Signed(values) => ("i8", bytemuck::cast_slice(values), None),
            Values::Number(values) => ("f8", bytemuck::cast_slice(values), None),
            Values::Flag(values) => ("?", values.as_slice(), None),
            Values::Name(codes, names) => ("i4", bytemuck::cast_slice(codes), Some(names)),
        };
        let names = names.map(|names| PyList::new(py, names)).transpose()?;
        let buffer = PyByteArray::new(py, bytes);
        (column.name, kind, buffer, names).into_pyobject(py)
    });
    let columns: Vec<Bound<'_, PyTuple>> = columns.collect::<PyResult<_>>()?;
    PyList::new(py, columns)
}
