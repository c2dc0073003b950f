//! The cards of a network over images on this project's kernels.

use std::path::{Path, PathBuf};

use super::super::card::{Datatype, Task, TensorCard};
use super::encoder::count;
use super::image::image_port;
use super::statement::{Description, Statement, classified};
use crate::error::ModelError;
use crate::images::ImageCard;
use crate::networks::architecture::Architecture;

/// Name of the copy of the file.
const WEIGHTS: &str = "model.safetensors";

/// Name of the input.
const INPUT: &str = "image";

/// A network over images.
pub(super) struct VisionModel {
    /// Such as `efficientnet b0`.
    pub(super) name: String,
    /// With the publisher's size.
    pub(super) architecture: Architecture,
    /// Whether the weights fit no other size.
    pub(super) is_size_known: bool,
    /// The size that another file of the model says.
    pub(super) size: Option<usize>,
    /// The way from an image to its tensor that another file of the model says.
    pub(super) image: Option<ImageCard>,
    /// Names of its classes, if its files have them.
    pub(super) labels: Vec<String>,
    /// Files next to the weights that the network reads.
    pub(super) further: Vec<(PathBuf, PathBuf)>,
    pub(super) notes: Vec<String>,
}

/// The cards of a model whose weights are the file `weights`.
pub(super) fn describe_images(
    weights: &Path,
    statement: &Statement,
    mut model: VisionModel,
) -> Result<Description, ModelError> {
    let refuse = |reason: String| ModelError::weights(weights, reason);
    let outputs = model.architecture.classes();
    if let Some(task) = statement.task.filter(|task| !task.is_classify()) {
        let reason = format!("--task {}: {} classifies", task.name(), model.name);
        return Err(refuse(reason));
    }
    let classes = match (statement.classes.is_empty(), model.labels.is_empty()) {
        (true, false) => model.labels,
        (true, true) => {
            let reason = format!("tells {outputs} classes apart: --classes FILE names them");
            return Err(refuse(reason));
        }
        (false, _) => statement.names(weights, outputs)?,
    };
    let own = model.architecture.input_shape();
    let own = own.last().copied().unwrap_or_default();
    let stated = stated_size(weights, statement)?;
    let fixed = model.is_size_known.then_some(own);
    // The file that says how images become tensors may say their size too.
    let port = image_port(INPUT, stated.or(fixed).or(model.size));
    let image = match statement.preprocessing.input(weights, &[port])? {
        Some(image) => Some(image),
        None => model.image.map(|image| TensorCard::image(INPUT, image)),
    };
    let of_image = match image.as_ref().and_then(TensorCard::fixed_shape) {
        Some(shape) => match shape.as_slice() {
            [_, height, width] if height == width => Some(*height),
            _ => return Err(refuse(format!("takes square images, not {shape:?}"))),
        },
        None => None,
    };
    let said = of_image.or(stated).or(model.size);
    if let (Some(made), Some(wanted)) = (of_image, stated.filter(|&size| Some(size) != of_image)) {
        let reason = format!(
            "its images become {made} x {made}, not {wanted} x {wanted} of --shape: leave --shape \
             out, or let clients send tensors with --image none"
        );
        return Err(refuse(reason));
    }
    match (said, fixed) {
        (Some(said), Some(fixed)) if said != fixed => {
            let reason =
                format!("its weights fit images of {fixed} x {fixed}, not {said} x {said}");
            return Err(refuse(reason));
        }
        (None, None) => model.notes.push(format!(
            "images of {own} x {own}, the default of {}; --shape {INPUT}=3xSIZExSIZE states \
             another size",
            model.name
        )),
        _ => {}
    }
    let size = said.unwrap_or(own);
    model.architecture.set_size(size);
    let architecture = model.architecture;
    architecture
        .check()
        .map_err(|bad| refuse(format!("{}: {}", bad.field, bad.reason)))?;
    let input = image.unwrap_or_else(|| {
        model.notes.push(format!(
            "clients send tensors [3, {size}, {size}], normalised as in training; --image FILE \
             names the preprocessor_config.json with which they send images"
        ));
        TensorCard::fixed(INPUT, Datatype::Fp32, &[3, size, size])
    });
    let parameters = count(weights, &architecture)?;
    let mut files = vec![(weights.to_path_buf(), PathBuf::from(WEIGHTS))];
    files.extend(model.further);
    let outputs = classified(outputs);
    Ok(Description {
        app: statement.app_card(Task::Classify, vec![input], outputs, classes),
        variant: statement.variant_card(weights, WEIGHTS, parameters, architecture),
        files,
        notes: model.notes,
    })
}

/// The size of `--shape image=3xSIZExSIZE`.
fn stated_size(weights: &Path, statement: &Statement) -> Result<Option<usize>, ModelError> {
    match statement.typical.as_slice() {
        [] => Ok(None),
        [(name, shape)] if name == INPUT => match shape.as_slice() {
            [3, height, width] if height == width => Ok(Some(*height)),
            _ => {
                let reason = format!("--shape {INPUT}: expected 3xSIZExSIZE, such as 3x224x224");
                Err(ModelError::weights(weights, reason))
            }
        },
        [(name, _), ..] => {
            let reason = format!("has no input `{name}` of --shape, it has: {INPUT}");
            Err(ModelError::weights(weights, reason))
        }
    }
}
