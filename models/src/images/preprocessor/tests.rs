use super::*;

fn read(text: &str) -> Result<ImageCard, String> {
    ImageCard::from_preprocessor(text).map_err(|error| error.to_string())
}

/// A file with `fields`, mean and deviation.
fn file(fields: &str) -> String {
    format!(r#"{{{fields}, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}}"#)
}

#[test]
fn vit_stretches() {
    let fields = r#""feature_extractor_type": "ViTFeatureExtractor", "size": 224, "resample": 2"#;
    let card = read(&file(fields)).expect("known");
    assert_eq!(
        (card.size, card.fit, card.resize),
        ([224, 224], Fit::Stretch, None)
    );
    assert_eq!((card.scale, card.mean), (255.0, vec![0.5, 0.4, 0.3]));
}

#[test]
fn clip_crops_and_convnext_has_a_margin() {
    let clip = r#""image_processor_type": "CLIPImageProcessorFast", "resample": 3, "do_pad": null,
        "size": {"shortest_edge": 224}, "do_center_crop": true, "crop_size": {"height": 224, "width": 224},
        "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_convert_rgb": true"#;
    let card = read(&file(clip)).expect("known");
    assert_eq!(
        (card.size, card.fit, card.resize),
        ([224, 224], Fit::Cover, Some(224))
    );
    assert_eq!((card.filter, card.scale), (Filter::Bicubic, 255.0));
    let convnext = r#""image_processor_type": "ConvNextImageProcessor", "resample": 3, "crop_pct": 0.875,
        "size": {"shortest_edge": 224}"#;
    let card = read(&file(convnext)).expect("known");
    assert_eq!(
        (card.size, card.fit, card.resize),
        ([224, 224], Fit::Cover, Some(256))
    );
    let large = convnext.replace("224", "384");
    let card = read(&file(&large)).expect("known");
    assert_eq!(
        (card.size, card.fit, card.resize),
        ([384, 384], Fit::Stretch, None)
    );
}

#[test]
fn deit_stretches_and_crops_and_efficientnet_divides_twice() {
    let deit = r#""image_processor_type": "DeiTImageProcessor", "resample": 3, "do_center_crop": true,
        "size": {"height": 256, "width": 256}, "crop_size": {"height": 224, "width": 224}"#;
    let card = read(&file(deit)).expect("known");
    assert_eq!(
        (card.size, card.fit, card.resize),
        ([224, 224], Fit::Stretch, Some(256))
    );
    let efficient = r#""image_processor_type": "EfficientNetImageProcessor", "resample": 0,
        "size": {"height": 346, "width": 346}, "do_center_crop": false, "include_top": true,
        "rescale_offset": false, "crop_size": {"height": 289, "width": 289}"#;
    let card = read(&file(efficient)).expect("known");
    assert_eq!((card.size, card.filter), ([346, 346], Filter::Nearest));
    assert_eq!(card.deviation, [0.2f32 * 0.2, 0.3 * 0.3, 0.4 * 0.4]);
}

#[test]
fn unknown_fields_classes_and_steps_are_refused() {
    let vit = r#""image_processor_type": "ViTImageProcessor", "size": 224, "resample": 2"#;
    let refusals = [
        (
            r#""size": 224, "resample": 2"#.to_owned(),
            "`image_processor_type`: is missing",
        ),
        (
            vit.replace("ViTImage", "DetrImage"),
            "class `Detr` is unknown",
        ),
        (
            format!(r#"{vit}, "do_tile": true"#),
            "`do_tile`: is not understood",
        ),
        (format!(r#"{vit}, "do_pad": true"#), "`do_pad`"),
        (
            format!(r#"{vit}, "rescale_offset": true"#),
            "`rescale_offset`",
        ),
        (format!(r#"{vit}, "do_resize": false"#), "`do_resize`"),
        (
            vit.replace("\"resample\": 2", "\"resample\": 5"),
            "5 is not 0 (nearest)",
        ),
        (
            vit.replace("224", r#"{"shortest_edge": 800, "longest_edge": 1333}"#),
            "`size`",
        ),
        (vit.replace("224", "-3"), "`size`"),
        (vit.replace("224", "100000"), "not in 1 to 4096"),
        (
            vit.replace("224", r#"{"shortest_edge": 224}"#),
            "`do_center_crop`",
        ),
    ];
    for (fields, text) in refusals {
        let error = read(&file(&fields)).expect_err(&fields);
        assert!(error.contains(text), "{error}");
    }
    assert!(
        read("[1]")
            .expect_err("no object")
            .contains("preprocessor_config.json")
    );
    assert!(
        read(r#"{"image_processor_type": "ViTImageProcessor", "size": 224, "resample": 2}"#)
            .expect_err("no mean")
            .contains("`image_mean`: is missing")
    );
}
