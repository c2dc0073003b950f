//! Trees, linear models and support-vector machines.

use super::*;

/// A stump: feature 0 at most 0.5 takes the first leaf. `class` or `target` is the prefix.
fn stump(prefix: &str, ids: &[i64], weights: &[f32]) -> Vec<AttributeProto> {
    let of = |suffix: &str| format!("{prefix}_{suffix}");
    vec![
        ints("nodes_treeids", &[0, 0, 0]),
        ints("nodes_nodeids", &[0, 1, 2]),
        ints("nodes_featureids", &[0, 0, 0]),
        ints("nodes_truenodeids", &[1, 0, 0]),
        ints("nodes_falsenodeids", &[2, 0, 0]),
        texts("nodes_modes", &["BRANCH_LEQ", "LEAF", "LEAF"]),
        floats("nodes_values", &[0.5, 0.0, 0.0]),
        ints(&of("treeids"), &[0, 0]),
        ints(&of("nodeids"), &[1, 2]),
        ints(&of("ids"), ids),
        floats(&of("weights"), weights),
    ]
}

fn with(mut attributes: Vec<AttributeProto>, more: Vec<AttributeProto>) -> Vec<AttributeProto> {
    attributes.retain(|one| more.iter().all(|new| new.name != one.name));
    attributes.extend(more);
    attributes
}

fn rows() -> Value {
    value(&[2, 1], &[0.5f32, 0.75])
}

const REGRESSOR: &str = "ai.onnx.ml.TreeEnsembleRegressor";
const CLASSIFIER: &str = "ai.onnx.ml.TreeEnsembleClassifier";

#[test]
fn regressors_sum_leaves_and_base_values() {
    let more = vec![int("n_targets", 1), floats("base_values", &[10.0])];
    let attributes = with(stump("target", &[0, 0], &[1.0, 2.0]), more);
    let y = one(REGRESSOR, attributes, &[&rows()]);
    assert_eq!(y, value(&[2, 1], &[11.0f32, 12.0]));
}

#[test]
fn doubles_are_compared_as_doubles() {
    // The nearest f32 of the threshold is above 0.1.
    let more = vec![
        int("n_targets", 1),
        floats("nodes_values", &[]),
        floats("target_weights", &[]),
        tensor("nodes_values_as_tensor", doubles(&[0.1, 0.0, 0.0])),
        tensor("target_weights_as_tensor", doubles(&[1.0, 2.0])),
    ];
    let attributes = with(stump("target", &[0, 0], &[]), more);
    let x = value(&[2, 1], &[0.1f64, 0.100_000_001]);
    assert_eq!(
        one(REGRESSOR, attributes, &[&x]),
        value(&[2, 1], &[1.0f32, 2.0])
    );
}

#[test]
fn a_target_without_weights_is_zero() {
    let more = vec![int("n_targets", 2), floats("base_values", &[10.0, 20.0])];
    let attributes = with(stump("target", &[0, 1], &[1.0, 2.0]), more);
    let y = one(REGRESSOR, attributes, &[&rows()]);
    assert_eq!(y, value(&[2, 2], &[11.0f32, 0.0, 0.0, 22.0]));
}

#[test]
fn one_positive_class_is_a_probability_and_a_mixed_one_a_sign() {
    let labels = || texts("classlabels_strings", &["no", "yes"]);
    let attributes = with(stump("class", &[0, 0], &[0.25, 0.75]), vec![labels()]);
    let y = run(&node(CLASSIFIER, attributes), &[&rows()]).unwrap();
    assert_eq!(y[0], strings(&[2], &["no", "yes"]));
    assert_eq!(y[1], value(&[2, 2], &[0.75f32, 0.25, 0.25, 0.75]));
    let attributes = with(stump("class", &[0, 0], &[-1.0, 2.0]), vec![labels()]);
    let y = run(&node(CLASSIFIER, attributes), &[&rows()]).unwrap();
    assert_eq!(y[0], strings(&[2], &["no", "yes"]));
    assert_eq!(y[1], value(&[2, 2], &[1.0f32, -1.0, -2.0, 2.0]));
}

#[test]
fn the_largest_of_many_classes_wins() {
    let more = vec![ints("classlabels_int64s", &[5, 6, 7])];
    let attributes = with(stump("class", &[2, 1], &[1.0, 3.0]), more);
    let y = run(&node(CLASSIFIER, attributes), &[&rows()]).unwrap();
    assert_eq!(y[0], value(&[2], &[7i64, 6]));
    assert_eq!(y[1], value(&[2, 3], &[0.0f32, 0.0, 1.0, 0.0, 3.0, 0.0]));
}

#[test]
fn trees_of_odd_files_are_errors() {
    let good = || {
        with(
            stump("target", &[0, 0], &[1.0, 2.0]),
            vec![int("n_targets", 1)],
        )
    };
    for (odd, named) in [
        (ints("nodes_truenodeids", &[0, 0, 0]), "below itself"),
        (ints("nodes_truenodeids", &[9, 0, 0]), "missing"),
        (ints("nodes_nodeids", &[0, 1, 1]), "twice"),
        (ints("nodes_nodeids", &[0, 1]), "equal"),
        (ints("nodes_featureids", &[-1, 0, 0]), "feature -1"),
        (ints("target_ids", &[0, 1]), "target_ids"),
        (ints("target_nodeids", &[1, 9]), "leaf 9"),
        (floats("target_weights", &[1.0]), "equal"),
        (floats("nodes_values", &[1.0]), "nodes_values"),
        (
            texts("nodes_modes", &["BRANCH_ISH", "LEAF", "LEAF"]),
            "BRANCH_ISH",
        ),
        (text("post_transform", "CUBE"), "CUBE"),
        (text("aggregate_function", "MODE"), "MODE"),
        (floats("base_values", &[1.0, 2.0]), "base_values"),
        (int("n_targets", 0), "targets"),
        (int("n_targets", i64::MAX), "elements"),
    ] {
        let error = fails(REGRESSOR, with(good(), vec![odd]), &[&rows()]);
        assert!(error.contains(named), "{named}: {error}");
    }
    let wide = with(good(), vec![ints("nodes_featureids", &[1, 0, 0])]);
    assert!(fails(REGRESSOR, wide, &[&rows()]).contains("1 features"));
    let empty = value::<f32>(&[0, 1], &[]);
    let y = one(REGRESSOR, good(), &[&empty]);
    assert_eq!(y.shape(), [0, 1]);
}

