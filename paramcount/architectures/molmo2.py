"""Molmo 2: a vision encoder of which two layers are looked at, attention that pools squares of patches, and a decoder
with the norms of Qwen 3 or of OLMo 2.
"""

from typing import ClassVar

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError

MODULES = {  # of the reference
    ".self_attn.att_proj": (".self_attn.q_proj", ".self_attn.k_proj", ".self_attn.v_proj"),
    ".self_attn.attn_out": (".self_attn.o_proj",),
    ".mlp.ff_proj": (".mlp.up_proj", ".mlp.gate_proj"),
    ".mlp.ff_out": (".mlp.down_proj",),
    ".feed_forward.w1": (".mlp.fc1",),
    ".feed_forward.w2": (".mlp.fc2",),
    ".image_projector.w1": (".image_projector.gate_proj",),
    ".image_projector.w2": (".image_projector.down_proj",),
    ".image_projector.w3": (".image_projector.up_proj",),
    **{f".attention.w{y}": (f".self_attn.{y}_proj",) for y in "qkvo"},
    **{f".image_pooling_2d.w{y}": (f".image_pooling_2d.{y}_proj",) for y in "qkvo"},
}
SQUARE = 4  # patches that become one vector, as its processor chooses them


def viewed(section: sizes.ConfigJson) -> list[int]:
    """The layers of the encoder that are looked at, by the section of the adapter."""
    found = section.get("vit_layers", section.get("vision_feature_layer"))
    if found is None:
        return [24, 18]
    if not isinstance(found, list) or not all(type(layer) is int for layer in found):
        raise sizes.make_value_error(found, "adapter_config.vision_feature_layer", "a list of integers")
    return found


