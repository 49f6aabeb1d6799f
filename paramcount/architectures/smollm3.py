"""SmolLM3: the Llama layout, every fourth layer without positions."""

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data
from paramcount.parts.decoder import AttentionDecoder, Kinds
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
    rotary,
)
from paramcount.sizes.conditions import padding_in_table
from paramcount.sizes.derivations import SLIDING, equal_to, flag, per_layer
from paramcount.sizes.rules import check_sliding_or_full


def without_positions(js: ConfigJson, c: FieldValues) -> tuple[int, ...]:
    """Layers for which no_rope_layers has a 0, in spite of its name; without it one of no_rope_layer_interval."""
    rotates = js.get("no_rope_layers")
    if rotates is None:
        return tuple(i for i in per_layer(c) if (i + 1) % js.get("no_rope_layer_interval", 4) == 0)
    if (
        not isinstance(rotates, (list, tuple))
        or len(rotates) < c["n_layers"]
        or not all(type(n) is int for n in rotates)
    ):
        raise ParamcountError(f"= {describe_value(rotates)}", where="no_rope_layers", expected="one integer per layer")
    return tuple(i for i in per_layer(c) if not rotates[i])


def windows(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """Where windows are asked for, the layers without positions have them."""
    sliding = flag(js, "use_sliding_window", False) and c["window"] is not None
    return tuple(SLIDING[not (sliding and i in c["unrotated_layers"])] for i in per_layer(c))


class SmolLM3(AttentionDecoder):
    """Source: modeling_smollm3.py of the reference; layers without positions arXiv:2501.18795."""

    reference = "SmolLM3ForCausalLM"
    gguf = "smollm3"
    is_section_type = True
    task_heads = "GENERIC_MOVED"
    rotated = "d_head"
    conditions = (padding_in_table(128004),)

    n_kv_heads: Positive = hf(null=equal_to("n_heads"))
    d_ff: Natural = hf()
    unrotated_layers: Indices = derived(without_positions)
    window: Positive | None = hf(absent=None)
    layer_types: Words = hf(absent=windows, null=ABSENT)
    attention_bias: Flag = hf()
    mlp_bias: Flag = hf()
    tie_word_embeddings: Flag = hf()

    rope = rotary(2_000_000, positions=32768)
    check = check_sliding_or_full

    def kinds(c) -> Kinds:
        """(attention, whether it rotates)"""
        unrotated_layers = set(c.unrotated_layers)
        return [((kind, i not in unrotated_layers), 1) for i, kind in enumerate(c.layer_types)]

    def layer(c, x: Data, kind: tuple[str, bool]) -> Data:
        word, rotates = kind
        window = c.window if word == "sliding_attention" else None
        h = c.norm(x, "input_layernorm")
        x = x + c.self_attention(h, bias=c.attention_bias, window=window, rotate=rotates)
        return x + c.gated_mlp(c.norm(x, "post_attention_layernorm"), bias=c.mlp_bias)
