//! The tensors of a request in the order of the app's inputs.

use smallvec::SmallVec;

use super::spec::TensorList;
use crate::app::{AppInfo, TensorSpec};
use crate::error::ProtocolError;
use crate::tensor::Tensor;

/// A slot for each input of an app.
pub(crate) struct InputSlots<'a> {
    app: &'a AppInfo,
    slots: SmallVec<[Option<Tensor>; 4]>,
    rows: Option<usize>,
}

impl<'a> InputSlots<'a> {
    pub(crate) fn new(app: &'a AppInfo) -> Self {
        Self {
            app,
            slots: app.inputs.iter().map(|_| None).collect(),
            rows: None,
        }
    }

    /// Decodes the input at `index` of the request into the slot of its name.
    pub(crate) fn fill(
        &mut self,
        index: usize,
        name: &str,
        decode: impl FnOnce(&TensorSpec) -> Result<Tensor, ProtocolError>,
    ) -> Result<(), ProtocolError> {
        let spec = TensorList::Inputs.find(self.app, index, name)?;
        if self.slots[spec].is_some() {
            return Err(TensorList::Inputs.repeated(index, name));
        }
        let tensor = decode(&self.app.inputs[spec])?;
        let own_rows = tensor.shape[0];
        let rows = *self.rows.get_or_insert(own_rows);
        if rows != own_rows {
            return Err(ProtocolError::malformed(
                format!("inputs[{index}].shape"),
                format!("has {own_rows} rows, the inputs before it have {rows}"),
            ));
        }
        self.slots[spec] = Some(tensor);
        Ok(())
    }

    /// The number of rows, the same in all inputs, and the tensors.
    ///
    /// # Errors
    /// An input is missing.
    pub(crate) fn finish(mut self) -> Result<(usize, Vec<Tensor>), ProtocolError> {
        let mut tensors = Vec::with_capacity(self.slots.len());
        for (slot, spec) in self.slots.iter_mut().zip(&self.app.inputs) {
            let Some(tensor) = slot.take() else {
                let reason = format!("{:?} is missing", spec.name);
                return Err(ProtocolError::malformed("inputs", reason));
            };
            tensors.push(tensor);
        }
        let rows = self.rows;
        let rows = rows.ok_or_else(|| ProtocolError::malformed("inputs", "is empty"))?;
        Ok((rows, tensors))
    }
}
