"""Llama 4: one expert of many and a shared one, in every layer or every second.

Most layers attend inside chunks, the others have no positions. The released models carry a vision tower.
"""

from collections.abc import Mapping
from typing import Any

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Axes, Data, Pool, Unknown, Weight, class_token, other_tokens, rope, rope_at, route
from paramcount.flow.operations.elementwise import activate, plain_norm, scale_by_position
from paramcount.flow.operations.images import cut, patch_places
from paramcount.flow.operations.linear import Linear, add_positions, linear
from paramcount.parts.attentions import attention
from paramcount.parts.composite import SeeingDecoder
from paramcount.parts.decoder import AttentionDecoder, Kinds
from paramcount.parts.decoders import head
from paramcount.parts.feed_forward import gated_mlp
from paramcount.parts.stacked import stacked_experts
from paramcount.parts.vision import VisionEncoder, encoder_mlp
from paramcount.sizes import (
    ABSENT,
    ConfigJson,
    FieldValues,
    Flag,
    Indices,
    Natural,
    Positive,
    Words,
    derived,
    hf,
    per_layer,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.rotary_settings import rotary
from paramcount.sizes.rules import check_layer_indices, check_layer_types, check_rotated_in_pairs
from paramcount.sizes.setting_fields import setting

KINDS = ("chunked_attention", "full_attention", "attention")  # the last is the older word for the second


def rotates(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """One number a layer, at least: 0 where it rotates nothing."""
    found, step = js.get("no_rope_layers"), js.get("no_rope_layer_interval", 4)
    if not found:
        return tuple(int((i + 1) % step != 0) for i in per_layer(c))
    if not isinstance(found, (list, tuple)) or len(found) < c["n_layers"] or not all(type(n) is int for n in found):
        raise ParamcountError(f"= {describe_value(found)}", where="no_rope_layers", expected="0 or 1 for each layer")
    return tuple(found)


def dense(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """The layers that have no experts: all but those of moe_layers, or of each interleave_moe_layer_step the last."""
    found, step = js.get("moe_layers"), js.get("interleave_moe_layer_step", 1)
    if found is None:
        found = range(step - 1, c["n_layers"], step)
    return tuple(i for i in per_layer(c) if i not in found)


def temperature(config: Mapping[str, Any], c: Any) -> tuple[int, float] | None:
    """From how many positions on queries of layers without rotation grow, and how fast; None if they do not."""
    if not config.get("attn_temperature_tuning", True):
        return None
    return config.get("floor_scale", 8192), config.get("attn_scale", 0.1)


class Llama4Text(AttentionDecoder):
    """Source: Llama4TextAttention and Llama4TextMoe of the reference, modeling_llama4.py."""

    reference = "Llama4ForCausalLM"
    model_types = ("llama4_text",)
    gguf = "llama4"
    is_section_type = True
    linear_subclasses = (".feed_forward.router.weight",)
    base_model = "Llama4TextModel"
    rotated = "d_head"
    conditions = (padding_in_table(None),)
    defaults = {"d_head": 128}

    unrotated_layers: Indices = derived(
        lambda js, c: tuple(i for i, turned in zip(per_layer(c), rotates(js, c)) if not turned)
    )
    layer_types: Words = hf(absent=lambda js, c: tuple(KINDS[not turned] for turned in rotates(js, c)), null=ABSENT)
    window: Positive = hf("attention_chunk_size")  # the most that a token of a chunk looks back over
    qk_norm: Flag = hf("use_qk_norm")
    dense_layers: Indices = derived(dense)
    d_ff: Natural = hf("intermediate_size_mlp")
    d_expert: Natural = hf("intermediate_size")
    n_routed_experts: Positive = hf("num_local_experts")
    n_active_experts: Natural = hf()
    attention_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    norm_eps = setting("rms_norm_eps", default=1e-5)
    rope = rotary(500_000, positions=131072)
    temperature = setting(default=temperature)

    def kinds(c) -> Kinds:
        unrotated, dense = set(c.unrotated_layers), set(c.dense_layers)
        return [((w, i not in unrotated, "dense" if i in dense else "moe"), 1) for i, w in enumerate(c.layer_types)]

    def layer(c, x: Data, kind: tuple[str, bool, str]) -> Data:
        word, rotated, mlp = kind
        window = c.window if word == KINDS[0] else None
        prepare = c.rotate if rotated else c.heat
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, prepare=prepare, window=window, chunk=window)
        h = c.norm(x, "post_attention_layernorm")
        return x + (c.moe(h) if mlp == "moe" else c.gated_mlp(h, "feed_forward."))

    def rotate(c, q: Data, k: Data) -> tuple[Data, Data]:
        q, k = rope(q, c.rope, "interleaved"), rope(k, c.rope, "interleaved")
        return (plain_norm(q, "rms", c.norm_eps), plain_norm(k, "rms", c.norm_eps)) if c.qk_norm else (q, k)

    def heat(c, q: Data, k: Data) -> tuple[Data, Data]:
        """Source: arXiv:2501.19399."""
        if c.temperature is None:
            return q, k
        span, beta = (c.temperature, c.temperature) if isinstance(c.temperature, Unknown) else c.temperature
        return scale_by_position(q, "steps", span, beta, first=1), k

    def moe(c, x: Data) -> Data:
        """The router's sigmoid multiplies what an expert reads."""
        logits = linear(x, "feed_forward.router", "router", c.n_routed_experts)
        scores = route(logits, c.n_active_experts, "sigmoid", biased="logits")
        shared = gated_mlp(x, "feed_forward.shared_expert.", "shared_experts", c.d_expert, activation=c.activation)
        return shared + stacked_experts(c, x, scores, "feed_forward.experts.", transposed=True, weighted="input")

    def check(c) -> None:
        check_layer_types(c, "layer_types", "n_layers", KINDS)
        check_layer_indices(c, "unrotated_layers", "n_layers")
        check_rotated_in_pairs(c, "d_head")


class Llama4TextOf(Llama4Text):
    """The language model of a config that has a tower too."""

    model_types = ("llama4.Llama4ForCausalLM",)
    gguf = "llama4"

    section = "text_config"


class Llama4Vision(VisionEncoder):
    """Rotary positions in two dimensions; a class token after the patches. Squares of patches become one, which an
    adapter takes to the size that the projector reads.
    """

    config_class = "Llama4VisionConfig"

    d_ff: Natural = hf()  # of the layers, and what the adapter reads
    n_channels: Positive = hf("num_channels")
    patch_size: Positive = hf("patch_size")
    n_patches: Positive = derived(lambda js, c: (js.get("image_size", 448) // c["patch_size"]) ** 2)
    d_adapter: Positive = hf("projector_input_dim")
    d_adapted: Positive = hf("projector_output_dim")
    d_out: Positive = hf("vision_output_dim")

    activation = "gelu"
    norm_eps = 1e-5
    rope = rotary()
    n_merged = setting(default=lambda js, c: round(1 / js.get("pixel_shuffle_ratio", 0.5)) ** 2)

    def forward(c, pixels: Data) -> Data:
        """One image to vectors for the projector."""
        x = linear(cut(pixels, c.patch_size, c.patch_size), "patch_embedding.linear", "embedding", c.d_model)
        x = class_token(x, "class_embedding", last=True)
        x = c.norm(add_positions(x, "positional_embedding_vlm", c.n_patches + 1, c.d_model), "layernorm_pre")
        places = patch_places(pixels, c.patch_size, c.patch_size, class_place="last")
        x = c.norm(c.encode(x, places, name="model.layers.{layer}."), "layernorm_post")
        x = Data(Pool("squares", c.n_merged), (other_tokens(x, last=True),), ("patches", c.d_ff))
        x = activate(matrix(x, "vision_adapter.mlp.fc1", "mlp.up", c.d_ff, c.d_adapter), "gelu")
        return activate(matrix(x, "vision_adapter.mlp.fc2", "mlp.down", c.d_adapted, c.d_adapted), "gelu")

    def layer(c, x: Data, *reads: Data) -> Data:
        (places,) = reads
        h, axes = c.norm(x, "input_layernorm"), Axes((1, 1), "restarted")

        def rotate(y: Data) -> Data:
            return rope_at(y, places, c.rope, axes, "interleaved")

        x = x + attention(c, h, "self_attn.", bias=True, cached=False, rotate=rotate)
        return x + encoder_mlp(c, c.norm(x, "post_attention_layernorm"))

    def check(c) -> None:
        """The reference builds it whatever its heads are."""


class Llama4(SeeingDecoder, Llama4TextOf):
    """Source: modeling_llama4.py of the reference."""

    reference = "Llama4ForConditionalGeneration"
    gguf = "llama4"
    base_model = ""
    prefix = "language_model.model."
    encoder_prefix = "vision_model."

    vision: Llama4Vision

    image_token = setting("/image_token_index", "/image_token_id", default=200092)

    def project(c, x: Data) -> Data:
        return matrix(x, "linear_1", "projector", c.vision.d_out, c.d_model)

    def head(c, x: Data) -> Data:
        return head(c, x, c.prefix + "embed_tokens.weight", "language_model.lm_head")


def matrix(x: Data, name: str, component: str, d_in: Any, d_out: Any) -> Data:
    """The adapter's and the projector's matrices name the size of their input a second time in config.json.

    Images fit if both agree.
    """
    return Data(Linear(), (x,), (*x.shape[:1], d_out), (Weight(name + ".weight", component, (d_out, d_in)),))
