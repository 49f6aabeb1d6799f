"""DeBERTa v2 and v3: distances on a log scale, whose vectors may go through the layer's own matrices.

The first layer may have a convolution beside it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.deberta import TO_CONTENT, TO_POSITION, Deberta, farthest_position, read_integer
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import ParamcountError, make_choice_error

LAYERS = "deberta.encoder.layer.{layer}."
NORM = "deberta.encoder.LayerNorm"  # of the vectors of distances


def rows_of_distances(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """Two for every distance, or for every bucket of distances."""
    buckets = read_integer(js, "position_buckets", -1)
    return 2 * (buckets if buckets > 0 else farthest_position(js, c))


def farthest_bucket(js: Mapping[str, Any], c: Any) -> int:
    """The distance that the log scale ends with; 0: rows are on no log scale."""
    if js.get("position_buckets", -1) < 1:
        return 0
    value = js.get("max_relative_positions", -1)
    return int(c.n_positions if value < 1 else value)


def norms_distances(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    words = js.get("norm_rel_ebd", "none")
    if not isinstance(words, str):
        raise sizes.make_value_error(words, "norm_rel_ebd", "layer_norm or none")
    return "layer_norm" in [word.strip() for word in words.lower().split("|")]


def group_of_convolution(js: sizes.ConfigJson, c: sizes.FieldValues) -> int:
    """The channels of a group of the convolution behind the first layer."""
    groups = read_integer(js, "conv_groups", 1) if c["d_conv"] else 1
    if groups < 1 or c["d_model"] % groups:
        raise ParamcountError(f"= {groups}", where="conv_groups", expected=f"a divisor of {c['d_model']}")
    return int(c["d_model"] // groups)


def activation_behind_convolution(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    name = js.get("conv_act", "tanh")
    if c["d_conv"] and name not in sizes.ACTIVATIONS:
        raise make_choice_error(name, sizes.ACTIVATIONS, where="conv_act")


class DebertaV2(Deberta):
    """Source: arXiv:2111.09543, section 2; DebertaV2Layer of the reference."""

    reference = "DebertaV2ForMaskedLM"
    model_types = ("deberta-v2",)
    task_heads = parts.DEBERTA | {
        "ForMultipleChoice": parts.TaskHead(
            parts.through("pooler.dense", "classifier", 1, by="pooler_activation"), {}, (parts.pooler_fits,)
        )
    }
    conditions = (sizes.padding_in_table(0), activation_behind_convolution)

    n_layers: sizes.Positive = sizes.hf()  # the reference needs one
    d_head: sizes.Positive = sizes.hf("attention_head_size", absent=sizes.d_model_per_head)
    n_distances: sizes.Positive = sizes.derived(rows_of_distances)
    distances_normed: sizes.Flag = sizes.derived(norms_distances)
    share_position_matrices: sizes.Flag = sizes.hf("share_att_key", absent=False, null=False)
    d_conv: sizes.Natural = sizes.hf("conv_kernel_size", absent=0)
    has_conv: sizes.Flag = sizes.derived(lambda js, c: c["d_conv"] > 0)
    d_conv_group: sizes.Positive = sizes.derived(group_of_convolution)

    layers_path: ClassVar[str] = LAYERS

    conv_activation = sizes.setting(
        "conv_act", default="tanh", kind=sizes.WORD
    )  # the sizes check it if there is a convolution
    farthest = sizes.setting(default=farthest_bucket)

    def distances(c) -> Data:
        vectors = super().distances()
        return c.norm(vectors, NORM) if c.distances_normed else vectors

    def encode(c, x: Data, *reads: Data) -> Data:
        if not c.has_conv:
            return super().encode(x, *reads)
        y = ops.layers(x, LAYERS, [("layer", 1)], c.layer_of, reads=reads)
        h = ops.convolve_tokens(x, "deberta.encoder.conv.conv", c.d_model, c.d_conv, group=c.d_conv_group)
        y = c.norm(y + ops.activate(h, c.conv_activation), "deberta.encoder.conv.LayerNorm")
        return ops.layers(y, LAYERS, [("layer", c.n_layers - 1)], c.layer_of, reads=reads, first=1)

    def n_terms(c) -> int:
        return sum(term in c.position_terms for term in (TO_POSITION, TO_CONTENT))

    def project_tokens(c, x: Data) -> tuple[Data, Data, Data]:
        heads, name = (c.n_heads, c.d_head), "attention.self.{}_proj"
        q = ops.linear(x, name.format("query"), "qkv.q", heads, bias=True)
        k = ops.linear(x, name.format("key"), "qkv.k", heads, bias=True)
        return q, k, ops.linear(x, name.format("value"), "qkv.v", heads, bias=True)

    def project_distances(c, vectors: Data, word: str) -> Data:
        """The vectors of distances to keys, or to queries."""
        heads, component = (c.n_heads, c.d_head), f"qkv.{word[0]}"
        if not c.share_position_matrices:
            return ops.linear(vectors, f"attention.self.pos_{word}_proj", component, heads, bias=True)
        prefix = "attention.self."
        return ops.tie_weights(
            ops.block(vectors, prefix, lambda x: ops.linear(x, f"{word}_proj", component, heads, bias=True)),
            c.layers_path + prefix,
        )

    def unreachable(c, tokens: Data) -> tuple[ops.Unreachable, ...]:
        found = super().unreachable(tokens)
        if c.distances_normed and not c.relative_attention:
            norm = c.norm(ops.given("vectors", "tokens", c.d_model), NORM)
            return (*found, ops.Unreachable(norm, "there are no vectors of distances to norm"))
        return found

    def check(c) -> None:
        super().check()
        sizes.check_flag(c, "has_conv", "d_conv")
        if c.d_conv and not c.d_conv % 2:
            raise ParamcountError(f"= {c.d_conv} is even", where="conv_kernel_size", expected="an odd number, or 0")
