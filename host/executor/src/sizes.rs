//! Requests of different sizes, where inputs have open dimensions.

use crate::job::InputTensor;
use crate::source::InputSpec;

/// Most values of a measured request, in times of those of a typical one: memory grows with them.
const MOST_TIMES: u64 = 8;

/// Powers of two by which open dimensions are multiplied.
const POWERS: std::ops::RangeInclusive<i32> = -3..=3;

/// The length of a request with open dimensions: the values of its tensors that bring their shape.
pub fn open_values(tensors: &[InputTensor]) -> u32 {
    let values = tensors.iter().map(|tensor| match tensor {
        InputTensor::Raw(tensor) => product(&tensor.shape),
        _ => 0,
    });
    u32::try_from(values.sum::<u64>()).unwrap_or(u32::MAX)
}

/// The inputs of requests of different sizes, ascending: each open dimension is multiplied by a power of
/// two, within its largest size. Empty without open dimensions.
pub(crate) fn sizes(inputs: &[InputSpec]) -> Vec<Vec<InputSpec>> {
    if inputs.iter().all(|input| input.open.is_empty()) {
        return Vec::new();
    }
    let most = values_of(inputs).saturating_mul(MOST_TIMES);
    let scaled = POWERS.map(|power| inputs.iter().map(|input| at_size(input, power)).collect());
    let mut sizes: Vec<Vec<InputSpec>> = scaled.collect();
    sizes.retain(|inputs| values_of(inputs) <= most);
    sizes.dedup();
    sizes
}

fn at_size(input: &InputSpec, power: i32) -> InputSpec {
    let mut input = input.clone();
    for open in &input.open {
        let typical = input.row_shape[open.axis];
        let size = match power {
            0.. => typical.saturating_mul(1 << power),
            _ => typical >> -power,
        };
        input.row_shape[open.axis] = size.clamp(1, open.largest.max(1));
    }
    input
}

fn values_of(inputs: &[InputSpec]) -> u64 {
    let bring_shape = |input: &&InputSpec| !input.open.is_empty();
    let values = inputs.iter().filter(bring_shape);
    values.map(|input| product(&input.row_shape)).sum()
}

fn product(shape: &[usize]) -> u64 {
    let sizes = shape.iter().map(|&size| size as u64);
    sizes.fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use switchyard_models::card::Datatype;

    use super::*;
    use crate::job::InputType;
    use crate::sample::sample_input;
    use crate::source::OpenDimension;

    fn input(row_shape: &[usize], open: &[(usize, usize)]) -> InputSpec {
        let open = open
            .iter()
            .map(|&(axis, largest)| OpenDimension { axis, largest });
        InputSpec {
            name: "x".to_owned(),
            datatype: Datatype::Fp32,
            input_type: InputType::Raw(Datatype::Fp32),
            row_shape: row_shape.to_vec(),
            open: open.collect(),
        }
    }

    fn shapes(inputs: &[InputSpec]) -> Vec<Vec<Vec<usize>>> {
        let shapes =
            |inputs: &Vec<InputSpec>| inputs.iter().map(|it| it.row_shape.clone()).collect();
        sizes(inputs).iter().map(shapes).collect()
    }

    #[test]
    fn sizes_are_powers_of_two_of_the_typical_ones_within_the_largest() {
        assert!(shapes(&[input(&[3, 8], &[])]).is_empty());
        // Both open dimensions double: four times the values, and 16 times would be too many.
        let image = shapes(&[input(&[3, 64, 64], &[(1, 512), (2, 512)])]);
        let sides = |shapes: &Vec<Vec<usize>>| (shapes[0][1], shapes[0][2]);
        let sides: Vec<_> = image.iter().map(sides).collect();
        assert_eq!(sides, [(8, 8), (16, 16), (32, 32), (64, 64), (128, 128)]);
        let sequence = input(&[4], &[(0, 16)]);
        assert_eq!(
            shapes(&[sequence.clone(), sequence]),
            [1, 2, 4, 8, 16].map(|size| vec![vec![size], vec![size]])
        );
    }

    #[test]
    fn the_length_counts_the_values_that_bring_their_shape() {
        let inputs = [input(&[3, 4], &[(1, 8)]), input(&[2], &[(0, 8)])];
        let row: Vec<InputTensor> = inputs.iter().map(|it| sample_input(it, "")).collect();
        assert_eq!(open_values(&row), 14);
        assert_eq!(open_values(&[InputTensor::Bytes(vec![1].into())]), 0);
    }
}
