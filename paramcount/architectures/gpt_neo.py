"""GPT-Neo: GPT-2 with every second layer looking back over a window, and no bias on q, k and v."""

from typing import Any, ClassVar

from paramcount.errors import ParamcountError, describe_value
from paramcount.flow import Data, Size, attend, linear, lookup
from paramcount.parts.decoder import Decoder, Kinds
from paramcount.parts.decoders import use_layer_norm
from paramcount.parts.feed_forward import plain_mlp
from paramcount.sizes import ABSENT, Buffers, ConfigJson, FieldValues, d_model_per_head, derived, hf, setting
from paramcount.sizes.rules import check_heads_fill, check_layer_types
from paramcount.sizes.types import MOST_NAMED, Flag, Natural, Positive, Words

KINDS = ("global", "local")


def expanded(js: ConfigJson, c: FieldValues) -> tuple[str, ...]:
    """[[["global", "local"], 12]]: these words, in this order, twelve times."""
    words: list[str] = []
    runs: Any = js.get("attention_types")
    if runs is None:
        runs = [[KINDS, 12]]
    for run, times in runs:
        if len(words) + len(run) * times > MOST_NAMED:
            raise ParamcountError(
                f"= {describe_value(runs)}", where="attention_types", expected=f"at most {MOST_NAMED:,} layers"
            )
        words += list(run) * times
    return tuple(words)


class GPTNeo(Decoder):
    """Source: modeling_gpt_neo.py of the reference, GPTNeoBlock."""

    is_causal: ClassVar[Any] = True  # its attention has a mask of its own

    reference = "GPTNeoForCausalLM"
    task_heads = "GPT_SPAN"

    n_positions: Positive = hf("max_position_embeddings")
    n_layers: Natural = hf("num_hidden_layers", "num_layers")
    attention_layers: Words = hf("attention_layers", absent=expanded)
    window: Positive = hf("window_size")
    n_heads: Positive = hf("num_attention_heads", "num_heads")
    d_head: Positive = derived(d_model_per_head)
    d_ff: Natural = hf(absent=lambda js, c: 4 * c["d_model"], null=ABSENT)
    tie_word_embeddings: Flag = hf()

    prefix = "transformer."
    names = ("wte", "h", "ln_f")
    activation = setting("activation_function", default="gelu_new")
    norm_eps = setting("layer_norm_epsilon", default=1e-5)
    rope = None
    norm = use_layer_norm

    def embed(c, tokens: Data) -> Data:
        x = super().embed(tokens)
        return x + lookup(tokens, "transformer.wpe.weight", "position", c.n_positions, c.d_model, index="positions")

    def kinds(c) -> Kinds:
        return [(kind, 1) for kind in c.attention_layers]

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attention(c.norm(x, "ln_1"), "attn.attention.", c.window if kind == "local" else None)
        h = c.norm(x, "ln_2")
        return x + plain_mlp(h, ("mlp.c_fc", "mlp.c_proj"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def attention(c, x: Data, prefix: str, window: Size | None) -> Data:
        """Attention without a scale, over all earlier tokens or those in a window; the cache keeps all of them."""
        q, k, v = (linear(x, f"{prefix}{name}_proj", f"qkv.{name}", (c.n_heads, c.d_head)) for name in "qkv")
        a = attend(q, k, v, window=window, keeps_all=True, scale=1.0)
        return linear(a, prefix + "out_proj", "output_projection", c.d_model, bias=True)

    def legacy_buffers(c) -> Buffers:
        """Masks of the layers that look back on everything."""
        shape = (1, 1, c.n_positions, c.n_positions)
        return tuple(
            (f"transformer.h.{i}.attn.attention.bias", shape, 1)
            for i, kind in enumerate(c.attention_layers)
            if kind == KINDS[0]
        )

    def check(c) -> None:
        check_heads_fill(c)
        check_layer_types(c, "attention_layers", "n_layers", KINDS)
