"""Cosmos 3: Omni is Qwen 3 VL with other names, Edge has plain MLPs and SigLIP's encoder."""

from typing import Any, ClassVar

from paramcount.architectures.qwen3_vl import Qwen3VL
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, describe_value

ATTENTION_NAMES = (
    *((f".self_attn.{name}_proj.", f".self_attn.to_{name}.") for name in "qkv"),
    *((f".self_attn.{name}_norm.", f".self_attn.norm_{name}.") for name in "qk"),
    (".self_attn.o_proj.", ".self_attn.to_out."),
)
MLP_NAMES = ((".mlp.fc1.", ".mlp.up_proj."), (".mlp.fc2.", ".mlp.down_proj."))
MODULES = {new.rstrip("."): (old.rstrip("."),) for old, new in (*ATTENTION_NAMES, *MLP_NAMES)}


class Cosmos3Omni(Qwen3VL):
    """Source: modeling_cosmos3_omni.py of the reference."""

    reference = "Cosmos3OmniForConditionalGeneration"
    model_types = ("cosmos3_omni",)
    sections = sizes.Sections("qwen3_vl_text", supported_types=("qwen3_vl_text",))
    reference_names = {
        "blocks.": "model.visual.blocks.",
        "deepstack_merger_list.": "model.visual.deepstack_merger_list.",
        "merger.": "model.visual.merger.",
        "patch_embed.": "model.visual.patch_embed.",
        "pos_embed.": "model.visual.pos_embed.",
        "lm_head.": "lm_head.",
        "": "model.language_model.",
    }
    encoder_prefix = ""
    moved = ("model.", "")
    renamed = ATTENTION_NAMES
    modules = {new.rstrip("."): (old.rstrip("."),) for old, new in ATTENTION_NAMES}


def three_sections_fill(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Time, row and column rotate all pairs, by the usual frequencies."""
    rope = js.get("rope_scaling") or js.get("rope_parameters")
    if rope is None:
        rope = {"mrope_section": (24, 20, 20)}
    sections = rope.get("mrope_section")
    if not isinstance(sections, (list, tuple)) or len(sections) != 3 or sum(sections) != c["d_head"] // 2:
        raise ParamcountError(
            "is missing" if sections is None else f"= {describe_value(sections)} for heads of {c['d_head']}",
            where="rope_parameters.mrope_section",
            expected=f"three integers that sum to {c['d_head'] // 2}",
        )


def d_model_splits(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    if c["d_model"] % c["n_heads"]:
        raise ParamcountError(f"= {c['n_heads']} does not divide {c['d_model']}", where="num_attention_heads")


class Cosmos3EdgeText(parts.AttentionDecoder):
    """Source: Cosmos3EdgeTextModel of the reference."""

    reference = "Cosmos3EdgeForConditionalGeneration"
    model_types = ("cosmos3_edge_text",)
    reference_names = {"model.": ""}
    modules = MODULES
    base_model = "Cosmos3EdgeTextModel"
    rotated = "d_head"
    is_section_type = False
    conditions = (sizes.padding_in_table(0), three_sections_fill, d_model_splits)

    n_kv_heads: sizes.Positive = sizes.hf(null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    rope = sizes.rotary(100_000_000, 131072)
    axes = sizes.setting(default=parts.mrope_axes("interleaved", 24, 20, 20))

    def layer(c, x: Data, *places: Data) -> Data:
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, prepare=c.prepare_by(parts.rotation(c, *places)))
        h, names = c.norm(x, "post_attention_layernorm"), ("mlp.fc1", "mlp.fc2")
        return x + parts.plain_mlp(h, names, "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias)


class Cosmos3EdgeVision(parts.PatchVision):
    """Patches stand square by square, and positions are stretched over the image."""

    config_class = "Cosmos3EdgeVisionConfig"

    n_patches: sizes.Natural = sizes.hf("num_patches")
    merge_size: sizes.Positive = sizes.hf("spatial_merge_size")

    def forward(c, pixels: Data) -> Data:
        """One image to vectors of its patches."""
        side, square = c.patch_size, c.merge_size
        x = ops.cut(pixels, side, side, square=square, axes="hwc")
        x = ops.linear(x, "embeddings.patch_embedding", "embedding", c.d_model, bias=True)
        places, table = ops.patch_places(pixels, side, side, square=square), "embeddings.position_embedding.weight"
        x = x + ops.lookup_in_grid(places, table, c.n_patches, c.d_model, stretch="centres, averaged")
        return c.norm(c.encode(x), "post_layernorm")


class Cosmos3Edge(parts.PlacedImages):
    """Source: modeling_cosmos3_edge.py of the reference."""

    reference = "Cosmos3EdgeForConditionalGeneration"
    model_types = ("cosmos3_edge",)
    sections = sizes.Sections("cosmos3_edge_text", tie_rule="never", ignores_model_type=True)
    reference_names = {"lm_head.": "lm_head.", "model.": "model.", "": "model.language_model."}
    modules = MODULES
    projector_prefix = "model.projector."
    moved = ("model.", "")
    renamed: ClassVar = (*ATTENTION_NAMES, *MLP_NAMES)

    vision: Cosmos3EdgeVision
    d_projector: sizes.Positive = sizes.hf("projector_hidden_size")

    def project(c: Any, x: Data, *places: Data) -> Data:
        x = parts.merge(c.vision, ops.layer_norm(x, "norm", 1e-6))
        h = ops.activate(ops.linear(x, "linear_fc1", "projector", c.d_projector, bias=True), "gelu")
        return ops.linear(h, "linear_fc2", "projector", c.language.d_model, bias=True)
