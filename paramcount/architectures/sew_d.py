"""SEW-D: SEW with the layers of DeBERTa v2, whose attention knows distances."""

from collections.abc import Mapping
from typing import Any, ClassVar

from paramcount.architectures.deberta import position_terms, read_integer
from paramcount.architectures.deberta_v2 import DebertaV2, farthest_bucket, norms_distances, rows_of_distances
from paramcount.architectures.sew import Sew
from paramcount.declare import Data, ops, parts, sizes

PREFIX = "sew_d."
# What missing keys mean here, and not in DeBERTa v2.
DEFAULTS = {"position_buckets": 256, "pos_att_type": ("p2c", "c2p"), "norm_rel_ebd": "layer_norm"}


def with_defaults(derivation: sizes.Derivation) -> sizes.Derivation:
    def derive(js: sizes.ConfigJson, c: sizes.FieldValues) -> Any:
        return derivation({**js, **{key: js.get(key, value) for key, value in DEFAULTS.items()}}, c)

    return derive


def no_convolution(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference cannot build the convolution that DeBERTa v2 may have beside its first layer."""
    if (width := read_integer(js, "conv_kernel_size", 0)) > 0:
        raise sizes.make_value_error(width, "conv_kernel_size", "0")


def find_farthest(js: Mapping[str, Any], c: Any) -> int:
    buckets = js.get("position_buckets", DEFAULTS["position_buckets"])
    return farthest_bucket({**js, "position_buckets": buckets}, c)


class SewD(Sew, DebertaV2):
    """Source: arXiv:2109.06870, section 4; modeling_sew_d.py of the reference."""

    reference = "SEWDForCTC"
    model_types = ("sew-d",)
    base_model = "SEWDModel"
    task_head_prefix = "SEWD"
    task_heads = parts.SOUND
    prefix = PREFIX
    conditions = (parts.KNOWN_NORMS, no_convolution)

    d_embedding = sizes.constant(None)
    n_token_types = d_conv = sizes.constant(0)
    d_conv_group = sizes.constant(1)
    embeddings_projected = positions_added = has_segments = sizes.constant(value=False)
    legacy_head = tie_word_embeddings = has_conv = sizes.constant(value=False)
    d_head: sizes.Positive = sizes.hf("attention_head_size", absent=sizes.d_model_per_head)
    position_terms: sizes.Words = sizes.derived(with_defaults(position_terms))
    n_distances: sizes.Positive = sizes.derived(with_defaults(rows_of_distances))
    distances_normed: sizes.Flag = sizes.derived(with_defaults(norms_distances))
    share_position_matrices: sizes.Flag = sizes.hf("share_att_key")
    layers_path = PREFIX + "encoder.encoder.layer.{layer}."

    feature_eps: ClassVar = sizes.setting("feature_layer_norm_eps")
    farthest = sizes.setting(default=find_farthest)
    pooler_activation = None

    def norm_features(c, x: Data) -> Data:
        return ops.layer_norm(x, "layer_norm", c.feature_eps)

    def begin(c, x: Data) -> Data:
        return x

    def run_layers(c, x: Data) -> Data:
        name, body = "encoder.layer.{layer}.", [("layer", c.n_layers)]
        return ops.layers(x, name, body, lambda kind, *x: DebertaV2.layer(c, *x), reads=c.share(x))

    def share(c, tokens: Data, *reads: Data) -> tuple[Data, ...]:
        return DebertaV2.share(c, tokens, *reads)

    def attend(c, x: Data, *reads: Data) -> Data:
        return DebertaV2.attend(c, x, *reads)

    def distances(c) -> Data:
        vectors = ops.learned_rows("encoder.rel_embeddings.weight", "position", c.n_distances, c.d_model)
        return c.norm(vectors, "encoder.LayerNorm") if c.distances_normed else vectors

    def unreachable(c: Any, tokens: Data) -> tuple[ops.Unreachable, ...]:
        """The vectors of distances and their norm, each where nothing reads it."""
        if c.reads_distances or not (c.relative_attention or c.distances_normed):
            return ()

        def build(x: Data) -> Data:
            return c.distances() if c.relative_attention else c.norm(x, "encoder.LayerNorm")

        x = ops.block(ops.given("vectors", "frames", c.d_model), PREFIX + "encoder.", build, part="encoder")
        return (ops.Unreachable(x, "no term of the scores reads the vectors of distances"),)

    def check(c) -> None:
        Sew.check(c)
