//! The cards of a lone file of weights, whose tensors tell the network.

mod families;
mod recognised;
mod residual;
mod transformer;

use std::path::Path;

use self::families::inverted;
use self::recognised::{Recognised, Shapes};
use super::export;
use super::statement::{Description, Statement};
use super::vision::{VisionModel, describe_images};
use crate::error::ModelError;
use crate::images::ImageCard;
use crate::networks::inverted::ImagePadding;
use crate::weights::tensors::tensor_shapes;

/// Facts about a file of weights in another file.
#[derive(Default)]
pub(super) struct WeightsHints {
    pub(super) padding: Option<ImagePadding>,
    pub(super) size: Option<usize>,
    pub(super) image: Option<ImageCard>,
}

/// Describes a file `*.safetensors`.
pub(super) fn describe(source: &Path, statement: &Statement) -> Result<Description, ModelError> {
    describe_with(source, statement, WeightsHints::default())
}

pub(super) fn describe_with(
    source: &Path,
    statement: &Statement,
    hints: WeightsHints,
) -> Result<Description, ModelError> {
    let shapes = tensor_shapes(source)?;
    let refuse = |reason: String| ModelError::weights(source, reason);
    let mut found = recognise(&shapes).map_err(refuse)?;
    if let Some([centred, same]) = &found.paddings {
        let Some(padding) = statement.padding.or(hints.padding) else {
            return Err(refuse(format!(
                "its tensors are those of {centred} and of {same}, which pad images differently: \
                 --padding centred for {centred}, --padding same for {same}"
            )));
        };
        found.architecture.set_padding(padding);
    } else if statement.padding.is_some() {
        let reason = format!("--padding: {} has one way to pad images", found.name);
        return Err(refuse(reason));
    }
    found.notes.insert(
        0,
        format!(
            "its tensors are those of {} in {}'s naming",
            found.name, found.naming
        ),
    );
    describe_images(
        source,
        statement,
        VisionModel {
            name: found.name,
            architecture: found.architecture,
            is_size_known: found.is_size_known,
            size: hints.size,
            image: hints.image,
            labels: Vec::new(),
            further: Vec::new(),
            notes: found.notes,
        },
    )
}

/// The network of these tensors, or the reason why there is none.
fn recognise(shapes: &Shapes) -> Result<Recognised, String> {
    const ENCODER: &str = "embeddings.word_embeddings.weight";
    if shapes.keys().any(|name| name.ends_with(ENCODER)) {
        return Err(
            "a text encoder needs its config.json and tokenizer.json: give the folder of all three"
                .to_owned(),
        );
    }
    if shapes.contains_key("vit.embeddings.cls_token") {
        return Err(
            "a vision transformer of Hugging Face needs its config.json: give the folder \
                    of both"
                .to_owned(),
        );
    }
    let found = inverted(shapes)
        .or_else(|| residual::recognise(shapes))
        .or_else(|| transformer::recognise(shapes));
    found.ok_or_else(|| {
        let some: Vec<String> = shapes
            .keys()
            .take(3)
            .map(|name| format!("`{name}`"))
            .collect();
        format!(
            "its tensors ({}, ...) are of no network that is known here: resnet, efficientnet, \
             efficientnet-v2, mobilenet-v3 and vit, in torchvision's or timm's naming. {}",
            some.join(", "),
            export::WEIGHTS
        )
    })
}
