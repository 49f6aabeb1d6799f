"""Llama 4: one expert of many and a shared one, in every layer or every second.

Most layers attend inside chunks, the others have no positions. The released models carry a vision tower.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.declare import Data, ops, parts, sizes

KINDS = ("chunked_attention", "full_attention", "attention")  # the last is the older word for the second


def rotates(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """One number a layer, at least: 0 where it rotates nothing."""
    found, step = js.get("no_rope_layers"), js.get("no_rope_layer_interval", 4)
    if not found:
        return tuple(int((i + 1) % step != 0) for i in sizes.per_layer(c))
    if not isinstance(found, (list, tuple)) or len(found) < c["n_layers"] or not all(type(n) is int for n in found):
        raise sizes.make_value_error(found, "no_rope_layers", "0 or 1 for each layer")
    return tuple(found)


def dense(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[int, ...]:
    """The layers that have no experts: all but those of moe_layers, or of each interleave_moe_layer_step the last."""
    found, step = js.get("moe_layers"), js.get("interleave_moe_layer_step", 1)
    if found is None:
        found = range(step - 1, c["n_layers"], step)
    return tuple(i for i in sizes.per_layer(c) if i not in found)


def temperature(config: Mapping[str, Any], c: Any) -> tuple[int, float] | None:
    """From how many positions on queries of layers without rotation grow, and how fast; None if they do not."""
    if not config.get("attn_temperature_tuning", True):
        return None
    return config.get("floor_scale", 8192), config.get("attn_scale", 0.1)


class Llama4Text(parts.AttentionDecoder):
    """Source: Llama4TextAttention and Llama4TextMoe of the reference, modeling_llama4.py."""

    reference = "Llama4ForCausalLM"
    model_types = ("llama4_text",)
    gguf = "llama4"
    gguf_rope_factors = "llama3"
    is_section_type = True
    linear_subclasses = (".feed_forward.router.weight",)
    base_model = "Llama4TextModel"
    rotated = "d_head"
    conditions = (sizes.padding_in_table(None),)
    defaults = {"d_head": 128}

    unrotated_layers: sizes.Indices = sizes.derived(
        lambda js, c: tuple(i for i, turned in zip(sizes.per_layer(c), rotates(js, c)) if not turned)
    )
    layer_types: sizes.Words = sizes.hf(
        absent=lambda js, c: tuple(KINDS[not turned] for turned in rotates(js, c)), null=sizes.ABSENT
    )
    window: sizes.Positive = sizes.hf("attention_chunk_size")  # the most that a token of a chunk looks back over
    qk_norm: sizes.Flag = sizes.hf("use_qk_norm")
    dense_layers: sizes.Indices = sizes.derived(dense)
    d_ff: sizes.Natural = sizes.hf("intermediate_size_mlp")
    d_expert: sizes.Natural = sizes.hf("intermediate_size")
    n_routed_experts: sizes.Positive = sizes.hf("num_local_experts")
    n_active_experts: sizes.Natural = sizes.hf()
    attention_bias: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    rope = sizes.rotary(500_000, positions=131072)
    temperature = sizes.setting(default=temperature)

    def kinds(c) -> parts.Kinds:
        unrotated, dense = set(c.unrotated_layers), set(c.dense_layers)
        return [((w, i not in unrotated, "dense" if i in dense else "moe"), 1) for i, w in enumerate(c.layer_types)]

    def layer(c, x: Data, kind: tuple[str, bool, str]) -> Data:
        word, rotated, mlp = kind
        mask = ops.Causal() & ops.Chunk(c.window) if word == KINDS[0] else ops.Causal()

        def mix(q: Data, k: Data, v: Data) -> Data:
            return ops.attend(q, ops.cache(k, mask), ops.cache(v, mask), mask=mask)  # [n, n_heads, d_head]

        h, prepare = c.norm(x, "input_layernorm"), c.turn_heads if rotated else c.heat
        x = x + c.self_attention(h, bias=c.attention_bias, prepare=prepare, mix=mix)
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.moe(h) if mlp == "moe" else c.gated_mlp(h, "feed_forward."))

    def turn_heads(c, q: Data, k: Data) -> tuple[Data, Data]:
        q, k = ops.rope(q, c.rope, "interleaved"), ops.rope(k, c.rope, "interleaved")
        return (ops.plain_norm(q, "rms", c.norm_eps), ops.plain_norm(k, "rms", c.norm_eps)) if c.qk_norm else (q, k)

    def heat(c, q: Data, k: Data) -> tuple[Data, Data]:
        """Source: arXiv:2501.19399."""
        if c.temperature is None:
            return q, k
        span, beta = (c.temperature, c.temperature) if isinstance(c.temperature, ops.Unknown) else c.temperature
        return ops.scale_in_steps(q, span, beta, first=1), k

    def moe(c, x: Data) -> Data:
        """The router's sigmoid multiplies what an expert reads."""
        logits = ops.linear(x, "feed_forward.router", "router", c.n_routed_experts)  # [n, experts]
        weights = ops.top_k(ops.activate(logits, "sigmoid"), c.n_active_experts, by=logits)  # 0 for those not chosen
        shared = parts.gated_mlp(
            x, "feed_forward.shared_expert.", "shared_experts", c.d_expert, activation=c.activation
        )
        name, counts = "feed_forward.experts.", (c.n_routed_experts, c.n_active_experts)
        return shared + ops.experts_of_scaled(x, weights, name, *counts, c.expert, stored="stacked")

    def expert(c, x: Data) -> Data:
        return parts.packed_mlp(x, "experts", c.d_expert, activation=c.activation, transposed=True)

    def check(c) -> None:
        sizes.check_layer_types(c, "layer_types", "n_layers", KINDS)
        sizes.check_layer_indices(c, "unrotated_layers", "n_layers")
        sizes.check_rotated_in_pairs(c, "d_head")


