//! Typed elements: lists of the protobuf types that are nearest to the datatypes.

use crate::datatype::Datatype;
use crate::tensor::TensorData;

use super::messages::inference::InferTensorContents;

/// The elements of a tensor of this datatype. Lists of the same type are moved.
///
/// # Errors
/// The list of the datatype has another length, an element is out of its range, or another list has
/// elements; the text has no field name.
pub(super) fn take(
    datatype: Datatype,
    contents: InferTensorContents,
    count: usize,
) -> Result<TensorData, String> {
    let lists = [
        ("bool_contents", contents.bool_contents.len()),
        ("int_contents", contents.int_contents.len()),
        ("int64_contents", contents.int64_contents.len()),
        ("uint_contents", contents.uint_contents.len()),
        ("uint64_contents", contents.uint64_contents.len()),
        ("fp32_contents", contents.fp32_contents.len()),
        ("fp64_contents", contents.fp64_contents.len()),
        ("bytes_contents", contents.bytes_contents.len()),
    ];
    let own = list_of(datatype)?;
    for (name, length) in lists {
        if name == own && length != count {
            return Err(format!("expected {count} elements in {own}, got {length}"));
        }
        if name != own && length != 0 {
            let datatype = datatype.name();
            return Err(format!(
                "has {name}, the elements of {datatype} are in {own}"
            ));
        }
    }
    Ok(match datatype {
        Datatype::Bool => TensorData::Bool(contents.bool_contents),
        Datatype::U8 => TensorData::U8(narrow(contents.uint_contents, datatype)?),
        Datatype::U16 => TensorData::U16(narrow(contents.uint_contents, datatype)?),
        Datatype::U32 => TensorData::U32(contents.uint_contents),
        Datatype::U64 => TensorData::U64(contents.uint64_contents),
        Datatype::I8 => TensorData::I8(narrow(contents.int_contents, datatype)?),
        Datatype::I16 => TensorData::I16(narrow(contents.int_contents, datatype)?),
        Datatype::I32 => TensorData::I32(contents.int_contents),
        Datatype::I64 => TensorData::I64(contents.int64_contents),
        Datatype::F32 => TensorData::F32(contents.fp32_contents),
        Datatype::F64 => TensorData::F64(contents.fp64_contents),
        Datatype::Bytes => {
            let elements = contents.bytes_contents.into_iter();
            TensorData::Bytes(elements.map(Vec::from).collect())
        }
        Datatype::F16 | Datatype::Bf16 => return Err(no_list(datatype)),
    })
}

/// The list that holds the elements of a datatype.
fn list_of(datatype: Datatype) -> Result<&'static str, String> {
    Ok(match datatype {
        Datatype::Bool => "bool_contents",
        Datatype::I8 | Datatype::I16 | Datatype::I32 => "int_contents",
        Datatype::I64 => "int64_contents",
        Datatype::U8 | Datatype::U16 | Datatype::U32 => "uint_contents",
        Datatype::U64 => "uint64_contents",
        Datatype::F32 => "fp32_contents",
        Datatype::F64 => "fp64_contents",
        Datatype::Bytes => "bytes_contents",
        Datatype::F16 | Datatype::Bf16 => return Err(no_list(datatype)),
    })
}

fn no_list(datatype: Datatype) -> String {
    let datatype = datatype.name();
    format!("{datatype} has no typed elements; send the tensor in raw_input_contents")
}

fn narrow<Wide, Narrow>(values: Vec<Wide>, datatype: Datatype) -> Result<Vec<Narrow>, String>
where
    Wide: Copy + std::fmt::Display,
    Narrow: TryFrom<Wide>,
{
    let narrowed = values.into_iter().enumerate().map(|(index, value)| {
        Narrow::try_from(value).map_err(|_| {
            let datatype = datatype.name();
            format!("element {index}: {value} is out of the range of {datatype}")
        })
    });
    narrowed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_the_same_type_is_moved() {
        let values = vec![1.0_f32, 2.0];
        let address = values.as_ptr();
        let contents = InferTensorContents {
            fp32_contents: values,
            ..InferTensorContents::default()
        };
        let Ok(TensorData::F32(taken)) = take(Datatype::F32, contents, 2) else {
            panic!("not taken");
        };
        assert_eq!(taken.as_ptr(), address);
    }

    #[test]
    fn elements_are_in_the_list_of_their_datatype_and_in_its_range() {
        let ints = |values: &[i32]| InferTensorContents {
            int_contents: values.to_vec(),
            ..InferTensorContents::default()
        };
        assert_eq!(
            take(Datatype::I8, ints(&[-128, 127]), 2),
            Ok(TensorData::I8(vec![-128, 127]))
        );
        for (datatype, contents, count, message) in [
            (
                Datatype::I8,
                ints(&[0, 128]),
                2,
                "element 1: 128 is out of the range of INT8",
            ),
            (
                Datatype::I32,
                ints(&[1]),
                2,
                "expected 2 elements in int_contents, got 1",
            ),
            (
                Datatype::F32,
                ints(&[1]),
                0,
                "has int_contents, the elements of FP32 are in fp32_contents",
            ),
            (
                Datatype::F16,
                ints(&[1]),
                1,
                "FP16 has no typed elements; send the tensor in raw_input_contents",
            ),
        ] {
            assert_eq!(take(datatype, contents, count), Err(message.to_owned()));
        }
    }
}
