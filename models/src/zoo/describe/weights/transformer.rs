//! Vision transformers: the shapes say all but the heads of a layer.

use super::recognised::{Recognised, Shapes, has_exactly};
use crate::networks::architecture::Architecture;
use crate::networks::vit::{VitNaming, VitSpec};

const LAYERS_PER_STAGE: usize = 2;

/// Published widths of tokens, their names and heads.
const WIDTHS: [(usize, &str, usize); 5] = [
    (192, "tiny", 3),
    (384, "small", 6),
    (768, "base", 12),
    (1024, "large", 16),
    (1280, "huge", 16),
];

pub(super) fn recognise(shapes: &Shapes) -> Option<Recognised> {
    let (layout, naming) = match shapes.contains_key("class_token") {
        true => (VitNaming::Torchvision, "torchvision"),
        false => (VitNaming::Timm, "timm"),
    };
    let layer = |index: usize| match layout {
        VitNaming::Torchvision => format!("encoder.layers.encoder_layer_{index}.mlp.0.bias"),
        _ => format!("blocks.{index}.mlp.fc1.bias"),
    };
    let layers = (0..)
        .take_while(|&index| shapes.contains_key(&layer(index)))
        .count();
    let wide = *shapes.get(&layer(0))?.first()?;
    let [positions, patches, head] = match layout {
        VitNaming::Torchvision => [
            "encoder.pos_embedding",
            "conv_proj.weight",
            "heads.head.bias",
        ],
        _ => ["pos_embed", "patch_embed.proj.weight", "head.bias"],
    };
    let &[hidden, _, patch, _] = shapes.get(patches)?.as_slice() else {
        return None;
    };
    let &[_, tokens, _] = shapes.get(positions)?.as_slice() else {
        return None;
    };
    if patch == 0 {
        return None;
    }
    let grid = tokens.checked_sub(1)?.isqrt();
    let (_, name, heads) = WIDTHS.into_iter().find(|(width, ..)| *width == hidden)?;
    let spec = VitSpec {
        size: grid * patch,
        patch,
        classes: *shapes.get(head)?.first()?,
        hidden,
        layers,
        heads,
        wide,
        layout,
        layers_per_stage: LAYERS_PER_STAGE,
    };
    let is_whole = has_exactly(shapes, &spec.tensors());
    is_whole.then(|| Recognised {
        name: format!("vit {name} with patches of {patch}"),
        naming,
        architecture: Architecture::Vit(spec),
        is_size_known: true,
        paddings: None,
        notes: vec![format!(
            "{heads} heads, as published vision transformers of {hidden} channels have"
        )],
    })
}
