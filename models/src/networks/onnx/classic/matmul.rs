//! `MatMul` and `Gemm`.

use std::ops::{Add, Mul};

use candle_core::Result;

use super::definition::Definition;
use super::operator::{Operator, single};
use super::shape;
use super::strided;
use super::value::{Element, Tensor, Value};

/// Sums that run side by side, so that they fit vector registers.
const LANES: usize = 8;

/// Numbers that are multiplied and added; integers wrap.
pub(super) trait Number: Element + Copy + Default {
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! floats {
    ($($type:ty),+) => {
        $(impl Number for $type {
            fn plus(self, other: Self) -> Self {
                self.add(other)
            }

            fn times(self, other: Self) -> Self {
                self.mul(other)
            }
        })+
    };
}

macro_rules! integers {
    ($($type:ty),+) => {
        $(impl Number for $type {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        })+
    };
}

floats!(f32, f64);
integers!(i64, i32);

/// `A * B^T`, of `[rows, inner]` and `[columns, inner]`.
pub(super) fn transposed<T: Number>(a: &[T], b: &[T], rows: usize, columns: usize) -> Vec<T> {
    let inner = a.len().checked_div(rows).unwrap_or_default();
    if inner == 0 {
        return vec![T::default(); rows * columns];
    }
    let mut product = Vec::with_capacity(rows * columns);
    for row in a.chunks_exact(inner) {
        let columns = b.chunks_exact(inner).take(columns);
        product.extend(columns.map(|column| dot(row, column)));
    }
    product
}

fn dot<T: Number>(a: &[T], b: &[T]) -> T {
    let mut lanes = [T::default(); LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    let rest = rest.fold(T::default(), |sum, (&a, &b)| sum.plus(a.times(b)));
    for (a, b) in a_chunks.zip(b_chunks) {
        for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
            *lane = lane.plus(a.times(b));
        }
    }
    lanes.into_iter().fold(rest, T::plus)
}

/// `A * B`, of `[rows, inner]` and `[inner, columns]`.
fn product<T: Number>(a: &[T], b: &[T], inner: usize, columns: usize, out: &mut [T]) {
    if inner == 0 || columns == 0 {
        return;
    }
    for (row, out) in a.chunks_exact(inner).zip(out.chunks_exact_mut(columns)) {
        for (&x, b) in row.iter().zip(b.chunks_exact(columns)) {
            for (out, &b) in out.iter_mut().zip(b) {
                *out = out.plus(x.times(b));
            }
        }
    }
}

/// `MatMul`: matrices in the last two axes; those before broadcast.
pub(super) fn matmul(_: Definition<'_>) -> Result<Box<dyn Operator>> {
    Ok(single(|inputs| {
        let b = inputs.at(1)?;
        match inputs.at(0)? {
            Value::F32(a) => matrices(a, b.tensor()?),
            Value::F64(a) => matrices(a, b.tensor()?),
            Value::I64(a) => matrices(a, b.tensor()?),
            Value::I32(a) => matrices(a, b.tensor()?),
            other => candle_core::bail!("{} where numbers were expected", other.name()),
        }
    }))
}

fn matrices<T: Number>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Value> {
    // A vector is one row on the left, and one column on the right; the axis is dropped at the end.
    let a_shape = match *a.shape() {
        [inner] => vec![1, inner],
        ref shape => shape.to_vec(),
    };
    let b_shape = match *b.shape() {
        [inner] => vec![inner, 1],
        ref shape => shape.to_vec(),
    };
    let (a_outer, b_outer, rows, inner, columns) = match (&a_shape[..], &b_shape[..]) {
        ([a_outer @ .., rows, inner], [b_outer @ .., other, columns]) if inner == other => {
            (a_outer, b_outer, *rows, *inner, *columns)
        }
        _ => candle_core::bail!("MatMul of {:?} and {:?}", a.shape(), b.shape()),
    };
    let outer = shape::broadcast(a_outer, b_outer)?;
    let mut shape = outer.clone();
    if a.shape().len() > 1 {
        shape.push(rows);
    }
    if b.shape().len() > 1 {
        shape.push(columns);
    }
    let mut data = vec![T::default(); shape::count(&shape)?];
    let mut places = [Vec::new(), Vec::new()];
    for (place, from) in places.iter_mut().zip([a_outer, b_outer]) {
        strided::for_each(&strided::broadcast(from, &outer), |at| place.push(at));
    }
    let [a_places, b_places] = places;
    let products = data.chunks_exact_mut((rows * columns).max(1));
    for ((out, a_at), b_at) in products.zip(a_places).zip(b_places) {
        let a = &a.data()[a_at * rows * inner..][..rows * inner];
        let b = &b.data()[b_at * inner * columns..][..inner * columns];
        product(a, b, inner, columns, out);
    }
    Value::new(shape, data)
}

/// `Gemm`: `alpha * A * B + beta * C`, with A and B transposed on request.
pub(super) fn gemm(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let alpha = definition.float("alpha", 1.0);
    let beta = definition.float("beta", 1.0);
    let turned = [
        definition.int("transA", 0) != 0,
        definition.int("transB", 0) != 0,
    ];
    Ok(single(move |inputs| {
        let (b, c) = (inputs.at(1)?, inputs.optional(2));
        match inputs.at(0)? {
            Value::F32(a) => {
                let c = c.map(Value::tensor).transpose()?;
                general(a, b.tensor()?, c, turned, alpha, beta)
            }
            Value::F64(a) => {
                let c = c.map(Value::tensor).transpose()?;
                let (alpha, beta) = (f64::from(alpha), f64::from(beta));
                general(a, b.tensor()?, c, turned, alpha, beta)
            }
            other => candle_core::bail!("{} where floats were expected", other.name()),
        }
    }))
}

fn general<T: Number>(
    a: &Tensor<T>,
    b: &Tensor<T>,
    c: Option<&Tensor<T>>,
    turned: [bool; 2],
    alpha: T,
    beta: T,
) -> Result<Value> {
    let turn = |tensor: &Tensor<T>| {
        let mut axes = strided::all(tensor.shape());
        axes.reverse();
        strided::picked(tensor, &axes)
    };
    let turned_a;
    let a = if turned[0] {
        turned_a = turn(a)?;
        &turned_a
    } else {
        a
    };
    let ([rows, inner], [first, second]) = (a.shape(), b.shape()) else {
        candle_core::bail!("Gemm of {:?} and {:?}", a.shape(), b.shape());
    };
    let (other, columns) = if turned[1] {
        (second, first)
    } else {
        (first, second)
    };
    if inner != other {
        candle_core::bail!("Gemm of {:?} and {:?}", a.shape(), b.shape());
    }
    let shape = vec![*rows, *columns];
    let mut data = vec![T::default(); shape::count(&shape)?];
    if turned[1] {
        data = transposed(a.data(), b.data(), *rows, *columns);
    } else {
        product(a.data(), b.data(), *inner, *columns, &mut data);
    }
    data.iter_mut().for_each(|one| *one = one.times(alpha));
    if let Some(c) = c {
        if shape::broadcast(c.shape(), &shape)? != shape {
            candle_core::bail!("Gemm adds {:?} to {shape:?}", c.shape());
        }
        let mut out = data.iter_mut();
        strided::for_each(&strided::broadcast(c.shape(), &shape), |at| {
            if let Some(out) = out.next() {
                *out = out.plus(c.data()[at].times(beta));
            }
        });
    }
    Value::new(shape, data)
}