Llama4TextOf = sizes.in_section(Llama4Text, "llama4.Llama4ForCausalLM", gguf="llama4")


class Llama4Vision(parts.PatchVision):
    """Rotary positions in two dimensions; a class token after the patches. Squares of patches become one, which an
    adapter takes to the size that the projector reads.
    """

    config_class = "Llama4VisionConfig"

    d_ff: sizes.Natural = sizes.hf()  # of the layers, and what the adapter reads
    n_patches: sizes.Positive = sizes.derived(lambda js, c: (js.get("image_size", 448) // c["patch_size"]) ** 2)
    d_adapter: sizes.Positive = sizes.hf("projector_input_dim")
    d_adapted: sizes.Positive = sizes.hf("projector_output_dim")
    d_out: sizes.Positive = sizes.hf("vision_output_dim")

    activation = "gelu"
    norm_eps = 1e-5
    rope = sizes.rotary()
    n_merged = sizes.setting(default=lambda js, c: round(1 / js.get("pixel_shuffle_ratio", 0.5)) ** 2)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors for the projector."""
        x = ops.linear(ops.cut(pixels, c.patch_size, c.patch_size), "patch_embedding.linear", "embedding", c.d_model)
        x = ops.class_token(x, "class_embedding", last=True)
        x = c.norm(ops.add_positions(x, "positional_embedding_vlm", c.n_patches + 1, c.d_model), "layernorm_pre")
        places = ops.patch_places(pixels, c.patch_size, c.patch_size, class_place="last")
        x = c.norm(c.encode(x, places, name="model.layers.{layer}."), "layernorm_post")
        x = Data(ops.MergeSquares(c.n_merged), (ops.other_tokens(x, last=True),), ("patches", c.d_ff))
        x = ops.activate(matrix(x, "vision_adapter.mlp.fc1", "mlp.up", c.d_ff, c.d_adapter), "gelu")
        return ops.activate(matrix(x, "vision_adapter.mlp.fc2", "mlp.down", c.d_adapted, c.d_adapted), "gelu")

    def layer(c, x: Data, *reads: Data) -> Data:
        (places,) = reads
        h, axes = c.norm(x, "input_layernorm"), ops.Axes((1, 1), "restarted")

        def rotate(y: Data) -> Data:
            return ops.rope_at(y, places, c.rope, axes, "interleaved")

        x = x + parts.attentions.attention(
            c, h, "self_attn.", bias=True, prepare=parts.turn_with(rotate), mix=ops.attend
        )
        return x + parts.encoder_mlp(c, c.norm(x, "post_attention_layernorm"))

    def check(c) -> None:
        """The reference builds it whatever its heads are."""


class Llama4(parts.SeeingDecoder, Llama4Text):
    """Source: modeling_llama4.py of the reference."""

    reference = "Llama4ForConditionalGeneration"
    gguf = "llama4"
    base_model = ""
    prefix = "language_model.model."
    head_name = "language_model.lm_head"
    encoder_prefix = "vision_model."

    vision: Llama4Vision

    image_token = sizes.setting("/image_token_index", "/image_token_id", default=200092)

    def project(c, x: Data) -> Data:
        return matrix(x, "linear_1", "projector", c.vision.d_out, c.d_model)


def matrix(x: Data, name: str, component: str, d_in: Any, d_out: Any) -> Data:
    """The adapter's and the projector's matrices name the size of their input a second time in config.json.

    Images fit if both agree.
    """
    return Data(ops.Linear(), (x,), (*x.shape[:1], d_out), (ops.Weight(name + ".weight", component, (d_out, d_in)),))
