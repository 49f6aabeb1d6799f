"""Whether an engine runs a model: with an implementation of its class, or with that of transformers, which it can wrap.

Source: vLLM 0.33.0, model_executor/models/registry.py (inspect_model_cls, _normalize_arch, _try_resolve_transformers),
config/model.py (_SUFFIX_TO_DEFAULTS) and docs/models/supported_models.md (what the Transformers backend works for);
SGLang 0.5.23, srt/model_loader/utils.py (get_model_architecture, resolve_transformers_arch).
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from functools import cache
from pathlib import Path

from paramcount.architectures.classes import list_equivalent_classes
from paramcount.costs.caches import CacheGroup
from paramcount.costs.engines.records import Support
from paramcount.zoo import Model

# vLLM tries the base model of a class with another of these endings, in this order.
ENDINGS = (
    "ForCausalLM", "ForConditionalGeneration", "ChatModel", "LMHeadModel", "ForTextEncoding", "EmbeddingModel",
    "ForSequenceClassification", "ForTokenClassification", "ForAudioClassification", "ForImageClassification",
    "ForVideoClassification", "ClassificationModel", "ForRewardModeling", "RewardModel", "Model",
)  # fmt: skip
VLLM, SGLANG = "vLLM 0.33.0", "SGLang 0.5.23"


@cache
def read_classes(kind: str) -> frozenset[str]:
    """The classes that an engine implements, and those of transformers that it may wrap because they take an
    implementation of attention, or because their code looks one up by its name. `sglang_windows`: those whose sliding
    windows have a pool of their own in SGLang; all others keep every token in all layers."""
    lists = json.loads(Path(__file__).with_name("classes.json").read_text(encoding="utf-8"))
    return frozenset(lists[kind])


def find_vllm_support(model: Model, groups: Sequence[CacheGroup], minor: int) -> Support:
    """`minor`: the minor version of vLLM that is asked for."""
    names, own = list_names(model), read_classes("vllm")
    if any(name in own or vary(name) & own for name in names):
        return Support()
    until = dict(word.split("<=") for word in read_classes("vllm_until"))
    last = next((until[name] for name in names if name in until), "")
    if last and minor <= int(last.split(".")[1]):
        return Support()
    found = wrap(VLLM, names[0], model, groups, read_classes("takes_attention") | read_classes("sets_attention"))
    return (
        found if found.is_supported or not last else Support(False, f"{found.note}; vLLM {last} was the last with it")
    )


def find_sglang_support(model: Model, groups: Sequence[CacheGroup]) -> Support:
    names = list_names(model)
    if any(name in read_classes("sglang") for name in names):
        return Support()
    return wrap(SGLANG, names[0], model, groups, read_classes("takes_attention"))


def list_names(model: Model) -> tuple[str, ...]:
    """The classes that the config.json of a model names, by which engines go; if it names none, as an entry of the zoo
    does not, all names of its architecture's class."""
    named = (model.reading.document or {}).get("architectures")
    if isinstance(named, list) and named and all(isinstance(name, str) for name in named):
        return tuple(named)
    reference, known = model.reading.reference, list_equivalent_classes(type(model.sizes))
    return (reference, *(known if reference in known else ()), *SPELLINGS.get(reference, ()))


def vary(name: str) -> set[str]:
    """The classes that vLLM takes for the base of another one."""
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), None)
    return {name.removesuffix(ending) + other for other in ENDINGS} if ending else set()


def wrap(engine: str, name: str, model: Model, groups: Sequence[CacheGroup], classes: Set[str]) -> Support:
    """Whether the Transformers backend of an engine runs a class. `classes`: those that it can wrap."""
    missing = f"{engine} has no implementation of {name}"
    if " of " in type(model.sizes).reference:
        return Support(False, f"{missing}, nor has transformers")
    if any(group.reads_source for group in groups) or name not in classes:
        return Support(False, f"{missing}, and its Transformers backend does not take it")
    if any(group.is_state for group in groups):
        return Support(False, f"{missing}, and its Transformers backend does not take recurrent layers")
    return Support(note=f"{missing} and runs that of transformers (Transformers backend)")


# {class of the reference: what released files call it}
SPELLINGS = {"PhimoeForCausalLM": ("PhiMoEForCausalLM",)}
