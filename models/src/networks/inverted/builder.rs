//! Makes a plan block by block, in timm's naming or torchvision's.

use switchyard_kernels::Activation;

use super::plan::{
    COLOURS, ConvPlan, ExcitePlan, ImagePadding, TensorNaming, UnitLayers, UnitPlan,
};

/// Follows an image through a network.
pub(crate) struct PlanBuilder {
    naming: TensorNaming,
    padding: ImagePadding,
    /// Lines and columns, and channels, behind the units so far.
    side: usize,
    channels: usize,
    units: Vec<UnitPlan>,
}

/// A block of a network.
#[derive(Clone, Copy)]
pub(crate) struct BlockShape {
    /// Group and block within it, from 0; no block where groups have a single one without a number.
    pub(crate) group: usize,
    pub(crate) index: Option<usize>,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    /// Channels inside and behind it.
    pub(crate) inner: usize,
    pub(crate) output: usize,
    /// Channels of the squeeze, if there is one.
    pub(crate) squeezed: Option<usize>,
    pub(crate) activation: Activation,
}

/// Names of the layers of one block.
struct BlockNames {
    naming: TensorNaming,
    at: String,
    /// Layers named so far, which torchvision counts.
    count: usize,
}

// === impl PlanBuilder ===

impl PlanBuilder {
    /// With the stem, a 3 x 3 convolution that halves the image.
    pub(crate) fn new(
        naming: TensorNaming,
        padding: ImagePadding,
        size: usize,
        stem: usize,
        activation: Activation,
    ) -> Self {
        let mut builder = Self {
            naming,
            padding,
            side: size,
            channels: COLOURS,
            units: Vec::new(),
        };
        let names = match naming {
            TensorNaming::Timm => ["conv_stem", "bn1"],
            TensorNaming::Torchvision => ["features.0.0", "features.0.1"],
        };
        builder.conv(names, stem, [3, 2], activation);
        builder
    }

    pub(crate) fn channels(&self) -> usize {
        self.channels
    }

    pub(crate) fn into_units(self) -> Vec<UnitPlan> {
        self.units
    }

    /// A convolution that is a unit of its own.
    pub(crate) fn conv(
        &mut self,
        names: [&str; 2],
        output: usize,
        [kernel, stride]: [usize; 2],
        activation: Activation,
    ) {
        let names = names.map(str::to_owned);
        let conv = self.plan(names, [self.channels, output], [kernel, stride]);
        let cost = self.cost(&conv, stride);
        self.side = self.side.div_ceil(stride);
        self.channels = output;
        self.units.push(UnitPlan {
            layers: UnitLayers::Conv(conv),
            activation,
            width: self.side * self.side * output,
            cost,
        });
    }

    /// A block whose depthwise convolution is between two of one position.
    pub(crate) fn inverted(&mut self, shape: &BlockShape) {
        let &BlockShape {
            kernel,
            stride,
            inner,
            output,
            ..
        } = shape;
        let mut names = BlockNames::new(self.naming, shape);
        let input = self.channels;
        let expands = inner != input;
        let expand = expands.then(|| {
            let names = names.conv("conv_pw", 1);
            self.plan(names, [input, inner], [1, 1])
        });
        let norm = usize::from(expands);
        let names_of_depthwise = names.conv("conv_dw", norm + 1);
        let depthwise = self.plan(names_of_depthwise, [inner, inner], [kernel, stride]);
        let excite = shape
            .squeezed
            .map(|squeezed| names.excite([inner, squeezed]));
        let last = if expands { "conv_pwl" } else { "conv_pw" };
        let names_of_project = names.conv(last, norm + 2);
        let project = self.plan(names_of_project, [inner, output], [1, 1]);
        let before = (self.side * self.side) as f64;
        let width = self.side * self.side * inner;
        let after = self.side.div_ceil(stride) * self.side.div_ceil(stride);
        let widening = if expands {
            before * (input * inner) as f64
        } else {
            0.0
        };
        let narrowing = after as f64 * (inner * (kernel * kernel + output)) as f64;
        self.push(
            shape,
            width,
            widening + narrowing,
            UnitLayers::Inverted {
                expand,
                depthwise,
                excite,
                project,
                residual: stride == 1 && input == output,
            },
        );
    }

