//! Ordinary operators.

use super::*;

#[test]
fn pairs_broadcast() {
    let column = value(&[2, 1], &[10i64, 20]);
    let row = value(&[2], &[1i64, 2]);
    for (name, y) in [
        ("Add", [11i64, 12, 21, 22]),
        ("Sub", [9, 8, 19, 18]),
        ("Mul", [10, 20, 20, 40]),
        ("Div", [10, 5, 20, 10]),
        ("Max", [10, 10, 20, 20]),
        ("Min", [1, 2, 1, 2]),
        ("Pow", [10, 100, 20, 400]),
    ] {
        assert_eq!(
            one(name, vec![], &[&column, &row]),
            value(&[2, 2], &y),
            "{name}"
        );
    }
    let less = one("Less", vec![], &[&row, &value(&[1], &[2i64])]);
    assert_eq!(less, value(&[2], &[true, false]));
    let both = one("And", vec![], &[&less, &value(&[], &[true])]);
    assert_eq!(both, less);
    let chosen = one("Where", vec![], &[&less, &column, &value(&[], &[0i64])]);
    assert_eq!(chosen, value(&[2, 2], &[10i64, 0, 20, 0]));
    let zero = value(&[], &[0i64]);
    assert!(fails("Div", vec![], &[&row, &zero]).contains("divided by 0"));
    assert!(fails("Add", vec![int("broadcast", 1)], &[&row, &row]).contains("version 7"));
    assert!(fails("Add", vec![], &[&row, &value(&[3], &[0i64; 3])]).contains("broadcast"));
    assert!(fails("Add", vec![], &[&row, &value(&[], &[0.5f32])]).contains("INT64"));
    let wrapped = one(
        "Div",
        vec![],
        &[&value(&[], &[i64::MIN]), &value(&[], &[-1i64])],
    );
    assert_eq!(wrapped, value(&[], &[i64::MIN]));
}

#[test]
fn casts_convert() {
    let x = value(&[3], &[1.9f32, -1.9, f32::NAN]);
    let cast = |to, x: &Value| one("Cast", vec![int("to", to)], &[x]);
    assert_eq!(cast(7, &x), value(&[3], &[1i64, -1, 0]));
    assert_eq!(cast(8, &x), strings(&[3], &["1.9", "-1.9", "NaN"]));
    assert_eq!(cast(1, &strings(&[1], &["2.5"])), value(&[1], &[2.5f32]));
    assert_eq!(
        cast(9, &value(&[2], &[0i64, 3])),
        value(&[2], &[false, true])
    );
    let large = i64::MAX - 1;
    assert_eq!(cast(7, &value(&[1], &[large])), value(&[1], &[large]));
    assert!(fails("Cast", vec![int("to", 10)], &[&x]).contains("10"));
    assert!(fails("Cast", vec![int("to", 7)], &[&strings(&[1], &["x"])]).contains("INT64"));
}

