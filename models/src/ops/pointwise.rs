//! Sums and ReLUs with gradients of one pass each.
//!
//! candle's own differentiate through several temporaries, which in a network without
//! normalisation takes as long as the convolutions.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};
use rayon::prelude::*;
use switchyard_kernels::{self as kernels, Activation};

use super::device::has_kernels;
use super::tensors::{contiguous, with_values};

/// `max(x, 0)`.
struct Relu;

/// `max(a + b, 0)`.
struct AddRelu;

/// A gradient where the result is above 0, and 0 elsewhere.
struct ReluGradient;

/// Adds a row to every row of a matrix.
struct AddBias;

/// Sums of a matrix's columns.
struct ColumnSums;

/// `max(x, 0)`.
pub(crate) fn relu(x: &Tensor) -> Result<Tensor> {
    if has_kernels(x) {
        x.contiguous()?.apply_op1(Relu)
    } else {
        x.relu()
    }
}

/// `max(a + b, 0)` for tensors of one shape.
pub(crate) fn add_relu(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    if has_kernels(a) {
        a.contiguous()?.apply_op2(&b.contiguous()?, AddRelu)
    } else {
        (a + b)?.relu()
    }
}

/// `[rows, columns]` plus `[columns]` on every row.
///
/// candle's broadcast addition differentiates by summing over rows element by element.
pub(crate) fn add_bias(x: &Tensor, bias: &Tensor) -> Result<Tensor> {
    if has_kernels(x) {
        x.contiguous()?.apply_op2(&bias.contiguous()?, AddBias)
    } else {
        x.broadcast_add(bias)
    }
}

/// Values that a thread computes at once.
const SHARE: usize = 16 << 10;

/// GELU with the distribution function of the normal distribution.
pub(crate) fn gelu(x: &Tensor) -> Result<Tensor> {
    if !has_kernels(x) {
        return x.gelu_erf();
    }
    let mut values = with_values(x, <[f32]>::to_vec)?;
    match rayon::current_num_threads() {
        1 => kernels::gates::gelu(&mut values),
        _ => values.par_chunks_mut(SHARE).for_each(kernels::gates::gelu),
    }
    Tensor::from_vec(values, x.shape(), x.device())
}

/// A layer's activation of its sums.
pub(crate) fn activate(x: Tensor, activation: Activation) -> Result<Tensor> {
    match activation {
        Activation::None => Ok(x),
        Activation::Relu => relu(&x),
        Activation::Silu => x.silu(),
        Activation::HardSwish => &x * hard_sigmoid(&x)?,
        Activation::Gelu => gelu(&x),
        Activation::GeluTanh => x.gelu(),
    }
}

/// `x / 6 + 1 / 2`, at least 0 and at most 1.
pub(crate) fn hard_sigmoid(x: &Tensor) -> Result<Tensor> {
    x.affine(1.0 / 6.0, 0.5)?.clamp(0.0, 1.0)
}

// === impl Relu ===

impl CustomOp1 for Relu {
    fn name(&self) -> &'static str {
        "relu"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let x = contiguous(storage, layout)?;
        let values = x.iter().map(|x| kernels::relu(*x)).collect();
        Ok((CpuStorage::F32(values), layout.shape().clone()))
    }

    fn bwd(&self, _arg: &Tensor, res: &Tensor, grad: &Tensor) -> Result<Option<Tensor>> {
        let grad = grad.contiguous()?;
        Ok(Some(grad.apply_op2_no_bwd(res, &ReluGradient)?))
    }
}

// === impl AddRelu ===

impl CustomOp2 for AddRelu {
    fn name(&self) -> &'static str {
        "add-relu"
    }

    fn cpu_fwd(
        &self,
        a: &CpuStorage,
        a_layout: &Layout,
        b: &CpuStorage,
        b_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let sum = |(a, b): (&f32, &f32)| kernels::relu(a + b);
        let values = same_shape(a, a_layout, b, b_layout)?.map(sum).collect();
        Ok((CpuStorage::F32(values), a_layout.shape().clone()))
    }

    fn bwd(
        &self,
        _a: &Tensor,
        _b: &Tensor,
        res: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let grad = grad.contiguous()?.apply_op2_no_bwd(res, &ReluGradient)?;
        Ok((Some(grad.clone()), Some(grad)))
    }
}

// === impl ReluGradient ===

impl CustomOp2 for ReluGradient {
    fn name(&self) -> &'static str {
        "relu-gradient"
    }

    fn cpu_fwd(
        &self,
        grad: &CpuStorage,
        grad_layout: &Layout,
        res: &CpuStorage,
        res_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let open = |(grad, res): (&f32, &f32)| if *res > 0.0 { *grad } else { 0.0 };
        let pairs = same_shape(grad, grad_layout, res, res_layout)?;
        let values = pairs.map(open).collect();
        Ok((CpuStorage::F32(values), grad_layout.shape().clone()))
    }
}

// === impl AddBias ===

