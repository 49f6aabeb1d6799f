"""Parts that vision encoders share: patch embeddings, encoder layers and the insertion of image vectors.

The layers have no positions of their own; image vectors replace the embeddings of placeholder tokens.
"""

from __future__ import annotations

from typing import Any

from paramcount.flow import Data, Size, Undescribed, Weight
from paramcount.parts.classic import multi_head
from paramcount.parts.decoders import pre_norm
from paramcount.parts.feed_forward import plain_mlp


def cut_into_patches(pixels: Data, name: str, d_model: Size, patch_size: Size, *, bias: bool = False) -> Data:
    """A convolution whose stride is its width: one vector for each square of pixels.

    The first axis of `pixels` stands for the patches, the second for their channels.
    """
    weights: tuple[Weight, ...] = (
        Weight(name + ".weight", "embedding", (d_model, pixels.shape[1], patch_size, patch_size)),
    )
    if bias:
        weights += (Weight(name + ".bias", "embedding", (d_model,)),)
    return Data("convolve", (pixels,), (pixels.shape[0], d_model), weights)


def vision_layer(c: Any, x: Data, names: tuple[str, str] = ("layer_norm1", "layer_norm2")) -> Data:
    """The layer of CLIP and SigLIP encoders: LayerNorms, attention over all patches, a plain MLP, biases everywhere."""
    return pre_norm(
        x,
        lambda h: multi_head(c, h, "self_attn.", cached=False),
        lambda h: plain_mlp(h, ("mlp.fc1", "mlp.fc2"), "mlp", c.d_ff, bias=True),
        names,
        bias=True,
    )


def insert(x: Data, *others: Data) -> Data:
    """The tokens' vectors with those of an image or a sound in the places held for them."""
    return Data(Undescribed("insert", of_prompt=True), (x, *others), x.shape)
