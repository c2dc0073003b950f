//! Quality measured on a folder of images.

use std::fs;

use switchyard_models::Zoo;

use super::{add, measure};
use crate::onnx::{FLOAT, Graph, Node, OPEN, Value};

/// A PNG of one colour, of 4 x 4 pixels.
fn png(colour: [u8; 3]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 4, 4);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&colour.repeat(16)).unwrap();
    writer.finish().unwrap();
    bytes
}

/// The brightness of each channel decides the class; the classes are the names of the folders.
#[test]
fn a_folder_per_class_measures_through_the_images_card() {
    let folder = tempfile::tempdir().unwrap();
    let graph = Graph {
        nodes: vec![
            Node::new("GlobalAveragePool", &["pixels"], "mean"),
            Node::new("Flatten", &["mean"], "scores"),
        ],
        inputs: vec![Value::new("pixels", FLOAT, Some(&[OPEN, 3, 4, 4]))],
        outputs: vec![Value::new("scores", FLOAT, Some(&[OPEN, 3]))],
        ..Graph::default()
    };
    fs::write(folder.path().join("graph.onnx"), graph.bytes()).unwrap();
    let data = folder.path().join("test");
    // The names in sorted order are not those of the channels: red is "a", but "c" holds a blue one
    // and a red one.
    let images = [
        ("a/red.png", [250, 0, 0]),
        ("b/green.PNG", [0, 250, 0]),
        ("c/blue.png", [0, 0, 250]),
        ("c/really-red.png", [250, 0, 100]),
    ];
    for (name, colour) in images {
        let file = data.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, png(colour)).unwrap();
    }
    let shown = data.display().to_string();
    let tensors = add(folder.path(), &["--as", "colour", "--data", &shown]);
    assert_eq!(tensors.code, Some(2), "{}", tensors.stdout);
    assert!(
        tensors.stderr.contains("`pixels` takes tensors")
            && tensors.stderr.contains("--image FILE"),
        "{}",
        tensors.stderr
    );
    let preprocessor = r#"{"image_processor_type": "ViTImageProcessor", "do_resize": true,
        "size": {"height": 4, "width": 4}, "resample": 3, "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5]}"#;
    fs::write(folder.path().join("preprocessor_config.json"), preprocessor).unwrap();
    let added = add(folder.path(), &["--as", "colour", "--data", &shown]);
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let zoo = Zoo::open(&folder.path().join("zoo")).unwrap();
    let app = zoo.app("colour").unwrap();
    assert_eq!(app.card.classes, ["a", "b", "c"]);
    let exit = &app.variants[0].card.exits[0];
    assert_eq!(exit.confusion, [[1, 0, 0], [0, 1, 0], [1, 0, 1]]);
    assert_eq!(exit.accuracy, 0.75);

    // The same by their paths, relative to the file.
    let list = folder.path().join("list.csv");
    fs::write(
        &list,
        "photo,label\ntest/a/red.png,a\ntest/b/green.PNG,b\ntest/c/blue.png,c\n",
    )
    .unwrap();
    let ran = measure(folder.path(), "colour", &list, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout
            .starts_with("colour/v1: quality 1.0000 (accuracy of 3 rows"),
        "{}",
        ran.stdout
    );

    fs::write(data.join("a/notes.txt"), "").unwrap();
    let odd = measure(folder.path(), "colour", &data, &[]);
    assert!(
        odd.stderr
            .contains("notes.txt: is no image (jpg, jpeg, png, webp)"),
        "{}",
        odd.stderr
    );
    fs::remove_file(data.join("a/notes.txt")).unwrap();
    fs::write(data.join("b/broken.png"), "no image").unwrap();
    let broken = measure(folder.path(), "colour", &data, &[]);
    assert_eq!(broken.code, Some(2), "{}", broken.stdout);
    assert!(broken.stderr.contains("broken.png: "), "{}", broken.stderr);
}
