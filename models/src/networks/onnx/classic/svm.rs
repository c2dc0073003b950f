//! The kernels of support-vector machines, and `SVMRegressor` of `ai.onnx.ml`.

use candle_core::Result;

use super::definition::Definition;
use super::matmul;
use super::operator::{Inputs, Operator};
use super::scale::floats;
use super::value::{Tensor, Value};

/// `kernel_type` with `kernel_params`.
#[derive(Clone, Copy, Debug)]
enum Kernel {
    Linear,
    Poly { gamma: f32, coef0: f32, degree: f32 },
    Rbf { gamma: f32 },
    Sigmoid { gamma: f32, coef0: f32 },
}

/// Vectors that rows are compared with by a kernel.
pub(super) struct Machine {
    kernel: Kernel,
    /// `[vectors, features]`.
    vectors: Vec<f32>,
    count: usize,
    features: usize,
}

// === impl Machine ===

impl Machine {
    /// Support vectors with the kernel of the node.
    pub(super) fn read(definition: Definition<'_>, count: usize) -> Result<Self> {
        let params = definition.floats("kernel_params");
        let (gamma, coef0, degree) = match *params {
            [gamma, coef0, degree, ..] => (gamma, coef0, degree),
            [] => (0.0, 0.0, 0.0),
            _ => candle_core::bail!("{} kernel_params, 3 are needed", params.len()),
        };
        let kernel = match definition.text("kernel_type", "LINEAR")? {
            "LINEAR" => Kernel::Linear,
            "POLY" => Kernel::Poly {
                gamma,
                coef0,
                degree,
            },
            "RBF" => Kernel::Rbf { gamma },
            "SIGMOID" => Kernel::Sigmoid { gamma, coef0 },
            other => candle_core::bail!("kernel_type `{other}` is unknown"),
        };
        Self::new(kernel, definition.floats("support_vectors"), count)
    }

    /// Coefficients of features, where there are no support vectors.
    pub(super) fn linear(coefficients: &[f32], count: usize) -> Result<Self> {
        Self::new(Kernel::Linear, coefficients, count)
    }

    fn new(kernel: Kernel, vectors: &[f32], count: usize) -> Result<Self> {
        let features = vectors.len().checked_div(count).unwrap_or_default();
        if features == 0 || features * count != vectors.len() {
            candle_core::bail!("{} numbers for {count} vectors", vectors.len());
        }
        Ok(Self {
            kernel,
            vectors: vectors.to_vec(),
            count,
            features,
        })
    }

    /// The kernel of rows and vectors, `[rows, vectors]`, and the rows.
    pub(super) fn compare(&self, x: &Value) -> Result<(usize, Vec<f32>)> {
        let x = Tensor::new(x.shape().to_vec(), floats(x)?.into_owned())?;
        let (rows, features) = x.matrix()?;
        if features != self.features {
            candle_core::bail!("{features} features, the model takes {}", self.features);
        }
        super::shape::count(&[rows, self.count])?;
        if let Kernel::Rbf { gamma } = self.kernel {
            let distance = |(row, vector): (&[f32], &[f32])| {
                let pairs = row.iter().zip(vector);
                let squares = pairs.map(|(x, y)| (x - y) * (x - y));
                (-gamma * squares.sum::<f32>()).exp()
            };
            let rows_data = x.data().chunks_exact(features);
            let compared = rows_data.flat_map(|row| {
                let vectors = self.vectors.chunks_exact(features);
                vectors.map(move |vector| distance((row, vector)))
            });
            return Ok((rows, compared.collect()));
        }
        let mut compared = matmul::transposed(x.data(), &self.vectors, rows, self.count);
        match self.kernel {
            Kernel::Poly {
                gamma,
                coef0,
                degree,
            } => {
                for one in &mut compared {
                    let base = gamma * *one + coef0;
                    *one = if degree == 2.0 {
                        base * base
                    } else if degree == 3.0 {
                        base * base * base
                    } else {
                        base.powf(degree)
                    };
                }
            }
            Kernel::Sigmoid { gamma, coef0 } => {
                for one in &mut compared {
                    *one = (gamma * *one + coef0).tanh();
                }
            }
            Kernel::Linear | Kernel::Rbf { .. } => {}
        }
        Ok((rows, compared))
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.vectors.as_slice())
    }
}

/// `[rows, features]` to `[rows, 1]`.
struct SvmRegressor {
    machine: Machine,
    /// One for each vector.
    coefficients: Vec<f32>,
    rho: f32,
    one_class: bool,
}

pub(super) fn regressor(definition: Definition<'_>) -> Result<Box<dyn Operator>> {
    let coefficients = definition.floats("coefficients");
    let vectors = usize::try_from(definition.int("n_supports", 0)).unwrap_or_default();
    let (machine, coefficients) = match vectors {
        0 => (Machine::linear(coefficients, 1)?, vec![1.0]),
        _ => (Machine::read(definition, vectors)?, coefficients.to_vec()),
    };
    let [rho, ..] = definition.floats("rho") else {
        candle_core::bail!("attribute `rho` is missing");
    };
    if coefficients.len() != machine.count {
        let (found, vectors) = (coefficients.len(), machine.count);
        candle_core::bail!("{found} coefficients for {vectors} vectors");
    }
    Ok(Box::new(SvmRegressor {
        machine,
        coefficients,
        rho: *rho,
        one_class: definition.int("one_class", 0) != 0,
    }))
}

impl Operator for SvmRegressor {
    fn run(&self, inputs: Inputs<'_>) -> Result<Vec<Value>> {
        let (rows, compared) = self.machine.compare(inputs.at(0)?)?;
        let score = |kernel: &[f32]| {
            // In 64 bits: large coefficients of both signs cancel out.
            let pairs = kernel.iter().zip(&self.coefficients);
            let sum: f64 = pairs.map(|(&x, &by)| f64::from(x) * f64::from(by)).sum();
            let score = (sum + f64::from(self.rho)) as f32;
            match self.one_class {
                true if score > 0.0 => 1.0,
                true => -1.0,
                false => score,
            }
        };
        let kernels = compared.chunks_exact(self.coefficients.len());
        let scores: Vec<f32> = kernels.map(score).collect();
        Ok(vec![Value::new(vec![rows, 1], scores)?])
    }

    fn bytes(&self) -> usize {
        self.machine.bytes() + size_of_val(self.coefficients.as_slice())
    }
}
