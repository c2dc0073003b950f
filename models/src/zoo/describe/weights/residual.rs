//! Residual networks in torchvision's naming, which timm's have too.

use super::recognised::{Recognised, Shapes, has_exactly};
use crate::networks::architecture::Architecture;
use crate::networks::resnet2d::{
    BlockKind, ResNet2dGroup, ResNet2dSpec, ResNet2dStem, TensorLayout,
};

/// Lines and columns of an image of ImageNet.
const SIZE: usize = 224;

const SLICES: usize = 8;

/// Stem of networks for ImageNet.
const STEM: ResNet2dStem = ResNet2dStem {
    channels: 64,
    kernel: 7,
    stride: 2,
    pool: true,
};

/// Depths of the paper, by block and blocks of each group.
const DEPTHS: [(BlockKind, [usize; 4], usize); 5] = [
    (BlockKind::Basic, [2, 2, 2, 2], 18),
    (BlockKind::Basic, [3, 4, 6, 3], 34),
    (BlockKind::Bottleneck, [3, 4, 6, 3], 50),
    (BlockKind::Bottleneck, [3, 4, 23, 3], 101),
    (BlockKind::Bottleneck, [3, 8, 36, 3], 152),
];

pub(super) fn recognise(shapes: &Shapes) -> Option<Recognised> {
    let classes = *shapes.get("fc.bias")?.first()?;
    let (block, blocks, depth) = DEPTHS
        .into_iter()
        .find(|(block, blocks, _)| has_exactly(shapes, &tensors(*block, blocks, classes)))?;
    let groups = blocks
        .into_iter()
        .zip([64, 128, 256, 512])
        .zip([1, 2, 2, 2]);
    let groups = groups.map(|((blocks, channels), stride)| ResNet2dGroup {
        channels,
        blocks,
        stride,
    });
    Some(Recognised {
        name: format!("resnet {depth}"),
        naming: "torchvision",
        architecture: Architecture::ResNet2d(ResNet2dSpec {
            size: SIZE,
            classes,
            layout: TensorLayout::Torchvision,
            block,
            exits: vec![blocks.len()],
            slices: SLICES,
            stem: STEM,
            groups: groups.collect(),
        }),
        is_size_known: false,
        paddings: None,
        notes: Vec::new(),
    })
}

/// Names and shapes of all tensors.
fn tensors(block: BlockKind, blocks: &[usize; 4], classes: usize) -> Vec<(String, Vec<usize>)> {
    let mut tensors = Vec::new();
    let mut conv = |conv: String, norm: String, [input, output, kernel]: [usize; 3]| {
        let shape = vec![output, input, kernel, kernel];
        tensors.push((format!("{conv}.weight"), shape));
        for part in ["weight", "bias", "running_mean", "running_var"] {
            tensors.push((format!("{norm}.{part}"), vec![output]));
        }
    };
    conv(
        "conv1".to_owned(),
        "bn1".to_owned(),
        [3, STEM.channels, STEM.kernel],
    );
    let mut input = STEM.channels;
    for (group, &count) in blocks.iter().enumerate() {
        let inner = STEM.channels << group;
        let (kernels, output): (&[usize], _) = match block {
            BlockKind::Basic => (&[3, 3], inner),
            BlockKind::Bottleneck => (&[1, 3, 1], 4 * inner),
        };
        for index in 0..count {
            let at = format!("layer{}.{index}", group + 1);
            let mut from = input;
            for (i, &kernel) in kernels.iter().enumerate() {
                let to = if i + 1 == kernels.len() {
                    output
                } else {
                    inner
                };
                let number = i + 1;
                let names = [format!("{at}.conv{number}"), format!("{at}.bn{number}")];
                let [name, norm] = names;
                conv(name, norm, [from, to, kernel]);
                from = to;
            }
            if index == 0 && (group > 0 || input != output) {
                let names = ["0", "1"].map(|part| format!("{at}.downsample.{part}"));
                let [name, norm] = names;
                conv(name, norm, [input, output, 1]);
            }
            input = output;
        }
    }
    tensors.push(("fc.weight".to_owned(), vec![classes, input]));
    tensors.push(("fc.bias".to_owned(), vec![classes]));
    tensors
}
