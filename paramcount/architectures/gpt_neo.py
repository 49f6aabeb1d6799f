"""GPT-Neo: GPT-2 with every second layer looking back over a window, and no bias on q, k and v."""

from typing import Any, ClassVar

from paramcount.declare import Data, ops, parts, sizes

KINDS = ("global", "local")


def expanded(js: sizes.ConfigJson, c: sizes.FieldValues) -> tuple[str, ...]:
    """[[["global", "local"], 12]]: these words, in this order, twelve times."""
    words: list[str] = []
    runs: Any = js.get("attention_types")
    if runs is None:
        runs = [[KINDS, 12]]
    for run, times in runs:
        if len(words) + len(run) * times > sizes.MOST_NAMED:
            raise sizes.make_value_error(runs, "attention_types", f"at most {sizes.MOST_NAMED:,} layers")
        words += list(run) * times
    return tuple(words)


class GPTNeo(parts.Decoder):
    """Source: modeling_gpt_neo.py of the reference, GPTNeoBlock."""

    is_causal: ClassVar[Any] = True  # its attention has a mask of its own

    reference = "GPTNeoForCausalLM"
    task_heads = "GPT_SPAN"

    n_positions: sizes.Positive = sizes.hf("max_position_embeddings")
    n_layers: sizes.Natural = sizes.hf("num_hidden_layers", "num_layers")
    attention_layers: sizes.Words = sizes.hf("attention_layers", absent=expanded)
    window: sizes.Positive = sizes.hf("window_size")
    n_heads: sizes.Positive = sizes.hf("num_attention_heads", "num_heads")
    d_head: sizes.Positive = sizes.derived(sizes.d_model_per_head)
    d_ff: sizes.Natural = sizes.hf(absent=lambda js, c: 4 * c["d_model"], null=sizes.ABSENT)

    prefix = "transformer."
    names = ("wte", "h", "ln_f")
    activation = sizes.setting("activation_function")
    norm_eps = sizes.setting("layer_norm_epsilon")
    rope = None
    norm = parts.use_layer_norm

    def embed(c, tokens: Data) -> Data:
        x = super().embed(tokens)
        return x + ops.lookup_position(tokens, "transformer.wpe.weight", c.n_positions, c.d_model)

    def kinds(c) -> parts.Kinds:
        return [(kind, 1) for kind in c.attention_layers]

    def layer(c, x: Data, kind: str) -> Data:
        x = x + c.attention(c.norm(x, "ln_1"), "attn.attention.", c.window if kind == "local" else None)
        h = c.norm(x, "ln_2")
        return x + parts.plain_mlp(h, ("mlp.c_fc", "mlp.c_proj"), "mlp", c.d_ff, activation=c.activation, bias=True)

    def attention(c, x: Data, prefix: str, window: ops.Size | None) -> Data:
        """Attention without a scale, over all earlier tokens or those in a window; the cache keeps all of them."""
        q, k, v = (ops.linear(x, f"{prefix}{name}_proj", f"qkv.{name}", (c.n_heads, c.d_head)) for name in "qkv")
        a = ops.attend(q, ops.cache(k), ops.cache(v), mask=ops.see_earlier(window), scale=1.0)  # [n, n_heads, d_head]
        return ops.linear(a, prefix + "out_proj", "output_projection", c.d_model, bias=True)

    def legacy_buffers(c) -> sizes.Buffers:
        """Masks of the layers that look back on everything."""
        shape = (1, 1, c.n_positions, c.n_positions)
        return tuple(
            (f"transformer.h.{i}.attn.attention.bias", shape, 1)
            for i, kind in enumerate(c.attention_layers)
            if kind == KINDS[0]
        )

    def check(c) -> None:
        sizes.check_heads_fill(c)
        sizes.check_layer_types(c, "attention_layers", "n_layers", KINDS)