def used_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Of a section with the name of released files, only the layers up to the last that is looked at."""
    n = (js.get("vision_config") or {}).get("num_hidden_layers", 25)
    if type(n) is not int or n < 1:
        where = "vision_config.num_hidden_layers"
        raise sizes.make_value_error(n, where, "a positive integer")
    layers = viewed(js.get("adapter_config") or {})
    if js.get("vit_config") is not None:
        return max((layer % n for layer in layers), default=-1) + 1
    if wrong := [layer for layer in layers if not -n <= layer < n]:
        where = "adapter_config.vision_feature_layer"
        raise ParamcountError(f"= {wrong[0]}", where=where, expected=f"{-n} to {n - 1}")
    return n


def n_positions(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """One for each patch, unless their number is given."""
    n = js.get("image_num_pos", js.get("num_position_embeddings"))
    height, width = js.get("image_default_input_size", js.get("image_size")) or (378, 378)
    return int((height // c["patch_size"]) * (width // c["patch_size"])) if n is None else int(n)


class Molmo2Vision(parts.VisionEncoder):
    config_class = "Molmo2VisionConfig"
    unused_keys = ("num_hidden_layers",)  # read from the whole

    d_model: sizes.Positive = sizes.hf("hidden_size")
    n_layers: sizes.Natural = sizes.derived(used_layers, at_root=True)
    n_heads: sizes.Positive = sizes.hf("num_attention_heads")
    n_kv_heads: sizes.Positive = sizes.hf("num_key_value_heads")
    d_head: sizes.Positive = sizes.hf("head_dim")
    d_ff: sizes.Natural = sizes.hf("intermediate_size")
    n_channels: sizes.Positive = sizes.hf("num_channels")
    patch_size: sizes.Positive = sizes.hf("image_patch_size", "patch_size")
    n_patches: sizes.Natural = sizes.derived(n_positions)
    attention_bias: sizes.Flag = sizes.hf("attention_bias")

    def forward(c, pixels: Data) -> Data:
        """One image to the hidden states of its patches."""
        x = ops.cut(pixels, c.patch_size, c.patch_size, axes="hwc")
        x = ops.linear(x, "patch_embedding", "embedding", c.d_model, bias=True)
        x = ops.add_positions(x, "positional_embedding", c.n_patches, c.d_model)
        return c.encode(x, name="transformer.resblocks.{layer}.")

    def layer(c, x: Data, *reads: Data) -> Data:
        x = x + c.attend(c.norm(x, "attention_norm"))
        return x + parts.encoder_mlp(c, c.norm(x, "ffn_norm"), ("feed_forward.w1", "feed_forward.w2"))

    def attend(c, x: Data) -> Data:
        heads, bias = (c.n_kv_heads, c.d_head), c.attention_bias
        q = ops.linear(x, "attention.wq", "qkv.q", (c.n_heads, c.d_head), bias=bias)  # [n, n_heads, d_head]
        k, v = (ops.linear(x, f"attention.w{y}", f"qkv.{y}", heads, bias=bias) for y in "kv")
        return ops.linear(ops.attend(q, k, v), "attention.wo", "output_projection", c.d_model, bias=bias)

    def check(c) -> None:
        """Heads need not fill the hidden size."""


class Molmo2Adapter(sizes.Sizes):
    """The attention that pools, and a gated MLP."""

    config_class = "Molmo2AdapterConfig"

    section: ClassVar[str | None] = "adapter_config"

    d_model: sizes.Positive = sizes.hf()
    n_heads: sizes.Positive = sizes.hf()
    n_kv_heads: sizes.Positive = sizes.hf()
    d_head: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()
    d_out: sizes.Positive = sizes.hf("text_hidden_size")
    attention_bias: sizes.Flag = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()
    n_views: sizes.Positive = sizes.derived(lambda js, c: len(viewed(js)))

    activation = sizes.setting("hidden_act")
    views = sizes.setting(default=lambda config, c: tuple(i + 1 if i >= 0 else i for i in viewed(config)))

    def view(c, x: Data) -> Data:
        """The states of the layers of the encoder x that are looked at, side by side."""
        return Data(ops.HiddenStates(c.views), (x,), (*x.shape[:-1], c.n_views * c.d_model))

    def pool(c, x: Data, places: Data, pooled: Data) -> Data:
        """Squares of patches to vectors of the language model's size: their mean attends to them."""
        name, heads, bias = "image_pooling_2d.", (c.n_kv_heads, c.d_head), c.attention_bias
        q = ops.linear(
            ops.mean_of_squares(x, SQUARE, places), name + "wq", "projector", (c.n_heads, c.d_head), bias=bias
        )
        k, v = (ops.linear(x, f"{name}w{y}", "projector", heads, bias=bias) for y in "kv")
        x = ops.linear(ops.attend(q, k, v, mask=ops.Chosen(pooled)), name + "wo", "projector", c.d_model, bias=bias)
        gate, up = (ops.linear(x, f"image_projector.{y}", "projector", c.d_ff, bias=c.mlp_bias) for y in ("w1", "w3"))
        return ops.linear(ops.activate(gate, c.activation) * up, "image_projector.w2", "projector", c.d_out)


