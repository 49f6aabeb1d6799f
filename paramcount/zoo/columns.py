"""The columns of a table of models: each with its unit, its meaning, its heading and how to compute it.

Every table with one row per model has these columns: comparisons, lists, `models` in SQL, exported files, `pc.zoo()`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from paramcount.counting.components import COMPONENTS
from paramcount.counting.count import Count
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, format_value
from paramcount.sizes import Sizes
from paramcount.sizes.layer_types import count_layers
from paramcount.zoo.model import Model

FieldType = Literal["integer", "number", "flag", "text", "date"]


class TableField(NamedTuple):
    """A column: its name, type, unit and meaning, and how to compute its value for one row."""

    name: str
    type: FieldType
    unit: str  # "" without a unit
    meaning: str
    compute: Callable[..., Any]  # of a table of models: (Model, Count or None) -> value
    heading: str = ""  # in tables for people; by default the name
    show: Callable[[Any], str] = format_value

    @property
    def column(self) -> Column:
        """The column in a table of results."""
        return Column(self.name, self.heading or self.name, self.type not in ("text", "date"), self.show)


def format_bytes_or_dash(value: int | None) -> str:
    """A number of bytes; a dash if it is unknown."""
    return "–" if value is None else format_bytes(value)


def format_signed_or_dash(value: int | None) -> str:
    """A difference with its sign; a dash if it is unknown.

    >>> format_signed_or_dash(1024), format_signed_or_dash(-1), format_signed_or_dash(None)
    ('+1,024', '−1', '–')
    """
    return "–" if value is None else f"{value:+,}".replace("-", "−")


# ---- how to compute


def read_count(name: str) -> Callable[[Model, Count | None], Any]:
    """A field of the count; None for a third-party estimate."""
    return lambda model, count: None if count is None else getattr(count, name)


def read_component(name: str) -> Callable[[Model, Count | None], Any]:
    """A component of the count; None for a third-party estimate."""
    return lambda model, count: None if count is None else count.components[name]


def read_size(name: str) -> Callable[[Model, Count | None], int | None]:
    """A size, in a multimodal model that of the language model, in an encoder-decoder that of the decoder.

    0 if the model has no such size, None if it differs between layers, is not set or is unpublished.
    """

    def compute(model: Model, count: Count | None) -> int | None:
        size = get_language_size(model.config, name) if model.config is not None else None
        return size if type(size) is int else None

    return compute


LANGUAGE_PARTS = ("language", "text", "decoder", "vlm")  # of a multimodal model, an encoder-decoder or a robot's policy
DECODER_SIZES = {"n_heads": "n_decoder_heads", "d_ff": "d_decoder_ff"}


def get_language_size(sizes: Sizes, name: str) -> object:
    """A size of the model, of its decoder or of its language model; 0 if there is none."""
    if name == "n_layers" and (n := count_layers(sizes)):
        return n
    for field in (name, DECODER_SIZES.get(name, "")):
        if field in type(sizes).fields:
            return getattr(sizes, field)
    for section in LANGUAGE_PARTS:
        if isinstance(language := getattr(sizes, section, None), Sizes):
            return get_language_size(language, name)
    return 0


def read_kv_heads(model: Model, count: Count | None) -> int | None:
    """The KV heads; as many as attention heads if the architecture does not distinguish them."""
    return read_size("n_heads")(model, count) if (n := read_size("n_kv_heads")(model, count)) == 0 else n


def read_head_size(model: Model, count: Count | None) -> int | None:
    """The head dimension; of MLA, that of queries and keys."""
    if (size := read_size("d_head")(model, count)) != 0:
        return size
    parts = (read_size(name)(model, count) for name in ("d_nope", "d_rope"))
    return sum(part or 0 for part in parts)


def read_fact(name: str) -> Callable[[Model, Count | None], Any]:
    """A fact that does not depend on the count."""
    return lambda model, count: getattr(model, name)


def read_verified(model: Model, count: Count | None) -> bool | None:
    """Whether the count was checked; None for a config.json and for changed sizes, which nothing was checked for."""
    if model.estimate:
        return False
    has_no_reference = bool(model.reading.origin) or model.original is not None
    return None if has_no_reference else not isinstance(model.checked, str)


def read_claimed_total(model: Model, count: Count | None) -> str | None:
    """The totals of a third-party estimate, as printed in their sources."""
    totals = [f"{claim.value} ({claim.by})" for claim in model.claims if claim.what == "total"]
    return "; ".join(totals) or None


def read_aliases(model: Model, count: Count | None) -> str:
    """The aliases as JSON."""
    return json.dumps(model.aliases, ensure_ascii=False)


def read_change(name: str) -> Callable[[Model, Count | None], Any]:
    """A count before the sizes were changed, or how much it grew; None if no size was changed."""

    def compute(model: Model, count: Count | None) -> Any:
        if model.original is None or count is None:
            return None
        from paramcount.zoo.what_if import changes_to_dict  # only if sizes were changed

        changes = changes_to_dict(model)
        if name in changes:
            return changes[name]
        if name == "difference":
            return count.total - changes["original_total"]
        return count.active - changes["original_active"]

    return compute


# ---- the columns

PARAMETERS = "parameters"
COMPONENT_MEANINGS = {
    "embedding": "Token embedding.",
    "other_embedding": "Other tables indexed by token, segment or n-gram.",
    "position": "Learned positions and relative position biases.",
    "qkv": "Query, key and value projections, with their biases.",
    "output_projection": "Output projection of attention.",
    "mlp": "Dense MLPs.",
    "router": "Routers of the experts, and gates of shared experts.",
    "experts": "Routed experts.",
    "shared_experts": "Experts that every token uses.",
    "mixer": "State-space, linear-attention and other mixers.",
    "norm": "Norms of every kind.",
    "lm_head": "The LM head's own parameters; a tied matrix adds 0.",
    "other": "Everything else in the total.",
    "vision": "Vision encoder.",
    "audio": "Audio encoder.",
    "projector": "Projector between an encoder and the language model.",
}


def declare_count(name: str, meaning: str, unit: str = PARAMETERS, **more: Any) -> TableField:
    return TableField(name, "integer", unit, meaning, read_count(name), **more)


def declare_size(name: str, unit: str, meaning: str, **more: Any) -> TableField:
    return TableField(name, "integer", unit, meaning, more.pop("compute", read_size(name)), **more)


def declare_fact(name: str, meaning: str, type: FieldType = "text", **more: Any) -> TableField:
    return TableField(name, type, more.pop("unit", ""), meaning, more.pop("compute", read_fact(name)), **more)


FIELDS = (
    declare_fact("id", "Identifier of the model.", heading="model"),
    declare_count("total", "Every parameter, each tensor once; tied tensors once."),
    declare_count("active", "Total minus the routed experts that one token does not use; the maximum if it varies."),
    declare_count(
        "non_embedding",
        "Total minus embedding, other_embedding, position and lm_head.",
        heading="non-emb.",
    ),
    declare_count(
        "active_non_embedding",
        "Active minus embedding, other_embedding, position and lm_head.",
        heading="act. non-emb.",
    ),
    declare_count("language_model", "Total minus vision, audio and projector."),
    declare_count(
        "reference_total",
        "Total of the reference implementation; differs only if the released files hold tensors that it ties.",
        heading="reference",
    ),
    *(
        TableField(name, "integer", PARAMETERS, COMPONENT_MEANINGS[name], read_component(name), heading)
        for name, heading in (
            (name, {"output_projection": "out proj.", "shared_experts": "shared"}.get(name, "")) for name in COMPONENTS
        )
    ),
    declare_count("buffers", "Values that are stored but not learned; not in the total.", "values"),
    declare_count("mtp", "Multi-token-prediction layers of the release, null if unknown; not in the total."),
    declare_count("bytes_fp32", "Weights at 4 bytes each.", "bytes", heading="FP32", show=format_bytes_or_dash),
    declare_count("bytes_bf16", "Weights at 2 bytes each.", "bytes", heading="BF16", show=format_bytes_or_dash),
    declare_size("n_layers", "layers", "Layers of the decoder, or of the only stack.", heading="layers"),
    declare_size("d_model", "values", "Hidden size."),
    declare_size("n_heads", "heads", "Attention heads.", heading="heads"),
    declare_size("n_kv_heads", "heads", "KV heads.", heading="KV heads", compute=read_kv_heads),
    declare_size("d_head", "values", "Head dimension; of MLA, that of queries and keys.", compute=read_head_size),
    declare_size("d_ff", "values", "MLP hidden size."),
    declare_size("n_routed_experts", "experts", "Routed experts per layer.", heading="routed exp."),
    declare_size("n_active_experts", "experts", "Experts per token and layer.", heading="active exp."),
    declare_size("n_shared_experts", "experts", "Shared experts per layer.", heading="shared exp."),
    declare_size("d_expert", "values", "Hidden size of one expert."),
    declare_size("d_shared_expert", "values", "Hidden size of the shared experts, if it is a size of its own."),
    declare_size("vocab_size", "tokens", "Vocabulary size: rows of the token embedding.", heading="vocab"),
    declare_fact(
        "context_length", "Longest context that the model takes.", "integer", unit="tokens", heading="context"
    ),
    declare_fact(
        "tied", "Whether the LM head shares the token embedding's matrix.", "flag", compute=read_count("tied")
    ),
    declare_fact("name", "Name of the model."),
    declare_fact("family", "Family of the model in the zoo."),
    declare_fact("publisher", "Organisation that released the model."),
    declare_fact("released", "Release date.", "date", compute=lambda model, _: model.released and str(model.released)),
    declare_fact("hf", "Hugging Face id."),
    declare_fact("architecture", "Architecture that paramcount counts it by."),
    declare_fact("verified", "Whether reference_total was checked.", "flag", compute=read_verified),
    declare_fact("estimate", "Whether only third-party estimates are known; such a model has no counts.", "flag"),
    declare_fact("claimed_total", "Third-party estimates of the total, as printed.", compute=read_claimed_total),
)
# In the database and on request, but not in comparisons
FURTHER_FIELDS = (
    declare_fact("aliases", "Other names, as a JSON list.", compute=read_aliases),
    declare_fact("own", "Whether the user added the entry.", "flag", compute=read_fact("is_own")),
)
# If any size was changed
CHANGE_FIELDS = tuple(
    TableField(name, "integer", PARAMETERS, meaning, read_change(name), heading, show)
    for name, meaning, heading, show in (
        ("original_total", "Total before the change.", "", format_value),
        ("original_active", "Active parameters before the change.", "", format_value),
        ("difference", "Change of the total.", "", format_signed_or_dash),
        ("active_difference", "Change of the active parameters.", "act. difference", format_signed_or_dash),
    )
)
HEADINGS = {field.name: field.heading for field in (*FIELDS, *CHANGE_FIELDS) if field.heading}
