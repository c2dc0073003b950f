#![allow(clippy::unwrap_used)]

use super::*;
use crate::fixtures::network;
use crate::observation::Kind;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

/// A file with its header changed by `change`.
fn changed(change: impl FnOnce(&mut serde_json::Value)) -> Vec<u8> {
    let bytes = network(Kind::Paper, &[]).to_bytes().unwrap();
    let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (text, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let mut header = serde_json::from_slice(text).unwrap();
    change(&mut header);
    let text = serde_json::to_vec(&header).unwrap();
    [&(text.len() as u64).to_le_bytes()[..], &text, data].concat()
}

fn refused(bytes: &[u8]) -> String {
    Network::parse(bytes).unwrap_err().to_string()
}

fn with_meta(change: impl FnOnce(&mut serde_json::Value)) -> String {
    refused(&changed(|header| {
        let text = header["__metadata__"][META_KEY].as_str().unwrap();
        let mut meta = serde_json::from_str(text).unwrap();
        change(&mut meta);
        header["__metadata__"][META_KEY] = meta.to_string().into();
    }))
}

#[test]
fn a_file_is_read_as_written() {
    for batches in [&[][..], &[1, 3, 5]] {
        let network = network(Kind::Extended, batches);
        let bytes = network.to_bytes().unwrap();
        assert_eq!(Network::parse(&bytes).unwrap(), network);
    }
}

#[test]
fn the_safetensors_library_reads_our_files() {
    let network = network(Kind::Paper, &[]);
    let bytes = network.to_bytes().unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(read.len(), 6);
    let weight = read.tensor("policy.0.weight").unwrap();
    assert_eq!((weight.dtype(), weight.shape()), (Dtype::F32, &[5, 18][..]));
    let second: [u8; 4] = weight.data()[4..8].try_into().unwrap();
    let by_input = &network.layers[0].weights;
    assert_eq!(
        f32::from_le_bytes(second),
        by_input[5],
        "input 1 of output 0"
    );
}

#[test]
fn files_of_the_safetensors_library_are_read() {
    let network = network(Kind::Full, &[]);
    let bytes = network.to_bytes().unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    let views: Vec<(String, TensorView<'_>)> = read.tensors();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let again = safetensors::serialize(views, header.metadata().clone()).unwrap();
    assert_eq!(Network::parse(&again).unwrap(), network);
}

#[test]
fn poisoned_numbers_are_refused_by_name() {
    let bytes = network(Kind::Paper, &[]).to_bytes().unwrap();
    for (poison, name) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        let mut bytes = bytes.clone();
        let at = bytes.len() - 4;
        bytes[at..].copy_from_slice(&poison.to_le_bytes());
        let reason = refused(&bytes);
        assert!(reason.contains("policy.2."), "{reason}");
        assert!(reason.ends_with(&format!("is {name}")), "{reason}");
    }
}

#[test]
fn mismatched_tensors_are_refused_by_name() {
    let tensor = "policy.1.weight";
    let cases = [
        (
            changed(|h| h[tensor]["shape"] = serde_json::json!([5, 3])),
            "tensor policy.1.weight has shape [5, 3], not [3, 5]",
        ),
        (
            changed(|h| h[tensor]["dtype"] = "F64".into()),
            "tensor policy.1.weight is F64, not F32",
        ),
        (
            changed(|h| h[tensor]["data_offsets"] = serde_json::json!([0, 8])),
            "tensor policy.1.weight: has 8 bytes, not 60",
        ),
        (
            changed(|h| h[tensor]["data_offsets"] = serde_json::json!([9_000, 9_060])),
            "tensor policy.1.weight: bytes 9000 to 9060",
        ),
        (
            changed(|h| {
                h.as_object_mut().unwrap().remove(tensor);
            }),
            "tensor policy.1.weight is missing",
        ),
        (
            changed(|h| h["value.0.weight"] = h[tensor].clone()),
            "tensor value.0.weight is unexpected",
        ),
    ];
    for (bytes, expected) in cases {
        let reason = refused(&bytes);
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn invalid_metadata_is_refused_by_field() {
    let cases: [(&str, serde_json::Value, &str); 8] = [
        ("/format", 2.into(), "format: is 2, must be 1"),
        ("/layout/capacity", 0.into(), "layout.capacity"),
        ("/layout/capacity", 4.into(), "layers: must begin with 22"),
        ("/layout/instances", 100_000.into(), "layout.instances"),
        ("/models", serde_json::json!([0]), "models: has 1 entries"),
        ("/models/1", 9.into(), "models: has model 9"),
        ("/batches", serde_json::json!([3, 1]), "batches"),
        ("/layers/1", 0.into(), "layers"),
    ];
    for (field, value, expected) in cases {
        let reason = with_meta(|meta| *meta.pointer_mut(field).unwrap() = value);
        assert!(reason.contains(expected), "{field}: {reason}");
    }
    let reason = refused(&changed(|h| h["__metadata__"] = serde_json::json!({})));
    assert!(reason.contains("not weights of a PPO router"), "{reason}");
}

#[test]
fn truncated_files_are_refused_without_a_panic() {
    let bytes = network(Kind::Paper, &[]).to_bytes().unwrap();
    for cut in 0..bytes.len() {
        assert!(Network::parse(&bytes[..cut]).is_err(), "cut at {cut}");
    }
    let mut endless = bytes;
    endless[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(refused(&endless).contains("not safetensors"));
}
