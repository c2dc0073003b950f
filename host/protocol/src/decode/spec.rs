//! Names, datatypes and shapes against those that the app declares.

use crate::app::{AppInfo, TensorSpec};
use crate::datatype::Datatype;
use crate::error::ProtocolError;
use crate::excerpt::excerpt;
use crate::tensor::element_count;

/// A list of tensors in a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum TensorList {
    Inputs,
    Outputs,
}

impl TensorList {
    const fn field(self) -> &'static str {
        match self {
            Self::Inputs => "inputs",
            Self::Outputs => "outputs",
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Inputs => "input",
            Self::Outputs => "output",
        }
    }

    fn of(self, app: &AppInfo) -> &[TensorSpec] {
        match self {
            Self::Inputs => &app.inputs,
            Self::Outputs => &app.outputs,
        }
    }

    /// The position of `name` in the app's list; `index` is its position in the request's list.
    pub(super) fn find(
        self,
        app: &AppInfo,
        index: usize,
        name: &str,
    ) -> Result<usize, ProtocolError> {
        let specs = self.of(app);
        let found = specs.iter().position(|spec| spec.name == name);
        found.ok_or_else(|| self.unknown(app, index, name))
    }

    fn unknown(self, app: &AppInfo, index: usize, name: &str) -> ProtocolError {
        let known: Vec<_> = self.of(app).iter().map(|spec| spec.name.as_str()).collect();
        let (field, noun) = (self.field(), self.noun());
        ProtocolError::malformed(
            format!("{field}[{index}].name"),
            format!(
                "unknown {noun} {:?}; {field} of app {:?}: {}",
                excerpt(name),
                app.name,
                known.join(", ")
            ),
        )
    }

    /// The error for a second tensor of one name.
    pub(super) fn repeated(self, index: usize, name: &str) -> ProtocolError {
        ProtocolError::malformed(
            format!("{}[{index}].name", self.field()),
            format!("{:?} appears twice", excerpt(name)),
        )
    }
}

/// Checks the name of a datatype.
pub(crate) fn check_datatype(spec: &TensorSpec, name: &str) -> Result<(), String> {
    if name == spec.datatype.name() {
        return Ok(());
    }
    match Datatype::from_name(name) {
        Some(datatype) if datatype == spec.datatype => Ok(()),
        Some(_) => Err(format!("expected {}, got {name}", spec.datatype.name())),
        None => Err(format!(
            "expected {}, got the unknown datatype {:?}",
            spec.datatype.name(),
            excerpt(name)
        )),
    }
}

/// Checks a shape, and returns its number of elements.
pub(crate) fn check_shape(
    app: &AppInfo,
    spec: &TensorSpec,
    shape: &[usize],
) -> Result<usize, String> {
    let fits = shape.split_first().is_some_and(|(_, row)| {
        row.len() == spec.shape.len()
            && row
                .iter()
                .zip(&spec.shape)
                .all(|(&dim, &wanted)| usize::try_from(wanted).map_or(true, |wanted| dim == wanted))
    });
    if !fits {
        return Err(format!(
            "expected {}, got {shape:?}; the first dimension is the batch",
            batched(spec)
        ));
    }
    let (rows, row) = (shape[0], &shape[1..]);
    if row
        .iter()
        .zip(&spec.largest)
        .any(|(dim, largest)| dim > largest)
    {
        return Err(format!(
            "{row:?} after the rows is larger than {:?}, the largest shape that the app takes",
            spec.largest
        ));
    }
    if rows == 0 || rows > app.max_batch_rows {
        return Err(format!(
            "expected 1 to {} rows, got {rows}",
            app.max_batch_rows
        ));
    }
    element_count(shape).ok_or_else(|| format!("{shape:?} has more than {} elements", usize::MAX))
}

/// The shape with its batch dimension, such as `[rows, 187]`; `?` is a variable dimension.
fn batched(spec: &TensorSpec) -> String {
    let mut text = String::from("[rows");
    for dim in &spec.shape {
        text.push_str(", ");
        if *dim < 0 {
            text.push('?');
        } else {
            text.push_str(&dim.to_string());
        }
    }
    text.push(']');
    text
}