#[test]
fn ensembles_of_version_5_have_sets() {
    let modes = TensorProto {
        data_type: 2,
        dims: vec![1],
        raw_data: Bytes::from_static(&[6]),
        ..TensorProto::default()
    };
    let attributes = vec![
        int("n_targets", 1),
        ints("tree_roots", &[0]),
        ints("nodes_featureids", &[0]),
        ints("nodes_truenodeids", &[0]),
        ints("nodes_trueleafs", &[1]),
        ints("nodes_falsenodeids", &[1]),
        ints("nodes_falseleafs", &[1]),
        tensor("nodes_modes", modes),
        tensor("nodes_splits", doubles(&[0.0])),
        tensor("membership_values", doubles(&[1.0, 3.0, f64::NAN])),
        tensor("leaf_weights", doubles(&[0.5, 0.25])),
        ints("leaf_targetids", &[0, 0]),
    ];
    let x = value(&[3, 1], &[1.0f64, 2.0, 3.0]);
    let y = one("ai.onnx.ml.TreeEnsemble", attributes.clone(), &[&x]);
    assert_eq!(y, value(&[3, 1], &[0.5f64, 0.25, 0.5]));
    let outside = with(attributes, vec![ints("nodes_truenodeids", &[2])]);
    assert!(fails("ai.onnx.ml.TreeEnsemble", outside, &[&x]).contains("2 of 2"));
}

#[test]
fn linear_models_multiply_and_add() {
    let x = value(&[2, 2], &[1i64, 2, 3, 4]);
    let attributes = vec![
        floats("coefficients", &[1.0, 0.0, 0.0, 1.0]),
        floats("intercepts", &[0.5, 0.0]),
        int("targets", 2),
    ];
    let y = one("ai.onnx.ml.LinearRegressor", attributes, &[&x]);
    assert_eq!(y, value(&[2, 2], &[1.5f32, 2.0, 3.5, 4.0]));
    let attributes = vec![
        floats("coefficients", &[-1.0, 1.0]),
        floats("intercepts", &[0.0]),
        ints("classlabels_ints", &[4, 8]),
    ];
    let x = value(&[2, 2], &[1.0f32, 1.25, 2.0, 1.0]);
    let y = run(&node("ai.onnx.ml.LinearClassifier", attributes), &[&x]).unwrap();
    assert_eq!(y[0], value(&[2], &[8i64, 4]));
    assert_eq!(y[1], value(&[2, 2], &[0.75f32, 0.25, 2.0, -1.0]));
    let odd = vec![floats("coefficients", &[1.0, 2.0, 3.0]), int("targets", 2)];
    assert!(fails("ai.onnx.ml.LinearRegressor", odd, &[&x]).contains("3 coefficients"));
}

#[test]
fn machines_compare_with_vectors() {
    let x = value(&[1, 2], &[1.0f32, 2.0]);
    let attributes = |kernel| {
        vec![
            text("kernel_type", kernel),
            floats("kernel_params", &[1.0, 1.0, 2.0]),
            floats("support_vectors", &[1.0, 0.0, 0.0, 1.0]),
            int("n_supports", 2),
            floats("coefficients", &[1.0, -1.0]),
            floats("rho", &[0.25]),
        ]
    };
    for (kernel, y) in [
        ("LINEAR", 1.0 - 2.0 + 0.25),
        ("POLY", 4.0 - 9.0 + 0.25),
        ("RBF", (-4f32).exp() - (-2f32).exp() + 0.25),
    ] {
        let found = one("ai.onnx.ml.SVMRegressor", attributes(kernel), &[&x]);
        let found = found.tensor::<f32>().unwrap().data()[0];
        assert!((found - y).abs() < 1e-6, "{kernel}: {found}");
    }
    assert!(fails("ai.onnx.ml.SVMRegressor", attributes("CUBIC"), &[&x]).contains("CUBIC"));
    let attributes = vec![
        floats("kernel_params", &[0.0, 0.0, 0.0]),
        floats("support_vectors", &[1.0, 0.0, 0.0, 1.0]),
        ints("vectors_per_class", &[1, 1]),
        floats("coefficients", &[1.0, -1.0]),
        floats("rho", &[0.25]),
        texts("classlabels_strings", &["a", "b"]),
    ];
    let y = run(&node("ai.onnx.ml.SVMClassifier", attributes.clone()), &[&x]).unwrap();
    assert_eq!(y[0], strings(&[1], &["b"]));
    assert_eq!(y[1], value(&[1, 2], &[0.75f32, -0.75]));
    let odd = with(attributes, vec![ints("vectors_per_class", &[1, -1])]);
    assert!(fails("ai.onnx.ml.SVMClassifier", odd, &[&x]).contains("-1"));
}
