"""The guides of `paramcount docs` that teach what a model consists of."""

from __future__ import annotations

from paramcount.counting.count import Count
from paramcount.errors import join_words
from paramcount.zoo import Model
from paramcount.zoo.columns import get_language_size
from paramcount.zoo.model import is_quantised


def list_guides(model: Model, count: Count) -> dict[str, str]:
    """{topic: what the model has of it}, for the guides that apply to it."""
    guides: dict[str, str] = {}
    if attention := name_attention(model):
        guides["attention"] = attention
        if count.parts.get("decoder"):
            guides["kv-cache"] = "memory per token"
    if count.active != count.total:
        guides["moe"] = "mixture of experts"
    if any(key.startswith("rope_") for key in model.stated or {}):
        guides["rope"] = "rotary positions"
    if is_quantised(model):
        guides["precision"] = "quantised weights"
    return guides


def name_attention(model: Model) -> str:
    """The kind of attention of the language model; "" if it has none, or differs between layers."""
    heads, kv_heads, latent = (get_language_size(model.sizes, name) for name in ("n_heads", "n_kv_heads", "d_kv_lora"))
    if latent:
        return "multi-head latent attention"
    if type(heads) is not int or type(kv_heads) is not int or not heads:
        return "attention" if heads else ""
    if kv_heads in (0, heads):
        return "multi-head attention"
    return "multi-query attention" if kv_heads == 1 else "grouped-query attention"


def describe_guides(guides: dict[str, str]) -> str:
    """One sentence with the commands that show the guides; "" without any.

    >>> describe_guides({"attention": "multi-query attention"})
    'to read more, run `paramcount docs attention` (multi-query attention)'
    """
    commands = [f"`paramcount docs {topic}` ({what})" for topic, what in guides.items()]
    return f"to read more, run {join_words(commands)}" if commands else ""
