//! Whether the models of a far server fit the apps: a wrong name or type is found at the start, not by
//! the first client.

use switchyard_protocol::grpc::messages::inference::ModelMetadataResponse;
use switchyard_protocol::grpc::messages::inference::model_metadata_response::TensorMetadata;
use thiserror::Error;

use crate::model::{RemoteModel, RemoteTensor};

/// A field of a far model that differs from the app's card.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{model}: {field}: the server has {theirs}, the app's card has {ours}")]
pub struct Misfit {
    /// `app/variant`.
    pub model: String,
    /// The field, such as `input beat, datatype`.
    pub field: String,
    /// The server's value.
    pub theirs: String,
    /// The card's value.
    pub ours: String,
}

/// Compares the metadata of a far model with the app's card.
///
/// # Errors
/// The first tensor that differs.
pub fn check(model: &RemoteModel, found: &ModelMetadataResponse) -> Result<(), Misfit> {
    let sides = [
        ("input", model.inputs.as_slice(), &found.inputs),
        ("output", model.outputs.all(), &found.outputs),
    ];
    for (side, wanted, theirs) in sides {
        for tensor in wanted {
            check_tensor(model, side, tensor, theirs)?;
        }
    }
    Ok(())
}

fn check_tensor(
    model: &RemoteModel,
    side: &str,
    tensor: &RemoteTensor,
    theirs: &[TensorMetadata],
) -> Result<(), Misfit> {
    let misfit = |field: &str, theirs: String, ours: String| Misfit {
        model: model.name.clone(),
        field: format!("{side} {}{field}", tensor.name),
        theirs,
        ours,
    };
    let Some(found) = theirs.iter().find(|one| one.name == tensor.name) else {
        let names: Vec<&str> = theirs.iter().map(|one| one.name.as_str()).collect();
        let ours = format!("`{}`", tensor.local);
        return Err(misfit("", format!("only `{}`", names.join("`, `")), ours));
    };
    if found.datatype != tensor.datatype.name() {
        let ours = tensor.datatype.name().to_owned();
        return Err(misfit(", datatype", found.datatype.clone(), ours));
    }
    // The batch dimension comes first.
    if !tensor.fits(found.shape.get(1..).unwrap_or_default()) {
        let ours = format!("{:?} for each row", tensor.shape);
        return Err(misfit(", shape", format!("{:?}", found.shape), ours));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use switchyard_models::card::{Datatype, Task, TensorCard};

    use super::*;
    use crate::model::RemoteOutputs;

    fn tensor(name: &str, datatype: &str, shape: &[i64]) -> TensorMetadata {
        TensorMetadata {
            name: name.to_owned(),
            datatype: datatype.to_owned(),
            shape: shape.to_vec(),
        }
    }

    #[test]
    fn a_difference_names_the_field_and_both_values() {
        let card = |name, shape| TensorCard::fixed(name, Datatype::Fp32, shape);
        let outputs = [card("probabilities", &[5])];
        let outputs = outputs.iter().map(|card| RemoteTensor::new(0, card, None));
        let model = RemoteModel {
            name: "heart/cnn".to_owned(),
            model: "heart_cnn".to_owned(),
            versions: vec![String::new()],
            inputs: vec![RemoteTensor::new(
                0,
                &card("beat", &[187]),
                Some(&"x".to_owned()),
            )],
            outputs: RemoteOutputs::new(Task::Classify, outputs.collect()),
        };
        let found = |input: TensorMetadata, output: TensorMetadata| {
            let found = ModelMetadataResponse {
                inputs: vec![input],
                outputs: vec![output],
                ..ModelMetadataResponse::default()
            };
            check(&model, &found).map_err(|misfit| misfit.to_string())
        };
        let (x, p) = (
            tensor("x", "FP32", &[-1, 187]),
            tensor("probabilities", "FP32", &[-1, -1]),
        );
        assert_eq!(found(x.clone(), p.clone()), Ok(()));
        assert_eq!(
            found(tensor("beat", "FP32", &[-1, 187]), p.clone()).unwrap_err(),
            "heart/cnn: input x: the server has only `beat`, the app's card has `beat`"
        );
        assert_eq!(
            found(tensor("x", "FP64", &[-1, 187]), p.clone()).unwrap_err(),
            "heart/cnn: input x, datatype: the server has FP64, the app's card has FP32"
        );
        assert_eq!(
            found(tensor("x", "FP32", &[-1, 188]), p).unwrap_err(),
            "heart/cnn: input x, shape: the server has [-1, 188], the app's card has [187] for each row"
        );
        assert_eq!(
            found(x, tensor("probabilities", "FP32", &[-1, 4])).unwrap_err(),
            "heart/cnn: output probabilities, shape: the server has [-1, 4], the app's card has [5] \
             for each row"
        );
    }
}
