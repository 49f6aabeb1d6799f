"""Logits of the declared flow and of the reference for configs with random changes: sizes, flags and settings, some of
them absent, null, equal by accident or under another name.

`python -m tests.oracle.random_logits [TYPE ...] [--configs N] [--seed S] [--results FILE]` prints a line for each model
type, and the changes that make a difference. With a file, it appends to it and leaves out the types that are in it.
"""

from __future__ import annotations

import argparse
import math
import random
import warnings
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from paramcount.api import load
from paramcount.counting.count import count_sizes
from paramcount.errors import ParamcountError
from tests import model_types
from tests.oracle import differential, images, logits, passes, remote
from tests.oracle.renamed import STAND_INS

LARGEST = 2_000_000  # parameters
MOST_DRAWN = 12  # configs for each that both run
ABSENT = "absent"
ACTIVATIONS = ["gelu", "relu", "silu", "gelu_new", "tanh", "quick_gelu", "gelu_pytorch_tanh", "relu2"]
LENGTHS = ("window", "chunk", "block", "extent", "topk", "ratio", "rate", "kernel", "dilation", "context")
FIXED = (
    "vocab", "_id", "_ids", "_index", "model_type", "architectures", "seq_len", "max_position", "n_positions",
    "torch_dtype", "dtype", "use_cache", "return_dict", "output_", "is_encoder_decoder", "num_labels", "initializer",
    "image_size", "img_size",
    "dropout", "tie_", "rope_", "transformers_version", "problem_type", "is_causal", "use_bidirectional_attention",
)  # fmt: skip
HEADS = ("head_dim", "d_kv", "kv_channels", "attention_head_size", "dim_head")


class Change(NamedTuple):
    """A key of a section, "" for the top level, and its new value."""

    section: str
    key: str
    value: Any

    def __str__(self) -> str:
        return f"{self.section + '.' if self.section else ''}{self.key} = {self.value!r}"


class Outcome(NamedTuple):
    """What came of a config: `kind` is "equal", "different", "fails" or why it could not be compared."""

    kind: str
    text: str = ""


@cache
def list_bases(model_type: str) -> tuple[str, ...]:
    """Names of the configs of a type that are known to run."""
    return tuple(name for name in list_running() if name.partition(",")[0] == model_type)


@cache
def list_running() -> tuple[str, ...]:
    return tuple(name for name in model_types.list_running() if name not in STAND_INS and name not in remote.MODELS)


def list_types() -> list[str]:
    return list(dict.fromkeys(name.partition(",")[0] for name in list_running()))


