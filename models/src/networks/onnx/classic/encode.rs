//! `LabelEncoder`, `CategoryMapper` and `OneHotEncoder` of `ai.onnx.ml`.

use std::collections::HashMap;
use std::sync::Arc;

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Inputs, Operator};
use super::value::{Element, Tensor, Value, each};

/// The positions of keys. Floats are found by their bits: NaN equals itself.
enum Keys {
    Texts(HashMap<Arc<str>, usize>),
    Ints(HashMap<i64, usize>),
    Floats(HashMap<u64, usize>),
}

/// The bits of a float as a key: one for both zeros, and one for all NaN.
fn bits(float: f64) -> u64 {
    if float.is_nan() {
        return f64::NAN.to_bits();
    }
    (float + 0.0).to_bits()
}

// === impl Keys ===

impl Keys {
    fn new(keys: &Value) -> Result<Self> {
        Ok(match keys {
            Value::Text(keys) => Self::Texts(positions(keys.data().iter().cloned())),
            Value::I64(keys) => Self::Ints(positions(keys.data().iter().copied())),
            Value::I32(keys) => Self::Ints(positions(keys.data().iter().map(|&key| key.into()))),
            Value::F32(keys) => {
                Self::Floats(positions(keys.data().iter().map(|&key| bits(key.into()))))
            }
            Value::F64(keys) => Self::Floats(positions(keys.data().iter().map(|&key| bits(key)))),
            Value::Bool(_) => candle_core::bail!("keys are BOOL"),
        })
    }

    /// The positions of a value's elements among the keys.
    fn find(&self, x: &Value) -> Result<Vec<Option<usize>>> {
        Ok(match (self, x) {
            (Self::Texts(keys), Value::Text(x)) => {
                x.data().iter().map(|one| keys.get(one).copied()).collect()
            }
            (Self::Ints(keys), Value::I64(x)) => {
                x.data().iter().map(|one| keys.get(one).copied()).collect()
            }
            (Self::Ints(keys), Value::I32(x)) => {
                let ints = x.data().iter().map(|&one| i64::from(one));
                ints.map(|one| keys.get(&one).copied()).collect()
            }
            (Self::Floats(keys), Value::F32(x)) => {
                let floats = x.data().iter().map(|&one| bits(one.into()));
                floats.map(|one| keys.get(&one).copied()).collect()
            }
            (Self::Floats(keys), Value::F64(x)) => {
                let floats = x.data().iter().map(|&one| bits(one));
                floats.map(|one| keys.get(&one).copied()).collect()
            }
            (_, x) => candle_core::bail!("{}, which the keys are not", x.name()),
        })
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Texts(keys) => {
                let text = |key: &Arc<str>| key.len() + size_of::<(Arc<str>, usize)>();
                keys.keys().map(text).sum()
            }
            Self::Ints(keys) => keys.len() * size_of::<(i64, usize)>(),
            Self::Floats(keys) => keys.len() * size_of::<(u64, usize)>(),
        }
    }
}

/// The first position of each key.
fn positions<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> HashMap<K, usize> {
    let mut positions = HashMap::new();
    for (at, key) in keys.enumerate() {
        positions.entry(key).or_insert(at);
    }
    positions
}

/// A table from keys to values; the last value is for unknown keys. The shape stays.
struct Table {
    keys: Keys,
    values: Value,
}

impl Table {
    fn new(keys: &Value, values: Value, default: &Value) -> Result<Self> {
        let (found, wanted) = (
            values.shape().iter().product(),
            keys.shape().iter().product(),
        );
        let (found, wanted): (usize, usize) = (found, wanted);
        if found != wanted {
            candle_core::bail!("{wanted} keys, {found} values");
        }
        let values = each!(&values, values => appended(values, default)?);
        Ok(Self {
            keys: Keys::new(keys)?,
            values,
        })
    }
}

fn appended<T: Element>(values: &Tensor<T>, default: &Value) -> Result<Value> {
    let mut data = values.data().to_vec();
    data.push(default.single()?);
    Value::new(vec![data.len()], data)
}

/// The values at positions; the last where there is none.
fn looked_up<T: Element>(
    values: &Tensor<T>,
    found: &[Option<usize>],
    shape: Vec<usize>,
) -> Result<Value> {
    let values = values.data();
    let default = values.len().saturating_sub(1);
    let found = found.iter().map(|at| values[at.unwrap_or(default)].clone());
    Value::new(shape, found.collect())
}

impl Operator for Table {
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>> {
        let x = inputs.at(0)?;
        let found = self.keys.find(x)?;
        let shape = x.shape().to_vec();
        let value = each!(&self.values, values => looked_up(values, &found, shape));
        Ok(vec![value?])
    }

    fn bytes(&self) -> usize {
        self.keys.bytes() + self.values.bytes()
    }
}

/// Texts to integers and back, by the type of the input.
struct TwoWays {
    of_texts: Table,
    of_ints: Table,
}

