//! Scaling, encoding and features.

use super::*;

#[test]
fn features_are_scaled_and_normalized() {
    let x = value(&[1, 2], &[3.0f32, -4.0]);
    let attributes = vec![floats("offset", &[1.0, 0.0]), floats("scale", &[0.5, 2.0])];
    let y = one("ai.onnx.ml.Scaler", attributes, &[&x]);
    assert_eq!(y, value(&[1, 2], &[1.0f32, -8.0]));
    for (norm, y) in [
        ("L1", [3.0 / 7.0, -4.0 / 7.0]),
        ("L2", [0.6, -0.8]),
        ("MAX", [1.0, -4.0 / 3.0]),
    ] {
        let found = one("ai.onnx.ml.Normalizer", vec![text("norm", norm)], &[&x]);
        assert_eq!(found, value(&[1, 2], &y.map(|one: f32| one)), "{norm}");
    }
    let odd = vec![floats("offset", &[1.0; 3]), floats("scale", &[1.0; 3])];
    assert!(fails("ai.onnx.ml.Scaler", odd, &[&x]).contains("3 scales for 2"));
}

#[test]
fn missing_values_are_replaced() {
    let x = value(&[2, 2], &[f32::NAN, 1.0, 2.0, f32::NAN]);
    let attributes = vec![
        floats("imputed_value_floats", &[7.0, 8.0]),
        float("replaced_value_float", f32::NAN),
    ];
    let y = one("ai.onnx.ml.Imputer", attributes, &[&x]);
    assert_eq!(y, value(&[2, 2], &[7.0f32, 1.0, 2.0, 8.0]));
    let attributes = vec![
        ints("imputed_value_int64s", &[9]),
        int("replaced_value_int64", -1),
    ];
    let y = one(
        "ai.onnx.ml.Imputer",
        attributes,
        &[&value(&[3], &[-1i64, 0, 1])],
    );
    assert_eq!(y, value(&[3], &[9i64, 0, 1]));
    assert!(fails("ai.onnx.ml.Imputer", vec![], &[&x]).contains("neither"));
}

#[test]
fn thresholds_make_ones() {
    let x = value(&[3], &[0.0f32, 0.5, 1.0]);
    let y = one("ai.onnx.ml.Binarizer", vec![float("threshold", 0.5)], &[&x]);
    assert_eq!(y, value(&[3], &[0.0f32, 0.0, 1.0]));
}

#[test]
fn labels_are_looked_up() {
    let attributes = vec![
        texts("keys_strings", &["a", "b"]),
        ints("values_int64s", &[10, 20]),
        int("default_int64", -7),
    ];
    let y = one(
        "ai.onnx.ml.LabelEncoder",
        attributes,
        &[&strings(&[3], &["b", "c", "a"])],
    );
    assert_eq!(y, value(&[3], &[20i64, -7, 10]));
    let attributes = vec![
        floats("keys_floats", &[0.0, f32::NAN]),
        texts("values_strings", &["zero", "nan"]),
    ];
    let x = value(&[3], &[f32::NAN, -0.0, 1.0]);
    let y = one("ai.onnx.ml.LabelEncoder", attributes, &[&x]);
    assert_eq!(y, strings(&[3], &["nan", "zero", "_Unused"]));
    let tensors = vec![
        tensor("keys_tensor", doubles(&[1.0, 2.0])),
        tensor("values_tensor", doubles(&[0.5, 0.25])),
        tensor("default_tensor", doubles(&[-1.0])),
    ];
    let y = one(
        "ai.onnx.ml.LabelEncoder",
        tensors,
        &[&value(&[2], &[2.0f64, 3.0])],
    );
    assert_eq!(y, value(&[2], &[0.25f64, -1.0]));
    let first = vec![texts("classes_strings", &["a", "b"])];
    let y = one(
        "ai.onnx.ml.LabelEncoder",
        first.clone(),
        &[&strings(&[2], &["b", "x"])],
    );
    assert_eq!(y, value(&[2], &[1i64, -1]));
    let y = one(
        "ai.onnx.ml.LabelEncoder",
        first,
        &[&value(&[2], &[0i64, 5])],
    );
    assert_eq!(y, strings(&[2], &["a", "_Unused"]));
    let odd = vec![ints("keys_int64s", &[1]), ints("values_int64s", &[1, 2])];
    assert!(fails("ai.onnx.ml.LabelEncoder", odd, &[&x]).contains("1 keys, 2 values"));
}

#[test]
fn categories_map_both_ways() {
    let attributes = || {
        vec![
            ints("cats_int64s", &[3, 4]),
            texts("cats_strings", &["c", "d"]),
        ]
    };
    let y = one(
        "ai.onnx.ml.CategoryMapper",
        attributes(),
        &[&strings(&[1], &["d"])],
    );
    assert_eq!(y, value(&[1], &[4i64]));
    let y = one(
        "ai.onnx.ml.CategoryMapper",
        attributes(),
        &[&value(&[1], &[3i64])],
    );
    assert_eq!(y, strings(&[1], &["c"]));
}

#[test]
fn categories_become_ones() {
    let attributes = |zeros| vec![texts("cats_strings", &["a", "b"]), int("zeros", zeros)];
    let x = strings(&[2, 1], &["b", "x"]);
    let y = one("ai.onnx.ml.OneHotEncoder", attributes(1), &[&x]);
    assert_eq!(y, value(&[2, 1, 2], &[0.0f32, 1.0, 0.0, 0.0]));
    assert!(fails("ai.onnx.ml.OneHotEncoder", attributes(0), &[&x]).contains("unknown"));
    let attributes = vec![ints("cats_int64s", &[2, 5])];
    let y = one(
        "ai.onnx.ml.OneHotEncoder",
        attributes,
        &[&value(&[1], &[5.9f32])],
    );
    assert_eq!(y, value(&[1, 2], &[0.0f32, 1.0]));
}

#[test]
fn features_are_joined_and_extracted() {
    let (a, b) = (
        value(&[2, 1], &[1i64, 2]),
        value(&[2, 2], &[3.0f64, 4.0, 5.0, 6.0]),
    );
    let attributes = vec![ints("inputdimensions", &[2, 1])];
    let y = one("ai.onnx.ml.FeatureVectorizer", attributes, &[&a, &b]);
    assert_eq!(y, value(&[2, 3], &[1.0f32, 0.0, 3.0, 2.0, 0.0, 5.0]));
    let picked = "ai.onnx.ml.ArrayFeatureExtractor";
    let y = one(picked, vec![], &[&b, &value(&[2], &[1i64, 0])]);
    assert_eq!(y, value(&[2, 2], &[4.0f64, 3.0, 6.0, 5.0]));
    let y = one(
        picked,
        vec![],
        &[&strings(&[2], &["a", "b"]), &value(&[1], &[1i64])],
    );
    assert_eq!(y, strings(&[1, 1], &["b"]));
    for outside in [2i64, -1] {
        assert!(fails(picked, vec![], &[&b, &value(&[1], &[outside])]).contains("of 2"));
    }
}
