//! Triton's classification extension: the best classes of each row in place of its values.

use smallvec::smallvec;

use crate::tensor::{Tensor, TensorData};

/// The `count` largest values of each row as texts `VALUE:INDEX:NAME`, largest first; without the
/// name if the row has another number of values than there are `names`. NaN comes last. `None` unless
/// the tensor is of f32.
pub(super) fn best(tensor: &Tensor, count: usize, names: &[String]) -> Option<Tensor> {
    let rows = tensor.shape.first().copied().unwrap_or(1).max(1);
    let decoded;
    let values: &[f32] = match &tensor.data {
        TensorData::F32(values) => values,
        TensorData::Wire(wire) => {
            let bytes = wire.bytes.chunks_exact(4);
            decoded = bytes
                .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                .collect::<Vec<f32>>();
            &decoded
        }
        _ => return None,
    };
    let width = values.len() / rows;
    let count = count.min(width);
    let mut texts = Vec::with_capacity(rows * count);
    for row in values.chunks_exact(width.max(1)) {
        let key = |&index: &usize| {
            let value = row[index];
            if value.is_nan() {
                f32::NEG_INFINITY
            } else {
                value
            }
        };
        let mut order: Vec<usize> = (0..width).collect();
        order.sort_by(|a, b| key(b).total_cmp(&key(a)));
        for &index in order.iter().take(count) {
            let mut text = format!("{:.6}:{index}", row[index]);
            if let Some(name) = names.get(index).filter(|_| names.len() == width) {
                text.push(':');
                text.push_str(name);
            }
            texts.push(text.into_bytes());
        }
    }
    Some(Tensor {
        shape: smallvec![rows, count],
        data: TensorData::Bytes(texts),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn texts(values: &[f32], rows: usize, count: usize, names: &[&str]) -> Vec<String> {
        let tensor = Tensor {
            shape: smallvec![rows, values.len() / rows],
            data: TensorData::F32(values.to_vec()),
        };
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let best = best(&tensor, count, &names).unwrap();
        assert_eq!(best.shape.as_slice(), [rows, count]);
        let TensorData::Bytes(texts) = best.data else {
            panic!("no texts");
        };
        let texts = texts
            .into_iter()
            .map(|text| String::from_utf8(text).unwrap());
        texts.collect()
    }

    #[test]
    fn the_best_classes_come_first_with_their_names() {
        let found = texts(
            &[0.25, 0.5, 0.25, 1.0, 0.0, 0.0],
            2,
            2,
            &["no", "yes", "perhaps"],
        );
        let wanted = [
            "0.500000:1:yes",
            "0.250000:0:no",
            "1.000000:0:no",
            "0.000000:1:yes",
        ];
        assert_eq!(found, wanted);
        let unnamed = texts(&[f32::NAN, -1.5], 1, 2, &[]);
        assert_eq!(unnamed, ["-1.500000:1", "NaN:0"]);
    }
}
