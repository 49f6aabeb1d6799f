"""A model that drafts tokens for another one to verify: what it stores and caches."""

from __future__ import annotations

from typing import NamedTuple

from paramcount.costs.caches import list_cache_groups, list_layer_caches
from paramcount.costs.deployment import DraftModel
from paramcount.costs.engines.engine import Engine
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.requests import find_longest_context
from paramcount.costs.sharding import StoredRows, find_shape
from paramcount.costs.weight_formats import store_model
from paramcount.errors import ParamcountError, describe_value
from paramcount.formats.quantization_config import WeightDtype
from paramcount.zoo import Model, count_model


class DraftCost(NamedTuple):
    """A model that drafts tokens, whole: its cache is that of as many tokens and sequences."""

    id: str
    parameters: int
    dtype: str
    weights_bytes: int  # without MTP layers, buffers included
    cache_bytes: int  # and state

    @property
    def total_bytes(self) -> int:
        return self.weights_bytes + self.cache_bytes


def prepare_draft(draft: Model, model: Model, format: WeightDtype, rules: Engine, request: CacheRequest) -> DraftModel:
    """Raises: ParamcountError if the model's own MTP layers draft already, and for a draft that states no cache."""
    if not rules.takes_drafts:
        raise ParamcountError(f"= {describe_value(rules.name)}, which takes no draft model", where="engine")
    if rules.loads_mtp(request):
        raise ParamcountError("cannot be combined with a draft model", where="speculative_method")
    check_draft(draft, model)
    rows, shape = store_model(draft, format, {}), find_shape(count_model(draft).sizes)
    shared = () if rules.reads_gguf else draft.sizes.shared_with_target  # engines load what is the target's once
    rows = StoredRows(row for row in rows if row.tensor.name not in shared)
    return DraftModel(draft, rows, list_layer_caches(draft), shape, find_longest_context(draft), format.label)


def check_draft(draft: Model, model: Model) -> None:
    """Raises: ParamcountError if a draft head reads hidden states of another size than those of its target."""
    states, sizes = getattr(model.sizes, "d_model", None), draft.sizes
    expected = getattr(sizes, "d_target", getattr(sizes, "d_model", None)) if sizes.is_draft else states
    if states is not None and expected != states:
        found = f"{draft.id} reads hidden states of {expected:,} values, but those of {model.id} have {states:,}"
        raise ParamcountError(found, where="draft", expected="a draft head for this model")


def describe_draft(draft: DraftModel, rules: Engine, request: CacheRequest) -> DraftCost:
    weights = sum(row.bytes for row in draft.rows if row.tensor.kind != "mtp")
    cache = rules.allocate(list_cache_groups(draft.model), request).total_bytes
    return DraftCost(draft.model.id, count_model(draft.model).total, draft.label, weights, cache)
