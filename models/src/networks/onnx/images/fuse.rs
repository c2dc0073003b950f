//! Operations that a kernel computes together.

use switchyard_kernels::Activation;

use super::convolution::{Convolution, Form};
use super::function::Function;
use super::operation::{Kind, Operation, Unweighted};

/// Operations while they are joined.
struct Fusing<'a> {
    list: Vec<Option<Operation<'a>>>,
    /// By image: how many operations and outputs read it, and the operation that makes it.
    readers: Vec<usize>,
    makers: Vec<Option<usize>>,
}

/// Joins products of a value and its gate, and convolutions with the normalisation, the sum and the function
/// behind them.
pub(super) fn fuse<'a>(
    operations: Vec<Operation<'a>>,
    given: &[(&str, usize)],
) -> Vec<Operation<'a>> {
    let mut fusing = Fusing::new(operations, given);
    for at in 0..fusing.list.len() {
        fusing.gate(at);
    }
    for at in 0..fusing.list.len() {
        fusing.affine(at);
        fusing.sum(at);
        fusing.function(at);
    }
    fusing.list.into_iter().flatten().collect()
}

// === impl Fusing ===

impl<'a> Fusing<'a> {
    fn new(operations: Vec<Operation<'a>>, given: &[(&str, usize)]) -> Self {
        let last = operations.iter().map(|operation| operation.output).max();
        let mut fusing = Self {
            readers: vec![0; last.unwrap_or(0) + 1],
            makers: vec![None; last.unwrap_or(0) + 1],
            list: Vec::with_capacity(operations.len()),
        };
        for (at, operation) in operations.into_iter().enumerate() {
            for &input in &operation.inputs {
                fusing.readers[input] += 1;
            }
            fusing.makers[operation.output] = Some(at);
            fusing.list.push(Some(operation));
        }
        for (_, image) in given {
            if let Some(readers) = fusing.readers.get_mut(*image) {
                *readers += 1;
            }
        }
        fusing
    }

    /// The operation that makes an image for a single reader.
    fn only(&mut self, image: usize) -> Option<(usize, &mut Operation<'a>)> {
        let maker = self.makers[image].filter(|_| self.readers[image] == 1)?;
        Some((maker, self.list[maker].as_mut()?))
    }

    /// The same, if it is a convolution without a function.
    fn only_conv(&mut self, image: usize) -> Option<(usize, &mut Convolution<'a>, usize)> {
        let (maker, operation) = self.only(image)?;
        let images = operation.inputs.len();
        match &mut operation.kind {
            Kind::Conv(conv) if conv.activation == Activation::None => Some((maker, conv, images)),
            _ => None,
        }
    }

    /// `x` times a gate of `x` is one function.
    fn gate(&mut self, at: usize) {
        let Some(Operation {
            kind: Kind::Unweighted(Unweighted::Times),
            inputs,
            ..
        }) = &self.list[at]
        else {
            return;
        };
        let &[a, b] = inputs.as_slice() else {
            return;
        };
        for [x, gate] in [[a, b], [b, a]] {
            let joined = self.only(gate).and_then(|(maker, operation)| {
                let function = match (&operation.kind, operation.inputs.as_slice()) {
                    (Kind::Unweighted(Unweighted::Each(function)), &[of]) if of == x => {
                        function.times_x()
                    }
                    _ => None,
                };
                Some((maker, function?))
            });
            if let (Some((maker, function)), Some(operation)) = (joined, &mut self.list[at]) {
                operation.kind = Kind::Unweighted(Unweighted::Each(function));
                operation.inputs = vec![x];
                self.list[maker] = None;
                self.readers[x] -= 1;
                return;
            }
        }
    }

    /// A factor and a summand behind a convolution change its weights.
    fn affine(&mut self, at: usize) {
        let Some(Operation {
            kind: Kind::Affine(_),
            inputs,
            ..
        }) = &self.list[at]
        else {
            return;
        };
        let image = inputs[0];
        match self.only_conv(image) {
            Some((_, _, 1)) => {}
            _ => return,
        }
        let Some(Operation {
            kind: Kind::Affine(affine),
            output,
            ..
        }) = self.list[at].take()
        else {
            return;
        };
        if let Some((maker, conv, _)) = self.only_conv(image) {
            conv.affines.push(affine);
            self.give(maker, output);
        }
    }

    /// A convolution adds its sums to another image. It takes the place of the addition, where both are known.
    fn sum(&mut self, at: usize) {
        let Some(Operation {
            kind: Kind::Unweighted(Unweighted::Plus),
            inputs,
            output,
        }) = &self.list[at]
        else {
            return;
        };
        let (&[a, b], output) = (inputs.as_slice(), *output) else {
            return;
        };
        // The later one moves least.
        let mut ways = [[a, b], [b, a]];
        ways.sort_by_key(|[image, _]| std::cmp::Reverse(self.makers[*image]));
        for [image, other] in ways {
            let maker = match self.only_conv(image) {
                Some((maker, conv, 1)) if conv.form == Form::Dense && image != other => maker,
                _ => continue,
            };
            let Some(mut conv) = self.list[maker].take() else {
                return;
            };
            conv.inputs.push(other);
            conv.output = output;
            self.makers[output] = Some(at);
            self.list[at] = Some(conv);
            return;
        }
    }

    /// A convolution applies the function behind it.
    fn function(&mut self, at: usize) {
        let Some(Operation {
            kind: Kind::Unweighted(Unweighted::Each(function)),
            inputs,
            output,
        }) = &self.list[at]
        else {
            return;
        };
        let (Some(activation), image, output) =
            (Function::activation(*function), inputs[0], *output)
        else {
            return;
        };
        if let Some((maker, conv, _)) = self.only_conv(image) {
            conv.activation = activation;
            self.list[at] = None;
            self.give(maker, output);
        }
    }

    /// An operation makes the image of another one that it was joined with.
    fn give(&mut self, maker: usize, output: usize) {
        if let Some(operation) = &mut self.list[maker] {
            operation.output = output;
            self.makers[output] = Some(maker);
        }
    }
}
