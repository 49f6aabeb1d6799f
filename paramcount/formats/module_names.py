"""The modules that the lists of a quantization_config name: by name, ending, wildcard or regular expression.

A release may wrap a model in others ("model.language_model.layers.0" or "language_model.model.layers.0") and name
matrices as an engine fuses them ("qkv_proj" for "q_proj"), so names are compared without wrappers and in both forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase, translate
from functools import lru_cache

from paramcount.formats.patterns import compile_pattern

WRAPPERS = ("model", "language_model", "backbone", "thinker")
EXPRESSION = "re:"  # marks a regular expression
# {matrix that engines fuse: its parts in checkpoints}. Source: packed_modules_mapping of vLLM 0.33.0's models.
FUSED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "in_proj_qkvz": ("in_proj_qkv", "in_proj_z"),
    "in_proj_ba": ("in_proj_b", "in_proj_a"),
    "fused_qkv_a_proj": ("q_a_proj", "kv_a_proj_with_mqa"),
}
FUSION = {part: whole for whole, parts in FUSED.items() for part in parts}


class ModuleNames:
    """Names of modules, each of which stands for all modules inside it, and patterns with `*`.

    Source: is_layer_excluded of vLLM 0.33.0, model_executor/layers/quantization/modelopt.py.

    >>> names = ModuleNames(["lm_head", "model.layers.1.self_attn*", "*.mlp.shared_expert.*", "layers.3.mlp.qkv_proj"])
    >>> "model.language_model.layers.1.self_attn.q_proj" in names, "model.layers.10.self_attn.q_proj" in names
    (True, False)
    >>> "language_model.lm_head" in names, "model.layers.3.mlp.k_proj" in names
    (True, True)
    """

    def __init__(self, names: Iterable[str]) -> None:
        plain: list[str] = []
        patterns: list[str] = []
        for name in map(strip_wrappers, names):
            (patterns if "*" in name else plain).append(name)
        self.names = frozenset(plain)
        self.starts = tuple(name[:-1] for name in patterns if "*" not in name[:-1])
        self.others = tuple(name for name in patterns if "*" in name[:-1])
        self.pattern = re.compile("|".join(map(translate, self.others))) if self.others else None

    def __contains__(self, module: str) -> bool:
        return any(self.has(variant) for variant in list_variants(strip_wrappers(module)))

    def __bool__(self) -> bool:
        return bool(self.names or self.starts or self.pattern)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModuleNames) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> tuple[object, ...]:
        return self.names, self.starts, self.others

    def has(self, module: str) -> bool:
        """Whether a module is listed under this name."""
        words = module.split(".")
        if any(".".join(words[:i]) in self.names for i in range(1, len(words) + 1)):
            return True
        if module.startswith(self.starts):
            return True
        return self.pattern is not None and self.pattern.match(module) is not None


def strip_wrappers(name: str) -> str:
    """The name without the models that wrap its module.

    >>> strip_wrappers("model.language_model.layers.0.mlp"), strip_wrappers("language_model.lm_head")
    ('layers.0.mlp', 'lm_head')
    """
    first, dot, rest = name.partition(".")
    while dot and first in WRAPPERS:
        name = rest
        first, dot, rest = name.partition(".")
    return name


def list_variants(module: str) -> Iterator[str]:
    """The names of a module: its own, that of the matrix that engines fuse it into, and of one that it consists of."""
    yield module
    before, dot, last = module.rpartition(".")
    for other in (FUSION.get(last), FUSED.get(last, (None,))[0]):
        if other is not None:
            yield f"{before}{dot}{other}"


def is_excluded(module: str, excluded: tuple[str, ...], names: frozenset[str]) -> bool:
    """Whether a module is excluded from quantisation, by its name, its ending or an enclosing module.

    `names`: `excluded` as a set. Source: should_convert_module of the reference; its regular expressions are read as
    plain names with `*`.
    """
    if not excluded:
        return False
    words = module.split(".")
    if module.endswith(excluded) or any(".".join(words[:i]) in names for i in range(1, len(words))):
        return True
    return any(fnmatchcase(module, name) or fnmatchcase(module, f"{name}.*") for name in excluded if "*" in name)


def is_matched(module: str, patterns: tuple[str, ...]) -> bool:
    """Whether compressed-tensors matches a linear layer by its name, its class or a regular expression.

    Source: compressed_tensors 0.20, utils/match.py, is_match.
    """
    names, expressions = split_patterns(patterns)
    if "Linear" in names:
        return True
    stripped = strip_wrappers(module)
    if any(variant in names for variant in list_variants(stripped)):
        return True
    spellings = dict.fromkeys((module, stripped, f"model.{stripped}", f"language_model.model.{stripped}"))
    return any(compile_pattern(text).match(name) for text in expressions for name in spellings)


@lru_cache(maxsize=64)
def split_patterns(patterns: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """(names without wrappers, regular expressions)."""
    names = frozenset(strip_wrappers(text) for text in patterns if not text.startswith(EXPRESSION))
    return names, tuple(text[len(EXPRESSION) :] for text in patterns if text.startswith(EXPRESSION))
