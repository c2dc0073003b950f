//! Operators and plans on small graphs that are built here.

#![allow(clippy::float_cmp, reason = "the numbers are exact")]

mod general;
mod graphs;
mod models;
mod preparation;

use std::sync::Arc;

use bytes::Bytes;
use candle_core::Result;

use super::definition::Definition;
use super::operator::Inputs;
use super::registry::operator;
use super::value::{Element, Value};
use crate::networks::onnx::proto::{AttributeProto, NodeProto, TensorProto};

/// A node without inputs and outputs; `ai.onnx.ml.` before the name is its domain.
fn node(name: &str, attributes: Vec<AttributeProto>) -> NodeProto {
    let (domain, op_type) = match name.strip_prefix("ai.onnx.ml.") {
        Some(name) => ("ai.onnx.ml", name),
        None => ("", name),
    };
    NodeProto {
        op_type: op_type.to_owned(),
        domain: domain.to_owned(),
        attribute: attributes,
        output: vec!["y".to_owned()],
        ..NodeProto::default()
    }
}

fn attribute(name: &str) -> AttributeProto {
    AttributeProto {
        name: name.to_owned(),
        ..AttributeProto::default()
    }
}

fn int(name: &str, i: i64) -> AttributeProto {
    let base = attribute(name);
    AttributeProto { i, ..base }
}

fn float(name: &str, f: f32) -> AttributeProto {
    let base = attribute(name);
    AttributeProto { f, ..base }
}

fn text(name: &str, s: &'static str) -> AttributeProto {
    AttributeProto {
        s: Bytes::from_static(s.as_bytes()),
        ..attribute(name)
    }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto {
        ints: ints.to_vec(),
        ..attribute(name)
    }
}

fn floats(name: &str, floats: &[f32]) -> AttributeProto {
    AttributeProto {
        floats: floats.to_vec(),
        ..attribute(name)
    }
}

fn texts(name: &str, texts: &[&'static str]) -> AttributeProto {
    let strings = texts.iter().map(|text| Bytes::from_static(text.as_bytes()));
    AttributeProto {
        strings: strings.collect(),
        ..attribute(name)
    }
}

fn tensor(name: &str, t: TensorProto) -> AttributeProto {
    AttributeProto {
        t: Some(t),
        ..attribute(name)
    }
}

fn doubles(numbers: &[f64]) -> TensorProto {
    TensorProto {
        data_type: 11,
        dims: vec![numbers.len() as i64],
        double_data: numbers.to_vec(),
        ..TensorProto::default()
    }
}

fn value<T: Element>(shape: &[usize], data: &[T]) -> Value {
    Value::new(shape.to_vec(), data.to_vec()).unwrap()
}

fn strings(shape: &[usize], data: &[&str]) -> Value {
    let data: Vec<Arc<str>> = data.iter().map(|&text| text.into()).collect();
    value(shape, &data)
}

/// Runs a node of version 17.
fn run(node: &NodeProto, inputs: &[&Value]) -> Result<Vec<Value>> {
    let inputs: Vec<Option<&Value>> = inputs.iter().copied().map(Some).collect();
    operator(Definition { node, opset: 17 })?.run(Inputs(&inputs))
}

/// The only output of a node.
fn one(name: &str, attributes: Vec<AttributeProto>, inputs: &[&Value]) -> Value {
    let mut outputs = run(&node(name, attributes), inputs).unwrap();
    assert_eq!(outputs.len(), 1);
    outputs.remove(0)
}

fn fails(name: &str, attributes: Vec<AttributeProto>, inputs: &[&Value]) -> String {
    run(&node(name, attributes), inputs)
        .unwrap_err()
        .to_string()
}