    /// A block with a full convolution instead of the first two.
    pub(crate) fn fused(&mut self, shape: &BlockShape) {
        let &BlockShape {
            kernel,
            stride,
            inner,
            output,
            ..
        } = shape;
        let mut names = BlockNames::new(self.naming, shape);
        let input = self.channels;
        let expands = inner != input;
        let first = if expands { "conv_exp" } else { "conv" };
        let conv = self.plan(
            names.conv(first, 1),
            [input, if expands { inner } else { output }],
            [kernel, stride],
        );
        let project = expands.then(|| {
            let names = names.conv("conv_pwl", 2);
            self.plan(names, [inner, output], [1, 1])
        });
        let after = self.side.div_ceil(stride) * self.side.div_ceil(stride);
        let wide = conv.channels[1];
        let narrowing = if expands { after * inner * output } else { 0 };
        let cost = self.cost(&conv, stride) + narrowing as f64;
        let width = (self.side * self.side * input).max(after * wide);
        self.push(
            shape,
            width,
            cost,
            UnitLayers::Fused {
                conv,
                project,
                residual: stride == 1 && input == output,
            },
        );
    }

    fn push(&mut self, shape: &BlockShape, width: usize, cost: f64, layers: UnitLayers) {
        self.side = self.side.div_ceil(shape.stride);
        self.channels = shape.output;
        self.units.push(UnitPlan {
            layers,
            activation: shape.activation,
            width,
            cost,
        });
    }

    fn plan(
        &self,
        [conv, norm]: [String; 2],
        channels: [usize; 2],
        [kernel, stride]: [usize; 2],
    ) -> ConvPlan {
        ConvPlan {
            conv,
            norm,
            channels,
            window: self.padding.window(kernel, stride, self.side),
        }
    }

    /// Multiply-adds of a full convolution of the present image.
    fn cost(&self, conv: &ConvPlan, stride: usize) -> f64 {
        let side = self.side.div_ceil(stride);
        let [input, output] = conv.channels;
        (side * side * conv.window.positions()) as f64 * (input * output) as f64
    }
}

// === impl BlockNames ===

impl BlockNames {
    fn new(naming: TensorNaming, shape: &BlockShape) -> Self {
        let at = match naming {
            TensorNaming::Timm => format!("blocks.{}", shape.group),
            TensorNaming::Torchvision => format!("features.{}", shape.group + 1),
        };
        let at = match shape.index {
            Some(index) => format!("{at}.{index}"),
            None => at,
        };
        Self {
            naming,
            at: match naming {
                TensorNaming::Timm => at,
                TensorNaming::Torchvision => format!("{at}.block"),
            },
            count: 0,
        }
    }

    /// Of the next convolution, whose normalisation is the `norm`-th of the block in timm's naming.
    fn conv(&mut self, timm: &str, norm: usize) -> [String; 2] {
        let (at, count) = (&self.at, self.count);
        self.count += 1;
        match self.naming {
            TensorNaming::Timm => [format!("{at}.{timm}"), format!("{at}.bn{norm}")],
            TensorNaming::Torchvision => [format!("{at}.{count}.0"), format!("{at}.{count}.1")],
        }
    }

    /// Of the excitation, which torchvision counts as a layer.
    fn excite(&mut self, channels: [usize; 2]) -> ExcitePlan {
        let (at, count) = (&self.at, self.count);
        self.count += 1;
        let (squeeze, widen) = match self.naming {
            TensorNaming::Timm => (
                format!("{at}.se.conv_reduce"),
                format!("{at}.se.conv_expand"),
            ),
            TensorNaming::Torchvision => (format!("{at}.{count}.fc1"), format!("{at}.{count}.fc2")),
        };
        ExcitePlan {
            squeeze,
            widen,
            channels,
        }
    }
}
