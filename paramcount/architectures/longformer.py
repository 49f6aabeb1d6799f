"""Longformer: RoBERTa for long texts, whose tokens attend to a window around them.

Global tokens attend to all and are seen by all, with queries, keys and values of their own.
"""

from collections.abc import Hashable
from itertools import groupby
from typing import Any

from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

QKV = ("query", "key", "value")


@sizes.options_first
def read_windows(js: sizes.ConfigJson, c: sizes.FieldValues, key: str, limit: str) -> tuple[int, ...]:
    """The tokens that each layer's window has on either side, half of the key's value."""
    windows = js.get(key, 512)
    if type(windows) is int:
        windows = [windows] * len(sizes.per_layer({"n_layers": c[limit]}))
    for window in windows:
        if type(window) is not int or window < 4 or window % 2:
            raise sizes.make_value_error(window, key, "even integers of at least 4")
    return tuple(window // 2 for window in windows)


@sizes.options_first
def windows_fill_the_text(js: sizes.ConfigJson, c: sizes.FieldValues, key: str) -> None:
    """Texts are padded to a multiple of the largest window, which the others divide."""
    for window in c["windows"]:
        if max(c["windows"]) % window:
            found = f"contains {2 * window}, which does not divide {2 * max(c['windows'])}"
            raise ParamcountError(found, where=key, expected="divisors of the largest window")


def check_windows(c: Any, limit: str) -> None:
    if len(c.windows) != getattr(c, limit):
        found = f"has {len(c.windows)} entries for " + FieldName(limit) + f" = {getattr(c, limit)}"
        raise ParamcountError(found, where=FieldName("windows"), expected="one per layer")


def attend_nearby(c: Any, x: Data, marks: Data, window: ops.Size, prefix: str) -> Data:
    """A global token attends to all tokens; the others attend to those near them and to global ones. [n, heads, d]."""
    heads = (c.n_heads, c.d_head)
    q, k, v = (ops.linear(x, prefix + name, f"qkv.{name[0]}", heads, bias=True) for name in QKV)
    near = ops.attend(q, k, v, mask=ops.Window(window + 1, window) | ops.GlobalTokens(marks))
    q, k, v = (ops.linear(x, f"{prefix}{name}_global", f"qkv.{name[0]}", heads, bias=True) for name in QKV)
    return ops.select(marks, near, ops.attend(q, k, v))


class Longformer(parts.LikeRoberta, parts.MaskedEncoder):
    """Source: arXiv:2004.05150, section 3; LongformerSelfAttention of the reference."""

    reference = "LongformerForMaskedLM"
    task_heads = "ROBERTA"
    conditions = (*parts.LikeRoberta.conditions, windows_fill_the_text("attention_window"))
    prefix = "longformer."

    n_token_types: sizes.Positive = sizes.hf()
    n_layers: sizes.Positive = sizes.hf()  # the reference needs one
    windows: sizes.Widths = sizes.derived(read_windows("attention_window", "n_layers"))
    pooled: sizes.Flag = sizes.derived(sizes.class_ends("Model", "ForMultipleChoice"))
    tie_word_embeddings: sizes.Flag = sizes.hf()

    def inputs(c) -> dict[str, int | ops.Unknown | None]:
        return {"segments": 0, "global tokens": 0}

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        return (reads[1],)

    def kinds(c) -> list[tuple[Hashable, ops.Size]]:
        return [(window, len(tuple(run))) for window, run in groupby(c.windows)]

    def layer_of(c, kind: Any, x: Data, *memory: Data) -> Data:
        a = attend_nearby(c, x, memory[0], kind, "attention.self.")
        a = ops.linear(a, "attention.output.dense", "output_projection", c.d_model, bias=True)
        x = c.norm(x + a, "attention.output.LayerNorm")
        return c.norm(x + parts.bert_mlp(c, x), "output.LayerNorm")

    def check(c) -> None:
        super().check()
        check_windows(c, "n_layers")
