"""ViT and DeiT: an image as a sequence of patches behind a class token, with learned positions and a pooler.

Source: arXiv:2010.11929, section 3.1; ViTModel of the reference.
"""

from __future__ import annotations

from typing import Any, ClassVar

from paramcount import flow as ops
from paramcount import parts, sizes
from paramcount.flow import Data

ATTENTION = ("attention.query", "attention.key", "attention.value", "output.dense")
LAYER = "encoder.layer.{layer}."
# What the reference calls these matrices, behind the name of the encoder in a pair.
MODULES = {
    f"encoder.{LAYER}{stored}": (f"encoder.layers.{{layer}}.{name}",)
    for stored, name in {
        "attention.attention.query": "attention.q_proj",
        "attention.attention.key": "attention.k_proj",
        "attention.attention.value": "attention.v_proj",
        "attention.output.dense": "attention.o_proj",
        "intermediate.dense": "mlp.fc1",
        "output.dense": "mlp.fc2",
    }.items()
}


def grid(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, int]:
    """Rows and columns of patches."""
    size = js.get("image_size", 224)
    height, width = size if isinstance(size, (list, tuple)) else (size, size)
    rows, columns = height // c["patch_size"], width // c["patch_size"]
    if rows < 1 or columns < 1:
        raise sizes.make_value_error(size, "image_size", f"at least patch_size = {c['patch_size']}")
    return rows, columns


def count_patches(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    rows, columns = grid(js, c)
    return rows * columns


class ViT(parts.PatchVision):
    model_types = ("vit",)
    section: ClassVar[str | None] = None
    modules = MODULES

    d_head: sizes.Positive = sizes.hf("head_dim", absent=sizes.d_model_per_head)
    n_patches: sizes.Positive = sizes.derived(count_patches)
    qkv_bias: sizes.Flag = sizes.hf()
    d_pooled: sizes.Positive = sizes.derived(lambda js, c: js.get("pooler_output_size") or c["d_model"])

    pooler_activation: ClassVar = sizes.setting("pooler_act", usual="tanh")
    n_tokens: ClassVar[int] = 1  # in front of the patches

    def forward(c, pixels: Data, states: parts.States | None = None) -> Data:
        """One image to vectors of the class token and the patches; the pooled vector is beside them."""
        x = c.encode(c.embed(pixels), name=LAYER)
        y = c.norm(x, "layernorm")
        return ops.bundle(y if states is None else parts.select_states(x, states), c.pool(y))

    def embed(c, pixels: Data) -> Data:
        name = "embeddings.patch_embeddings.projection"
        x = c.add_tokens(parts.embed_patches(pixels, name, c.d_model, c.patch_size, bias=True))
        return ops.add_positions(x, "embeddings.position_embeddings", 1, c.n_patches + c.n_tokens, c.d_model)

    def add_tokens(c, x: Data) -> Data:
        return ops.class_token(x, "embeddings.cls_token", 1, 1, c.d_model)

    def layer(c, x: Data, *reads: Data) -> Data:
        h = c.norm(x, "layernorm_before")
        x = x + parts.multi_head(c, h, "attention.", ATTENTION, bias=(*[c.qkv_bias] * 3, True))
        return x + parts.bert_mlp(c, c.norm(x, "layernorm_after"))

    def pool(c, x: Data) -> Data:
        pooled = ops.linear(ops.first_token(x), "pooler.dense", "other", c.d_pooled, bias=True)
        return ops.activate(pooled, c.pooler_activation)

    def check(c: Any) -> None:
        """Heads need not fill d_model."""


class DeiT(ViT):
    """A second token is there for distillation. Source: arXiv:2012.12877, section 4; DeiTModel of the reference."""

    model_types = ("deit",)

    n_tokens = 2

    def add_tokens(c, x: Data) -> Data:
        return super().add_tokens(ops.class_token(x, "embeddings.distillation_token", 1, 1, c.d_model))