impl TwoWays {
    fn new(definition: Definition<'_>, texts: Vec<Arc<str>>, ints: Vec<i64>) -> Result<Self> {
        let default: Arc<str> = definition.text("default_string", "_Unused")?.into();
        let default = Value::new(vec![1], vec![default])?;
        let default_int = Value::new(vec![1], vec![definition.int("default_int64", -1)])?;
        let texts = Value::new(vec![texts.len()], texts)?;
        let ints = Value::new(vec![ints.len()], ints)?;
        Ok(Self {
            of_texts: Table::new(&texts, ints.clone(), &default_int)?,
            of_ints: Table::new(&ints, texts, &default)?,
        })
    }
}

impl Operator for TwoWays {
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>> {
        match inputs.at(0)? {
            Value::Text(_) => self.of_texts.run(inputs),
            _ => self.of_ints.run(inputs),
        }
    }

    fn bytes(&self) -> usize {
        self.of_texts.bytes() + self.of_ints.bytes()
    }
}

/// `CategoryMapper`, version 1.
pub(super) fn category_mapper(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let ints = definition.ints("cats_int64s").to_vec();
    let texts = definition.texts("cats_strings")?;
    Ok(Box::new(TwoWays::new(definition, texts, ints)?))
}

/// `LabelEncoder`: version 1 has `classes_strings`, later ones keys and values.
pub(super) fn label_encoder(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    if definition.has("classes_strings") {
        let texts = definition.texts("classes_strings")?;
        let ints = (0..texts.len() as i64).collect();
        return Ok(Box::new(TwoWays::new(definition, texts, ints)?));
    }
    let keys = listed(definition, "keys")?;
    let values = listed(definition, "values")?;
    let default = match definition.tensor("default_tensor")? {
        Some(default) => default,
        None => match values {
            Value::Text(_) => {
                let default: Arc<str> = definition.text("default_string", "_Unused")?.into();
                Value::new(vec![1], vec![default])?
            }
            Value::F32(_) => Value::new(vec![1], vec![definition.float("default_float", -0.0)])?,
            Value::F64(_) => Value::new(vec![1], vec![-0.0f64])?,
            Value::I64(_) => Value::new(vec![1], vec![definition.int("default_int64", -1)])?,
            Value::I32(_) => Value::new(vec![1], vec![-1i32])?,
            Value::Bool(_) => candle_core::bail!("values are BOOL"),
        },
    };
    Ok(Box::new(Table::new(&keys, values, &default)?))
}

/// The attribute among `keys_*` or `values_*` that is there.
fn listed(definition: Definition<'_>, name: &str) -> Result<Value> {
    let of = |suffix: &str| format!("{name}_{suffix}");
    if let Some(tensor) = definition.tensor(&of("tensor"))? {
        return Ok(tensor);
    }
    if definition.has(&of("strings")) {
        let texts = definition.texts(&of("strings"))?;
        return Value::new(vec![texts.len()], texts);
    }
    if definition.has(&of("int64s")) {
        let ints = definition.ints(&of("int64s")).to_vec();
        return Value::new(vec![ints.len()], ints);
    }
    definition.required(&of("floats"))?;
    let floats = definition.floats(&of("floats")).to_vec();
    Value::new(vec![floats.len()], floats)
}

/// `[...]` to `[..., categories]`: 1 at the category of each element.
struct OneHot {
    keys: Keys,
    categories: usize,
    /// Whether unknown categories are zeros, not errors.
    zeros: bool,
}

pub(super) fn one_hot(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let ints = definition.ints("cats_int64s");
    let texts = definition.texts("cats_strings")?;
    let (categories, keys) = match (ints, texts.is_empty()) {
        ([], false) => (texts.len(), Value::new(vec![texts.len()], texts)?),
        ([_, ..], true) => (ints.len(), Value::new(vec![ints.len()], ints.to_vec())?),
        _ => candle_core::bail!("neither or both of cats_int64s and cats_strings"),
    };
    Ok(Box::new(OneHot {
        keys: Keys::new(&keys)?,
        categories,
        zeros: definition.int("zeros", 1) != 0,
    }))
}

impl Operator for OneHot {
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>> {
        let x = inputs.at(0)?;
        let found = match (&self.keys, x) {
            // Numbers are rounded towards 0.
            (Keys::Ints(_), Value::F32(x)) => self.keys.find(&Value::I64(x.map(|x| *x as i64)))?,
            (Keys::Ints(_), Value::F64(x)) => self.keys.find(&Value::I64(x.map(|x| *x as i64)))?,
            (_, x) => self.keys.find(x)?,
        };
        let shape = [x.shape(), &[self.categories]].concat();
        let mut ones = vec![0.0f32; super::shape::count(&shape)?];
        for (row, found) in ones.chunks_exact_mut(self.categories).zip(&found) {
            match found {
                Some(at) => row[*at] = 1.0,
                None if self.zeros => {}
                None => candle_core::bail!("a category is unknown"),
            }
        }
        Ok(vec![Value::new(shape, ones)?])
    }

    fn bytes(&self) -> usize {
        self.keys.bytes()
    }
}
