"""UltraBERT: Llama's layers, in which tokens see those on both sides, in two of three layers only near ones."""

from collections.abc import Hashable
from functools import partial
from typing import Any

from paramcount.declare import Data, ops, parts, sizes

TABLE = "ultrabert.embed_tokens.weight"
TYPICAL = sizes.full_every(3)


ROPES = {  # the reference's default of rope_parameters
    sizes.SLIDING[0]: {"rope_type": "default", "rope_theta": 10_000.0},
    sizes.SLIDING[1]: {"rope_type": "default", "rope_theta": 2_560_000.0},
}


def list_windows(js: sizes.ConfigJson) -> list[Any] | None:
    """The windows of older configs, one per layer; null or 0 for none."""
    windows = js.get("attention_windows")
    if windows is not None and not isinstance(windows, list):
        raise sizes.make_value_error(windows, "attention_windows", "a list")
    return windows


def name_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    windows = list_windows(js)
    return TYPICAL(js, c) if windows is None else tuple(sizes.SLIDING[not window] for window in windows)


def find_window(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
    """The tokens that a token sees on either side."""
    window = js.get("sliding_window", 128)
    return next((first for first in list_windows(js) or () if first), window)


def bases_of_layers(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """Rotary positions are stated for each kind of layers. Older configs list the base of every layer instead."""
    words, bases = set(c["layer_types"]), js.get("rope_theta")
    sizes.rotary_of_each_kind(js, c)
    if bases is not None and js.get("rope_scaling") is None and js.get("rope_parameters") is None:
        named = dict(zip(c["layer_types"], bases)) if isinstance(bases, list) else {}
        if set(named) != words:
            raise sizes.make_value_error(bases, "rope_theta", "a list of one per layer")


def rotary_by_layer(word: str) -> Any:
    """The setting of the rotary positions of a kind of layers, whose bases older configs list."""
    usual = sizes.rotary_of(word, ROPES, 32768, base=10_000.0)

    def read(js: sizes.ConfigJson, c: Any) -> Any:
        others = {key: value for key, value in js.items() if key != "rope_theta"}
        if (bases := js.get("rope_theta")) is not None and js.get("rope_parameters") is None:
            others["rope_parameters"] = {kind: {"rope_theta": base} for kind, base in zip(c.layer_types, bases)}
        return usual.default(others, c)

    return sizes.setting(default=read, kinds={"rope_theta": sizes.BASES._replace(takes_null=True)})


class UltraBert(parts.PositionlessEncoder):
    """Source: UltrabertDecoderLayer of the reference."""

    reference = "UltrabertForMaskedLM"
    task_heads = {
        "ForSequenceClassification": parts.TaskHead(parts.task_heads.classify_pooled_as_set, parts.LABELS),
        "ForTokenClassification": parts.TOKENS,
        "ForQuestionAnswering": parts.SPAN,
    }
    reference_names = {"ultrabert.": "model.", "cls.": "head.decoder."}
    rotated = "d_head"
    conditions = (
        sizes.padding_in_table(0),
        bases_of_layers,
        sizes.one_of("classifier_pooling", ("cls", "mean"), "cls"),
    )
    prefix = "ultrabert."
    layers_name = "layers"
    last_norm = "norm"

    n_kv_heads: sizes.Positive = sizes.hf(absent=sizes.equal_to("n_heads"), null=sizes.equal_to("n_heads"))
    d_head: sizes.Positive = sizes.hf(absent=sizes.d_model_per_head, null=sizes.d_model_per_head)
    layer_types: sizes.Words = sizes.hf(absent=name_layers, null=sizes.ABSENT)
    window: sizes.Natural = sizes.derived(find_window)
    d_prediction: sizes.Positive = sizes.hf("prediction_head_size")
    attention_bias: sizes.Flag = sizes.hf()
    mlp_bias: sizes.Flag = sizes.hf()
    tie_word_embeddings: sizes.Flag = sizes.hf()

    pooling = sizes.setting("classifier_pooling")
    norm_eps = sizes.setting("rms_norm_eps")
    rope = rotary_by_layer("full_attention")
    local_rope = rotary_by_layer("sliding_attention")

    def embed(c, tokens: Data, *reads: Data) -> Data:
        return c.look_up(tokens)

    def look_up(c, tokens: Data) -> Data:
        return ops.lookup(tokens, TABLE, "embedding", c.vocab_size, c.d_model)

    def to_first_layer(c, x: Data) -> Data:
        return x

    def kinds(c) -> list[tuple[Hashable, ops.Size]]:
        return [(word, 1) for word in c.layer_types]

    def layer_of(c, kind: str, x: Data, *memory: Data) -> Data:
        local = kind == sizes.SLIDING[0]
        prepare, mask = (
            parts.turn_by(c.local_rope if local else c.rope),
            ops.Window(c.window + 1, c.window) if local else None,
        )
        h = c.norm(x, "input_layernorm")
        x = x + parts.attentions.attention(
            c, h, "self_attn.", bias=c.attention_bias, prepare=prepare, mix=partial(ops.attend, mask=mask)
        )
        h = c.norm(x, "post_attention_layernorm")
        return x + parts.gated_mlp(h, "mlp.", "mlp", c.d_ff, activation=c.activation, bias=c.mlp_bias)

    norm = parts.use_rms_norm

    def head(c, x: Data) -> Data:
        return parts.head(c, c.transform(x, "head."), TABLE, "cls")

    def transform(c, x: Data, prefix: str) -> Data:
        """The MLP before the LM head."""
        h = ops.activate(ops.linear(x, prefix + "linear1", "other", c.d_prediction), "gelu_pytorch_tanh")
        return ops.activate(ops.linear(h, prefix + "linear2", "other", c.d_model), "gelu_pytorch_tanh")

    def check(c) -> None:
        sizes.check_divides(c, "n_heads", "d_model")
        sizes.check_layer_types(c, "layer_types", "n_layers", sizes.SLIDING)
