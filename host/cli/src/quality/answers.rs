//! A model's answers to all rows of a table.

use std::ops::Range;

use half::{bf16, f16};
use switchyard_executor::{BatchOutput, LoadedModel, RowTensors, every_exit};
use switchyard_models::RawTensor;
use switchyard_models::card::Datatype;

use super::fault::DataFault;
use super::table::Table;

/// Most rows of a batch.
const BATCH_MAX: usize = 16;

/// The numbers of an answer: probabilities of classes, an embedding, a score.
pub(super) type Answer = Vec<f64>;

/// Runs batches of a model over a table.
pub(super) struct Runner<'a> {
    model: &'a LoadedModel,
    table: &'a Table,
    /// Rows of a batch.
    rows: usize,
    /// The app's only output that is read of a graph without classes.
    output: Option<&'a str>,
}

// === impl Runner ===

impl<'a> Runner<'a> {
    pub(super) fn new(
        model: &'a LoadedModel,
        table: &'a Table,
        max_batch: usize,
        output: Option<&'a str>,
    ) -> Self {
        Self {
            model,
            table,
            rows: max_batch.clamp(1, BATCH_MAX),
            output,
        }
    }

    /// Calls `take` with each batch of rows and the answers of every exit.
    pub(super) fn each(
        &self,
        side: usize,
        mut take: impl FnMut(Range<usize>, Vec<Vec<Answer>>) -> Result<(), DataFault>,
    ) -> Result<(), DataFault> {
        let all = self.table.rows();
        for first in (0..all).step_by(self.rows) {
            let rows = first..all.min(first + self.rows);
            let answers = self.answers(side, rows.clone())?;
            take(rows, answers)?;
        }
        Ok(())
    }

    /// The answers of every exit to some rows.
    fn answers(&self, side: usize, rows: Range<usize>) -> Result<Vec<Vec<Answer>>, DataFault> {
        let inputs = rows.clone().map(|row| self.table.inputs(side, row));
        let inputs: Vec<RowTensors> = inputs.collect::<Result<_, _>>()?;
        let outputs = every_exit::run(self.model, inputs.clone())
            .map_err(|error| self.guilty(rows.clone(), inputs, error.to_string()))?;
        let numbers = |output: BatchOutput| self.numbers(output);
        let exits: Result<Vec<Vec<Answer>>, String> = outputs.into_iter().map(numbers).collect();
        let exits = exits.map_err(|reason| self.fault(rows.start, reason))?;
        match exits.iter().find(|answers| answers.len() != rows.len()) {
            Some(answers) => {
                let reason = format!("{} answers to {} rows", answers.len(), rows.len());
                Err(self.fault(rows.start, reason))
            }
            None => Ok(exits),
        }
    }

    /// The fault of the first row that fails on its own too.
    fn guilty(&self, rows: Range<usize>, inputs: Vec<RowTensors>, reason: String) -> DataFault {
        let mut alone = rows.clone().zip(inputs);
        let found = alone.find_map(|(row, inputs)| {
            let error = every_exit::run(self.model, vec![inputs]).err()?;
            Some((row, error.to_string()))
        });
        let (row, reason) = found.unwrap_or((rows.start, reason));
        self.fault(row, reason)
    }

    fn fault(&self, row: usize, reason: String) -> DataFault {
        DataFault::new(&self.table.file, reason).at(self.table.place(row))
    }

    fn numbers(&self, output: BatchOutput) -> Result<Vec<Answer>, String> {
        let BatchOutput::Tensors(rows) = output else {
            let answers = output.rows().map(|row| row.iter().copied().map(f64::from));
            return Ok(answers.map(Iterator::collect).collect());
        };
        let of_row = |tensors: Vec<switchyard_models::NamedTensor>| {
            let named = |(name, _): &&switchyard_models::NamedTensor| {
                tensors.len() == 1 || self.output == Some(&**name)
            };
            match tensors.iter().find(named) {
                Some((name, tensor)) => {
                    floats(tensor).map_err(|reason| format!("output `{name}`: {reason}"))
                }
                None => Err("the model lacks the app's output".to_owned()),
            }
        };
        rows.into_iter().map(of_row).collect()
    }
}

/// The finite numbers of a tensor.
fn floats(tensor: &RawTensor) -> Result<Answer, String> {
    let Some(bytes) = tensor.numbers() else {
        return Err("are texts, must be numbers".to_owned());
    };
    macro_rules! read {
        ($number:ty, $convert:expr) => {{
            let (words, _) = bytes.as_chunks();
            words
                .iter()
                .map(|word| $convert(<$number>::from_le_bytes(*word)))
                .collect()
        }};
    }
    let numbers: Answer = match tensor.datatype {
        Datatype::Fp16 => read!(f16, f16::to_f64),
        Datatype::Bf16 => read!(bf16, bf16::to_f64),
        Datatype::Fp32 => read!(f32, f64::from),
        Datatype::Fp64 => read!(f64, f64::from),
        Datatype::Int8 => read!(i8, f64::from),
        Datatype::Int16 => read!(i16, f64::from),
        Datatype::Int32 => read!(i32, f64::from),
        Datatype::Int64 => read!(i64, |value| value as f64),
        Datatype::Bool | Datatype::Uint8 => read!(u8, f64::from),
        Datatype::Uint16 => read!(u16, f64::from),
        Datatype::Uint32 => read!(u32, f64::from),
        Datatype::Uint64 => read!(u64, |value| value as f64),
        Datatype::Bytes => return Err("are texts, must be numbers".to_owned()),
    };
    match numbers.iter().find(|number| !number.is_finite()) {
        Some(odd) => Err(format!("has {odd}, must be finite")),
        None => Ok(numbers),
    }
}
