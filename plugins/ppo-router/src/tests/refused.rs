//! Untrusted weights: faults are refused by tensor or field.

use serde_json::Value;

use super::*;

fn refusal(bytes: Vec<u8>) -> String {
    put_artifact("default/policy.safetensors", bytes);
    PpoRouter::configure(&catalog(), "{}").unwrap_err()
}

/// A file with a changed header or changed numbers.
fn changed(change: impl FnOnce(&mut Value, &mut Vec<u8>)) -> Vec<u8> {
    let bytes = three_to_one().to_bytes().unwrap();
    let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (text, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let (mut header, mut data) = (serde_json::from_slice(text).unwrap(), data.to_vec());
    change(&mut header, &mut data);
    let text = serde_json::to_vec(&header).unwrap();
    [&(text.len() as u64).to_le_bytes()[..], &text, &data].concat()
}

#[test]
fn poisoned_weights_are_refused_by_tensor() {
    let poisoned = changed(|header, data| {
        let bias = &header["policy.0.bias"]["data_offsets"][0];
        let at = bias.as_u64().unwrap() as usize + 4;
        data[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    assert_eq!(
        refusal(poisoned),
        "default/policy.safetensors: weights: tensor policy.0.bias: number 1 is NaN"
    );
    let short = changed(|_, data| data.truncate(4));
    let refused = refusal(short);
    assert!(refused.contains("tensor policy.0."), "{refused}");
}

#[test]
fn mismatched_weights_are_refused_by_tensor() {
    let other_shape = changed(|header, _| {
        header["policy.0.bias"]["shape"] = serde_json::json!([3]);
    });
    assert_eq!(
        refusal(other_shape),
        "default/policy.safetensors: weights: tensor policy.0.bias has shape [3], not [2]"
    );
    let missing = changed(|header, _| {
        header.as_object_mut().unwrap().remove("policy.0.weight");
    });
    assert_eq!(
        refusal(missing),
        "default/policy.safetensors: weights: tensor policy.0.weight is missing"
    );
}

#[test]
fn missing_and_damaged_files_are_refused() {
    assert_eq!(
        PpoRouter::configure(&catalog(), r#"{"weights": "none"}"#).unwrap_err(),
        "settings: weights: none: no such file in the policy's folder; `switchyard prepare \
         ppo-router` writes it"
    );
    for bytes in [&b""[..], b"hello", &[255; 64]] {
        let refused = refusal(bytes.to_vec());
        assert!(
            refused.starts_with("default/policy.safetensors: weights: "),
            "{refused}"
        );
    }
}

#[test]
fn weights_for_other_instances_are_refused() {
    let mut other = meta(Kind::Paper, &[]);
    other.variants[1] = "tiny".to_owned();
    install(&network(other, &[], &[0.0, 0.0]));
    assert_eq!(
        PpoRouter::configure(&catalog(), "{}").unwrap_err(),
        "weights: metadata: variants: no app has heavy, tiny"
    );
    let biases = vec![0.0; 2 + 2 * 3];
    install(&network(meta(Kind::Paper, &[1, 9]), &[], &biases));
    assert_eq!(
        PpoRouter::configure(&catalog(), "{}").unwrap_err(),
        "weights: metadata: batches: is 9, but heavy takes at most 5"
    );
    let mut many = meta(Kind::Paper, &[]);
    (many.layout.instances, many.models) = (3, vec![0, 1, 1]);
    many.layers = vec![many.layout.width(), 3];
    install(&network(many, &[], &[0.0; 3]));
    assert_eq!(
        PpoRouter::configure(&catalog(), "{}").unwrap_err(),
        "settings: instances: must have a worker for each of heavy, light, light, as the weights"
    );
}
