//! The way from an encoded image to the input of a model, from its `preprocessor_config.json`.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::card::{Datatype, TensorCard};
use crate::error::ModelError;
use crate::images::{ImageCard, Layout};
use crate::networks::onnx::{ElementType, GraphTensor};

/// File in which Hugging Face describes the way from an image to a tensor.
const PREPROCESSOR: &str = "preprocessor_config.json";

/// Folder of a model's graphs, below that of its other files.
const GRAPHS: &str = "onnx";

/// Whether clients send encoded images, and the file that says how they become tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Preprocessing {
    /// If a `preprocessor_config.json` belongs to a graph whose only input can be an image.
    #[default]
    Derived,
    /// Clients send tensors.
    None,
    /// By this file.
    File(PathBuf),
}

// === impl Preprocessing ===

impl Preprocessing {
    /// The input of a graph in `source` with `ports`; `None` if clients send tensors.
    ///
    /// # Errors
    /// The file cannot be read or understood, or makes other tensors than the graph takes.
    pub(super) fn input(
        &self,
        source: &Path,
        ports: &[GraphTensor],
    ) -> Result<Option<TensorCard>, ModelError> {
        let (file, port) = match (self, ports) {
            (Self::None, _) => return Ok(None),
            (Self::Derived, [port]) if is_image(port) => match beside(source) {
                Some(file) => (file, port),
                None => return Ok(None),
            },
            (Self::Derived, _) => return Ok(None),
            (Self::File(file), [port]) if is_image(port) => (file.clone(), port),
            (Self::File(_), _) => {
                let reason = "--image needs a graph with one input, FP32 of four dimensions: leave \
                              it out, and send tensors";
                return Err(ModelError::weights(source, reason));
            }
        };
        let text = fs::read_to_string(&file)
            .map_err(|error| ModelError::weights(&file, error.to_string()))?;
        let mut image = ImageCard::from_preprocessor(&text).map_err(|error| {
            let reason = format!("{}; with `--image none` clients send tensors", error.reason);
            ModelError::field(&file, error.field, reason)
        })?;
        let row = row(port);
        if is_channels_last(row) {
            image.layout = Layout::Hwc;
        }
        let fits = |(of, made): (&Option<usize>, usize)| of.is_none_or(|of| of == made);
        if !row.iter().zip(image.shape()).all(fits) {
            let sizes = row
                .iter()
                .map(|of| of.map_or_else(|| "?".to_owned(), |of| of.to_string()));
            let reason = format!(
                "{:?}, the model's input `{}` is [{}] after the rows: --image FILE names another \
                 file; with `--image none` clients send tensors",
                image.size,
                port.name,
                sizes.collect::<Vec<_>>().join(", ")
            );
            return Err(ModelError::field(&file, "size", reason));
        }
        Ok(Some(TensorCard::image(port.name.as_str(), image)))
    }
}

/// The file next to a graph, or next to its folder.
fn beside(source: &Path) -> Option<PathBuf> {
    let folder = source.parent()?;
    let above = folder.parent().filter(|_| folder.ends_with(GRAPHS));
    let mut folders = std::iter::once(folder).chain(above);
    folders.find_map(|folder| Some(folder.join(PREPROCESSOR)).filter(|file| file.is_file()))
}

/// The input of a network over images of three colours, of any size unless it is given.
pub(super) fn image_port(name: &str, size: Option<usize>) -> GraphTensor {
    /// FLOAT of ONNX.
    const FP32: ElementType = ElementType(1);
    GraphTensor {
        name: name.to_owned(),
        element: FP32,
        shape: Some(vec![None, Some(3), size, size]),
    }
}

fn row(port: &GraphTensor) -> &[Option<usize>] {
    let row = port.shape.as_ref().and_then(|shape| shape.get(1..));
    row.unwrap_or_default()
}

fn is_image(port: &GraphTensor) -> bool {
    port.element.datatype() == Some(Datatype::Fp32) && row(port).len() == 3
}

/// Whether only the last dimension can be the colours.
fn is_channels_last(row: &[Option<usize>]) -> bool {
    let is_colours = |of: &Option<usize>| matches!(of, Some(1 | 3));
    match row {
        [first, _, last] => first.is_some() && !is_colours(first) && is_colours(last),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::onnx::ElementType;

    /// Types by their numbers in ONNX.
    const FLOAT: i32 = 1;
    const UINT8: i32 = 2;

    const VIT: &str = r#"{"image_processor_type":"ViTImageProcessor","do_resize":true,
        "size":{"height":4,"width":4},"resample":2,"do_rescale":true,
        "rescale_factor":0.00392156862745098,"do_normalize":true,
        "image_mean":[0.5,0.5,0.5],"image_std":[0.5,0.5,0.5]}"#;

    fn port(element: i32, shape: &[Option<usize>]) -> GraphTensor {
        GraphTensor {
            name: "pixel_values".to_owned(),
            element: ElementType(element),
            shape: Some(shape.to_vec()),
        }
    }

    #[test]
    fn the_file_of_a_graph_is_read_where_its_input_can_be_an_image() {
        let folder = tempfile::tempdir().unwrap();
        let graphs = folder.path().join(GRAPHS);
        fs::create_dir(&graphs).unwrap();
        let source = graphs.join("model.onnx");
        let first = port(FLOAT, &[None, Some(3), None, None]);
        let derived = |ports: &[GraphTensor]| Preprocessing::Derived.input(&source, ports);
        assert_eq!(derived(std::slice::from_ref(&first)).unwrap(), None);

        fs::write(folder.path().join(PREPROCESSOR), VIT).unwrap();
        let input = derived(std::slice::from_ref(&first)).unwrap().unwrap();
        assert_eq!(input.fixed_shape(), Some(vec![3, 4, 4]));
        let last = port(FLOAT, &[None, Some(4), Some(4), Some(3)]);
        let input = derived(&[last]).unwrap().unwrap();
        assert_eq!(input.fixed_shape(), Some(vec![4, 4, 3]));

        let sound = port(FLOAT, &[None, None]);
        assert_eq!(derived(&[sound]).unwrap(), None);
        let whole = port(UINT8, &[None, Some(3), None, None]);
        assert_eq!(derived(std::slice::from_ref(&whole)).unwrap(), None);
        assert_eq!(derived(&[first.clone(), whole.clone()]).unwrap(), None);
        let none = Preprocessing::None.input(&source, std::slice::from_ref(&first));
        assert_eq!(none.unwrap(), None);

        let file = Preprocessing::File(folder.path().join(PREPROCESSOR));
        let error = file.input(&source, &[whole]).unwrap_err().to_string();
        assert!(
            error.contains("one input, FP32 of four dimensions"),
            "{error}"
        );
        let other = port(FLOAT, &[None, Some(3), Some(8), Some(8)]);
        let error = file.input(&source, &[other]).unwrap_err().to_string();
        assert!(
            error.contains("size") && error.contains("`pixel_values` is [3, 8, 8] after the rows"),
            "{error}"
        );
        fs::write(folder.path().join(PREPROCESSOR), "{}").unwrap();
        let error = file.input(&source, &[first]).unwrap_err().to_string();
        assert!(error.contains("`--image none`"), "{error}");
    }
}