#[test]
fn axes_are_reduced() {
    let x = value(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
    let reduce = |name, axis| one(name, vec![ints("axes", &[axis]), int("keepdims", 0)], &[&x]);
    assert_eq!(reduce("ReduceSum", 0), value(&[2], &[4.0f32, 6.0]));
    assert_eq!(reduce("ReduceMean", 1), value(&[2], &[1.5f32, 3.5]));
    assert_eq!(reduce("ReduceMax", -1), value(&[2], &[2.0f32, 4.0]));
    assert_eq!(reduce("ReduceSumSquare", 1), value(&[2], &[5.0f32, 25.0]));
    assert_eq!(
        one("ReduceL2", vec![ints("axes", &[1])], &[&x]).shape(),
        [2, 1]
    );
    let all = one("ReduceSum", vec![], &[&x]);
    assert_eq!(all, value(&[1, 1], &[10.0f32]));
    let input = one(
        "ReduceSum",
        vec![int("keepdims", 0)],
        &[&x, &value(&[1], &[1i64])],
    );
    assert_eq!(input, value(&[2], &[3.0f32, 7.0]));
    assert_eq!(
        one("ArgMax", vec![int("axis", 1), int("keepdims", 0)], &[&x]),
        value(&[2], &[1i64, 1])
    );
    assert!(fails("ReduceMax", vec![], &[&value::<f32>(&[0], &[])]).contains("no elements"));
    let most = run(&node("TopK", vec![]), &[&x, &value(&[1], &[1i64])]).unwrap();
    assert_eq!(
        most,
        [value(&[2, 1], &[2.0f32, 4.0]), value(&[2, 1], &[1i64, 1])]
    );
    let odd = value(&[4], &[f32::NAN, 1.0, f32::NAN, 2.0]);
    assert!(run(&node("TopK", vec![]), &[&odd, &value(&[1], &[4i64])]).is_ok());
    let soft = one("Softmax", vec![], &[&value(&[1, 2], &[0.0f32, 0.0])]);
    assert_eq!(soft, value(&[1, 2], &[0.5f32, 0.5]));
}

#[test]
fn shapes_change() {
    let x = value(&[2, 3], &[1i64, 2, 3, 4, 5, 6]);
    let shape = |sizes: &[i64]| value(&[sizes.len()], sizes);
    let reshaped = |sizes: &[i64]| one("Reshape", vec![], &[&x, &shape(sizes)]);
    assert_eq!(reshaped(&[-1]).shape(), [6]);
    assert_eq!(reshaped(&[3, -1]).shape(), [3, 2]);
    assert_eq!(reshaped(&[0, 1, 3]).shape(), [2, 1, 3]);
    assert_eq!(one("Flatten", vec![int("axis", 0)], &[&x]).shape(), [1, 6]);
    let turned = one("Transpose", vec![], &[&x]);
    assert_eq!(turned, value(&[3, 2], &[1i64, 4, 2, 5, 3, 6]));
    let joined = one("Concat", vec![int("axis", -1)], &[&x, &x]);
    assert_eq!(joined.shape(), [2, 6]);
    let picked = one("Gather", vec![int("axis", 1)], &[&x, &value(&[], &[-1i64])]);
    assert_eq!(picked, value(&[2], &[3i64, 6]));
    let range = [shape(&[-1]), shape(&[i64::MIN]), shape(&[1]), shape(&[-2])];
    let back = one(
        "Slice",
        vec![],
        &[&x, &range[0], &range[1], &range[2], &range[3]],
    );
    assert_eq!(back, value(&[2, 2], &[3i64, 1, 6, 4]));
    assert_eq!(one("Tile", vec![], &[&x, &shape(&[2, 1])]).shape(), [4, 3]);
    assert_eq!(
        one("Expand", vec![], &[&x, &shape(&[2, 1, 1])]).shape(),
        [2, 2, 3]
    );
    assert_eq!(one("Shape", vec![], &[&x]), shape(&[2, 3]));
    assert_eq!(
        one("Unsqueeze", vec![], &[&x, &shape(&[0, -1])]).shape(),
        [1, 2, 3, 1]
    );
    let thin = value(&[1, 2, 1], &[1i64, 2]);
    assert_eq!(one("Squeeze", vec![], &[&thin]).shape(), [2]);
    assert_eq!(
        one("Squeeze", vec![ints("axes", &[-1])], &[&thin]).shape(),
        [1, 2]
    );
}

#[test]
fn shapes_that_do_not_fit_are_errors() {
    let x = value(&[2], &[1i64, 2]);
    let shape = |sizes: &[i64]| value(&[sizes.len()], sizes);
    for (name, sizes) in [
        ("Reshape", &[3][..]),
        ("Reshape", &[-1, -1]),
        ("Reshape", &[-2]),
        ("Reshape", &[-1, 0, 0]),
        ("Expand", &[i64::MAX, 1]),
        ("Expand", &[1 << 40, 1]),
        ("Tile", &[i64::MAX]),
        ("Tile", &[1 << 40]),
        ("Squeeze", &[0]),
        ("Unsqueeze", &[0, 0]),
        ("Gather", &[2]),
    ] {
        fails(name, vec![], &[&x, &shape(sizes)]);
    }
    for sizes in [
        &[1 << 40][..],
        &[1 << 32, 1 << 32],
        &[-1],
        &[0, i64::MAX, i64::MAX],
    ] {
        fails("ConstantOfShape", vec![], &[&shape(sizes)]);
    }
    fails("Transpose", vec![ints("perm", &[0, 0])], &[&x]);
    fails("Concat", vec![int("axis", 1)], &[&x, &x]);
    fails(
        "Slice",
        vec![],
        &[&x, &shape(&[0]), &shape(&[2]), &shape(&[0]), &shape(&[0])],
    );
}

#[test]
fn matrices_are_multiplied() {
    let a = value(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
    let b = value(&[2, 1], &[1.0f32, 10.0]);
    assert_eq!(
        one("MatMul", vec![], &[&a, &b]),
        value(&[2, 1], &[21.0f32, 43.0])
    );
    let vector = value(&[2], &[1.0f32, 10.0]);
    assert_eq!(
        one("MatMul", vec![], &[&a, &vector]),
        value(&[2], &[21.0f32, 43.0])
    );
    let attributes = vec![int("transA", 1), int("transB", 1), float("alpha", 2.0)];
    let (row, c) = (value(&[1, 2], &[1.0f32, 10.0]), value(&[], &[0.5f32]));
    let y = one("Gemm", attributes, &[&a, &row, &c]);
    assert_eq!(y, value(&[2, 1], &[62.5f32, 84.5]));
    assert!(fails("MatMul", vec![], &[&a, &value(&[3], &[0.0f32; 3])]).contains("MatMul"));
}