def list_sections(document: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every section of a config.json with its path."""
    yield path, document
    for key, value in document.items():
        if isinstance(value, dict) and not key.startswith("rope"):
            yield from list_sections(value, f"{path}.{key}".strip("."))


@cache
def list_defaults(model_type: str, section: str) -> dict[str, Any]:
    """The keys of the reference's config class of a section, and their defaults."""
    from transformers import CONFIG_MAPPING

    cls: Any = CONFIG_MAPPING[model_type]
    for step in section.split(".") if section else ():
        cls = cls.sub_configs_defaults[step].config_class if step in cls.sub_configs_defaults else None
        if cls is None:
            return {}
    return {field.name: getattr(cls, field.name, None) for field in fields(cls)}


def list_known(document: dict[str, Any], section: str, block: dict[str, Any]) -> dict[str, Any]:
    """The same with what the section states."""
    stated = block.get("model_type")
    try:
        defaults = list_defaults(stated, "") if stated else list_defaults(document["model_type"], section)
    except (KeyError, TypeError, AttributeError):  # a type of another section
        return block
    return {**defaults, **block}


def draw_value(key: str, value: Any, numbers: list[int], rng: random.Random) -> Any:
    """Another value of the kind that a key has; the same one if there is none."""
    if isinstance(value, bool):
        return not value
    if "act" in key and isinstance(value, str):
        return rng.choice(ACTIVATIONS)
    if isinstance(value, int):
        if any(word in key for word in LENGTHS):
            return rng.choice([1, 2, 3, 4, 5, 7, 8, 12, 16])
        if key in HEADS:
            return rng.choice([2, 4, 5, 6, 7, 10, 12, 14, 24])
        usual = [1, 2, 3, 4, 5, 6, 8] if value <= 16 else [12, 20, 24, 32, 36, 40, 48, 64, value + 1, value + 8]
        return rng.choice([*usual, *numbers])
    if isinstance(value, float):
        if "eps" in key:
            return rng.choice([1e-2, 1e-3, 0.1])
        if "theta" in key or "base" in key:
            return rng.choice([50.0, 300.0, 10000.0])
        return rng.choice([0.25, 0.5, 1.5, 2.0, 3.0]) * (value or 1)
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return [rng.choice(value) for _ in value]
    return value


def draw_change(document: dict[str, Any], rng: random.Random) -> Change | None:
    section, block = rng.choice(list(list_sections(document)))
    known = list_known(document, section, block)
    keys = [
        key for key, value in known.items()
        if not any(word in key for word in FIXED) and (key in block or isinstance(value, (bool, int, float, str)))
    ]  # fmt: skip
    stated = [key for key in keys if key in block]
    fate = rng.choice(["other"] * 6 + ["absent", "null", "head", "renamed"])
    if fate == "head":
        keys = [key for key in keys if key in HEADS] or keys
    if fate in ("absent", "null", "renamed"):
        keys = stated
    if not keys:
        return None
    key = rng.choice(keys)
    if fate == "absent":
        return Change(section, key, ABSENT)
    if fate == "null":
        return Change(section, key, None)
    if fate == "renamed":
        names = differential.list_aliases(block.get("model_type")).get(key)
        return Change(section, rng.choice(names), block[key]) if names else None
    numbers = [value for value in block.values() if type(value) is int and 1 < value < 65]
    value = draw_value(key, known[key], numbers, rng)
    return None if value == known[key] else Change(section, key, value)


def apply(document: dict[str, Any], changes: list[Change]) -> dict[str, Any]:
    found = deepcopy(document)
    for section, key, value in changes:
        block = found
        for step in section.split(".") if section else ():
            block = block.get(step) or {}  # no section any more: nothing to change
        if value == ABSENT:
            block.pop(key, None)
        else:
            block[key] = deepcopy(value)
    return found


def lengthen(document: dict[str, Any]) -> dict[str, Any]:
    """The same with positions for all tokens: only angles may have fewer."""
    found = deepcopy(document)
    for _, block in list_sections(found):
        for key in ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx", "block_size"):
            if type(block.get(key)) is int and block[key] < 64 and "rope_scaling" not in block:
                block[key] = 64
    return found


def compare(document: dict[str, Any], cls_name: str, *, text_alone: bool = False) -> Outcome:
    """What comes of a config."""
    with warnings.catch_warnings(), patch.dict(images.IMAGES, clear=text_alone):
        warnings.simplefilter("ignore")
        try:
            model = load(document)
            if count_sizes(model.sizes, head=model.reading.head).total > LARGEST:
                return Outcome("large")
            sizes = model.sizes
        except ParamcountError as error:
            return Outcome("refused", str(error))
        try:
            reference = logits.build_reference(document, cls_name)
            weights = logits.find_weights(reference, model.sizes)
            expected = logits.expect_logits(reference, document, cls_name, sizes)
        except Exception as error:  # whatever the reference raises
            return Outcome("not run by the reference", f"{type(error).__name__}: {error}")
        if not math.isfinite(abs(expected.whole).max()) or abs(expected.whole).max() < 1e-6:
            return Outcome("without finite logits")
        try:
            found = logits.measure(model, weights, expected)
        except Exception as error:  # ours are differences
            return Outcome("fails", f"{type(error).__name__}: {str(error)[:200]}")
        if max(found) < logits.TOLERANCE:
            return Outcome("equal")
        return Outcome("different", f"whole {found.whole:.1e}, decoded {found.decoded:.1e}")


class Drawn(NamedTuple):
    base: str
    changes: list[Change]
    outcome: Outcome
    text_alone: bool


def draw_configs(model_type: str, n: int, seed: int) -> Iterator[Drawn]:
    """What comes of random configs of a type that the reference runs, and of those that it does not."""
    for i in range(n):
        rng = random.Random(f"{seed} {model_type} {i}")  # noqa: S311
        for _ in range(MOST_DRAWN):
            base = rng.choice(list_bases(model_type))
            document, cls_name = lengthen(passes.make_document(base)), passes.find_class(base)
            drawn = [change for _ in range(rng.choice([1, 2, 3, 4, 5])) if (change := draw_change(document, rng))]
            text_alone = cls_name in images.IMAGES and cls_name not in images.ALWAYS_SEE and rng.random() < 0.5
            outcome = compare(apply(document, drawn), cls_name, text_alone=text_alone)
            yield Drawn(base, drawn, outcome, text_alone)
            if outcome.kind in ("equal", "different", "fails"):
                break


def shrink(found: Drawn) -> Drawn:
    """The same without the changes that make no difference."""
    document, cls_name = lengthen(passes.make_document(found.base)), passes.find_class(found.base)
    for change in found.changes:
        fewer = [other for other in found.changes if other is not change]
        outcome = compare(apply(document, fewer), cls_name, text_alone=found.text_alone)
        if outcome.kind == found.outcome.kind:
            found = found._replace(changes=fewer, outcome=outcome)
    return found


def describe(model_type: str, n: int, seed: int) -> Iterator[str]:
    """A line for a type, and one for each difference."""
    found = list(draw_configs(model_type, n, seed))
    counts = {
        kind: sum(one.outcome.kind == kind for one in found) for kind in dict.fromkeys(o.outcome.kind for o in found)
    }
    for one in found:
        if one.outcome.kind in ("different", "fails"):
            short = shrink(one)
            changes = "; ".join(map(str, short.changes)) or "no change"
            alone = ", text alone" if short.text_alone else ""
            yield f"  {short.outcome.kind}: {short.base}{alone}: {changes}: {short.outcome.text}"
    yield f"{model_type}: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.random_logits", description=__doc__)
    parser.add_argument("types", nargs="*", metavar="TYPE")
    parser.add_argument("--configs", type=int, default=4, help="configs of each type")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, help="a file to append to and to continue")
    options = parser.parse_args()
    differential.silence()
    results: Path | None = options.results
    done = results.read_text(encoding="utf-8").splitlines() if results and results.exists() else []
    for model_type in options.types or list_types():
        if any(line.startswith(f"{model_type}: ") for line in done):
            continue
        lines = "\n".join(describe(model_type, options.configs, options.seed))
        print(lines, flush=True)
        if results:
            with results.open("a", encoding="utf-8") as file:
                print(lines, file=file)


if __name__ == "__main__":
    main()