impl CustomOp2 for AddBias {
    fn name(&self) -> &'static str {
        "add-bias"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let (_, columns) = x_layout.shape().dims2()?;
        let bias = contiguous(bias, bias_layout)?;
        if bias.len() != columns {
            candle_core::bail!("a bias of {} for {columns} columns", bias.len());
        }
        let mut sums = contiguous(x, x_layout)?.to_vec();
        for row in sums.chunks_exact_mut(columns.max(1)) {
            for (sum, bias) in row.iter_mut().zip(bias) {
                *sum += bias;
            }
        }
        Ok((CpuStorage::F32(sums), x_layout.shape().clone()))
    }

    fn bwd(
        &self,
        _x: &Tensor,
        _bias: &Tensor,
        _res: &Tensor,
        grad: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let bias = grad.contiguous()?.apply_op1_no_bwd(&ColumnSums)?;
        Ok((Some(grad.clone()), Some(bias)))
    }
}

// === impl ColumnSums ===

impl CustomOp1 for ColumnSums {
    fn name(&self) -> &'static str {
        "column-sums"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (_, columns) = layout.shape().dims2()?;
        let mut sums = vec![0f32; columns];
        for row in contiguous(storage, layout)?.chunks_exact(columns.max(1)) {
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
        Ok((CpuStorage::F32(sums), columns.into()))
    }
}

/// The values of two contiguous f32 tensors of one shape, pair by pair.
fn same_shape<'a>(
    a: &'a CpuStorage,
    a_layout: &Layout,
    b: &'a CpuStorage,
    b_layout: &Layout,
) -> Result<impl Iterator<Item = (&'a f32, &'a f32)>> {
    let (a_shape, b_shape) = (a_layout.shape(), b_layout.shape());
    if a_shape != b_shape {
        candle_core::bail!("shapes {a_shape:?} and {b_shape:?} must be the same");
    }
    Ok(contiguous(a, a_layout)?
        .iter()
        .zip(contiguous(b, b_layout)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use candle_core::{Device, Var};

    use super::super::testing::values;
    use super::*;

    #[test]
    fn values_and_gradients_equal_candles() {
        let a = Var::randn(0f32, 1.0, (6, 5), &Device::Cpu).unwrap();
        let b = Var::randn(0f32, 1.0, (6, 5), &Device::Cpu).unwrap();
        let bias = Var::randn(0f32, 1.0, 5, &Device::Cpu).unwrap();
        let scale = Tensor::randn(0f32, 1.0, (6, 5), &Device::Cpu).unwrap();
        let pairs = [
            (relu(&a), a.relu()),
            (
                add_relu(&a, &b),
                (a.as_tensor() + b.as_tensor()).and_then(|sum| sum.relu()),
            ),
            (add_bias(&a, &bias), a.broadcast_add(&bias)),
        ];
        for (ours, theirs) in pairs {
            let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
            assert_eq!(values(&ours), values(&theirs));
            let gradients = |y: &Tensor| (y * &scale).unwrap().sum_all().unwrap().backward();
            let (ours, theirs) = (gradients(&ours).unwrap(), gradients(&theirs).unwrap());
            for var in [&a, &b, &bias] {
                match (ours.get(var), theirs.get(var)) {
                    (Some(ours), Some(theirs)) => {
                        for (x, y) in values(ours).iter().zip(values(theirs)) {
                            assert!((x - y).abs() < 1e-5, "{x} {y}");
                        }
                    }
                    (ours, theirs) => assert_eq!(ours.is_some(), theirs.is_some()),
                }
            }
        }
    }

    #[test]
    fn hard_swish_is_the_kernels() {
        let x = Tensor::randn(0f32, 3.0, (40, 100), &Device::Cpu).unwrap();
        let mut ours = values(&x);
        kernels::gates::hard_swish(&mut ours);
        let theirs = activate(x, Activation::HardSwish).unwrap();
        for (ours, theirs) in ours.iter().zip(values(&theirs)) {
            assert!((ours - theirs).abs() < 1e-6, "{ours} {theirs}");
        }
    }

    #[test]
    fn gelu_equals_candles() {
        let x = Tensor::randn(0f32, 3.0, (40, 1_000), &Device::Cpu).unwrap();
        let (ours, theirs) = (gelu(&x).unwrap(), x.gelu_erf().unwrap());
        for (ours, theirs) in values(&ours).iter().zip(values(&theirs)) {
            assert!((ours - theirs).abs() < 2e-6, "{ours} {theirs}");
        }
    }

    #[test]
    fn other_shapes_are_errors() {
        let zeros = |shape: &[usize]| Tensor::zeros(shape, candle_core::DType::F32, &Device::Cpu);
        let a = zeros(&[2, 3]).unwrap();
        assert!(add_relu(&a, &zeros(&[3, 2]).unwrap()).is_err());
        assert!(add_bias(&a, &zeros(&[2]).unwrap()).is_err());
    }
}
