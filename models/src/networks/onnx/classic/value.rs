//! Values between operators.

use std::sync::Arc;

use candle_core::Result;

use super::shape;

/// A tensor, row-major.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tensor<T> {
    shape: Vec<usize>,
    data: Vec<T>,
}

/// A tensor of any type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    F32(Tensor<f32>),
    F64(Tensor<f64>),
    I64(Tensor<i64>),
    I32(Tensor<i32>),
    Bool(Tensor<bool>),
    Text(Tensor<Arc<str>>),
}

/// A type of elements.
pub(super) trait Element: Clone + PartialEq + Sized {
    /// Its name in `TensorProto.DataType`.
    const NAME: &'static str;

    /// The value of a tensor.
    fn value(tensor: Tensor<Self>) -> Value;

    /// The tensor of a value, if it has this type.
    fn tensor(value: &Value) -> Option<&Tensor<Self>>;
}

/// Runs an expression on the tensor of a value, with any type of elements.
macro_rules! each {
    ($value:expr, $tensor:ident => $body:expr) => {
        match $value {
            $crate::networks::onnx::classic::value::Value::F32($tensor) => $body,
            $crate::networks::onnx::classic::value::Value::F64($tensor) => $body,
            $crate::networks::onnx::classic::value::Value::I64($tensor) => $body,
            $crate::networks::onnx::classic::value::Value::I32($tensor) => $body,
            $crate::networks::onnx::classic::value::Value::Bool($tensor) => $body,
            $crate::networks::onnx::classic::value::Value::Text($tensor) => $body,
        }
    };
}

/// Runs an expression on the tensor of a value of numbers; others are errors.
macro_rules! each_number {
    ($value:expr, $tensor:ident => $body:expr) => {
        match $value {
            $crate::networks::onnx::classic::value::Value::F32($tensor) => $body,
            $crate::networks::onnx::classic::value::Value::F64($tensor) => $body,
            $crate::networks::onnx::classic::value::Value::I64($tensor) => $body,
            $crate::networks::onnx::classic::value::Value::I32($tensor) => $body,
            other => candle_core::bail!("{} where numbers were expected", other.name()),
        }
    };
}

pub(super) use {each, each_number};

macro_rules! elements {
    ($($variant:ident $type:ty, $name:literal;)+) => {
        $(impl Element for $type {
            const NAME: &'static str = $name;

            fn value(tensor: Tensor<Self>) -> Value {
                Value::$variant(tensor)
            }

            fn tensor(value: &Value) -> Option<&Tensor<Self>> {
                match value {
                    Value::$variant(tensor) => Some(tensor),
                    _ => None,
                }
            }
        })+

        impl Value {
            /// The name of its type.
            pub(super) fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }
        }
    };
}

elements! {
    F32 f32, "FLOAT";
    F64 f64, "DOUBLE";
    I64 i64, "INT64";
    I32 i32, "INT32";
    Bool bool, "BOOL";
    Text Arc<str>, "STRING";
}

// === impl Tensor ===

impl<T> Tensor<T> {
    /// # Errors
    /// The shape has another number of elements, or too many.
    pub(super) fn new(shape: Vec<usize>, data: Vec<T>) -> Result<Self> {
        if shape::count(&shape)? != data.len() {
            candle_core::bail!("{} elements for shape {shape:?}", data.len());
        }
        Ok(Self { shape, data })
    }

    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(super) fn data(&self) -> &[T] {
        &self.data
    }

    pub(super) fn into_parts(self) -> (Vec<usize>, Vec<T>) {
        (self.shape, self.data)
    }

    /// Rows and features: `[rows, features]`, or `[features]` for one row.
    pub(super) fn matrix(&self) -> Result<(usize, usize)> {
        match self.shape[..] {
            [features] => Ok((1, features)),
            [rows, features] => Ok((rows, features)),
            _ => candle_core::bail!("shape {:?} where [rows, features] was expected", self.shape),
        }
    }

    /// The same shape with other elements.
    pub(super) fn map<R>(&self, map: impl Fn(&T) -> R) -> Tensor<R> {
        Tensor {
            shape: self.shape.clone(),
            data: self.data.iter().map(map).collect(),
        }
    }

    /// The same elements in another shape.
    pub(super) fn reshaped(&self, shape: Vec<usize>) -> Result<Self>
    where
        T: Clone,
    {
        Self::new(shape, self.data.clone())
    }
}

// === impl Value ===

impl Value {
    /// A value of the type of `data`.
    pub(super) fn new<T: Element>(shape: Vec<usize>, data: Vec<T>) -> Result<Self> {
        Ok(T::value(Tensor::new(shape, data)?))
    }

    pub(super) fn shape(&self) -> &[usize] {
        each!(self, tensor => tensor.shape())
    }

    /// Its tensor, which must be of that type.
    pub(super) fn tensor<T: Element>(&self) -> Result<&Tensor<T>> {
        match T::tensor(self) {
            Some(tensor) => Ok(tensor),
            None => candle_core::bail!("{} where {} was expected", self.name(), T::NAME),
        }
    }

    /// Its integers: axes, sizes or positions.
    pub(super) fn integers(&self) -> Result<Vec<i64>> {
        match self {
            Self::I64(tensor) => Ok(tensor.data().to_vec()),
            Self::I32(tensor) => Ok(tensor.data().iter().map(|&one| i64::from(one)).collect()),
            other => candle_core::bail!("{} where integers were expected", other.name()),
        }
    }

    /// Its only element, which must be of that type.
    pub(super) fn single<T: Element>(&self) -> Result<T> {
        match self.tensor::<T>()?.data() {
            [single] => Ok(single.clone()),
            _ => candle_core::bail!("shape {:?} where one value was expected", self.shape()),
        }
    }

    /// Memory of its elements.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Text(tensor) => text_bytes(tensor.data()),
            each => each!(each, tensor => size_of_val(tensor.data())),
        }
    }
}

/// Memory of texts.
pub(super) fn text_bytes(texts: &[Arc<str>]) -> usize {
    // Two counts precede the characters.
    let one = |text: &Arc<str>| size_of::<Arc<str>>() + 2 * size_of::<usize>() + text.len();
    texts.iter().map(one).sum()
}