class Molmo2(parts.AttentionDecoder):
    """Image tokens attend to those before them, as in the reference without mm_token_type_ids.

    Source: arXiv:2601.10611; arXiv:2409.17146, section 2; modeling_molmo2.py of the reference.
    """

    reference = "Molmo2ForConditionalGeneration"
    older_sections = {"vit_config": "vision_config"}
    reference_names = {
        "model.transformer.blocks.": "model.language_model.layers.",
        "model.transformer.": "model.language_model.",
        "model.vision_backbone.image_vit.transformer.resblocks.": "model.vision_tower.layers.",
        "model.vision_backbone.image_vit.": "model.vision_tower.",
        "model.vision_backbone.": "model.multi_modal_projector.",
    }
    section = "text_config"
    prefix = "model.transformer."
    names = ("wte.embedding", "blocks", "ln_f")
    modules = MODULES
    rotated = "d_head"
    unused_keys = ("/vit_config",)
    conditions = (sizes.one_of("qk_norm_type", ("qwen3", "olmo"), "qwen3"),)

    d_head: sizes.Positive = sizes.hf()
    d_ff: sizes.Natural = sizes.hf()
    n_additional: sizes.Natural = sizes.hf("additional_vocab_size")
    qkv_bias: sizes.Flag = sizes.hf("qkv_bias", "attention_bias", null=False)
    wide_norm: sizes.Flag = sizes.derived(lambda js, c: js.get("qk_norm_type", "qwen3") == "olmo")
    post_norm: sizes.Flag = sizes.hf("norm_after")
    tie_word_embeddings: sizes.Flag = sizes.derived(lambda js, c: False)  # whatever the key says

    vision: Molmo2Vision
    adapter: Molmo2Adapter

    norm_eps = sizes.setting("layer_norm_eps", "rms_norm_eps")
    rope = sizes.rotary(positions=36864)
    plain_rope = sizes.rotary(positions=36864, scaled=False)
    scaled_layers = sizes.setting("rope_scaling_layers", default=None)
    image_token = sizes.setting("/image_token_id", "/image_patch_id", default=151938)

    def forward(c, tokens: Data) -> Data:
        pixels = c.vision.image()
        name = "model.vision_backbone."
        image = ops.block(pixels, name + "image_vit.", lambda x: c.adapter.view(c.vision.forward(x)), part="vision")
        places = ops.patch_places(pixels, c.vision.patch_size, c.vision.patch_size)
        pooled = ops.given("pooled patches", "image", SQUARE)
        image = ops.block(image, name, c.adapter.pool, reads=(places, pooled), part="projector")
        return c.decode(ops.insert_sum(c.embed(tokens), tokens, image, c.image_token))

    def embed(c, tokens: Data) -> Data:
        more = (c.prefix + "wte.new_embedding", c.n_additional)
        return ops.lookup_continued(tokens, c.prefix + "wte.embedding", "embedding", c.vocab_size, c.d_model, *more)

    def kinds(c) -> parts.Kinds | None:
        """Layers whose rotary positions are scaled, and others; None if all are scaled."""
        if not ops.is_known(c.scaled_layers) or c.scaled_layers is None or not isinstance(c.n_layers, int):
            return None
        return [("scaled" if i in c.scaled_layers else "unscaled", 1) for i in range(c.n_layers)]

    def layer(c, x: Data, kind: str = "scaled") -> Data:
        if c.post_norm:
            x = x + c.norm(c.attend(x, kind), "attn_norm")
            return x + c.norm(c.feed_forward(x), "ff_norm")
        x = x + c.attend(c.norm(x, "attn_norm"), kind)
        return x + c.feed_forward(c.norm(x, "ff_norm"))

    def attend(c, x: Data, kind: str) -> Data:
        kv = (c.n_kv_heads, c.d_head)
        shares = {"qkv.q": (c.n_heads, c.d_head), "qkv.k": kv, "qkv.v": kv}
        q, k, v = ops.fused(x, "self_attn.att_proj", shares, bias=c.qkv_bias)
        angles = c.rope if kind == "scaled" else c.plain_rope
        q, k = (
            ops.rope(ops.rms_norm(y, f"self_attn.{name}_norm", c.norm_eps, wide=c.wide_norm), angles)
            for name, y in (("q", q), ("k", k))
        )
        return ops.linear(ops.attend_causally(q, k, v), "self_attn.attn_out", "output_projection", c.d_model)

    def feed_forward(c, x: Data) -> Data:
        up, gate = ops.fused(x, "mlp.ff_proj", {"mlp.up": c.d_ff, "mlp.gate": c.d_ff})
        return ops.linear(ops.activate(gate, c.activation) * up, "mlp.ff_out", "mlp.down", c.d_model)
