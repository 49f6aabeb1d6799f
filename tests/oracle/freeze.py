"""Freeze cases of the differential test into tests/data/cases.json: `python -m tests.oracle.freeze [MODEL_TYPE...]`.

`python -m tests.oracle.freeze --task-heads` freezes classes with the head of another task into tests/data/task_heads.json, `--unreachable`
the configs of tests/data/unreachable.json anew.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from math import prod
from pathlib import Path
from typing import Any

from paramcount.architectures.task_heads import DECLARED, task_heads
from paramcount.errors import ParamcountError
from tests.cases import CASES, digest, load
from tests.model_types import MODEL_TYPES
from tests.oracle import differential
from tests.task_heads import TASK_HEADS
from tests.test_unreachable import UNREACHABLE

COUNTED, SAVED, REFUSED, LARGEST = 5, 1, 2, 2_000


def case(document: dict[str, Any], cls_name: str) -> dict[str, Any] | None:
    """What the reference makes of a config; None where it has more tensors than are worth a test, or one that is a flaw."""
    try:
        _, parameters, _ = differential.ours(document)
    except ParamcountError:
        return {"config": document, "refused": True}  # by the reference too: it cannot build it, or not run it
    model = differential.build(document, cls_name)
    learned, kept = differential.named(model)
    prefix = f"{model.base_model_prefix}."
    facts = {
        "config": document,
        **differential.totals(model),
        "prefix": prefix,
        "tensors": digest(learned, prefix),
        "buffer_tensors": digest(kept, prefix),
    }
    return facts if len(learned) <= LARGEST and digest(parameters, prefix) == facts["tensors"] else None


def as_saved(document: dict[str, Any], cls_name: str) -> dict[str, Any] | None:
    """The same of a config as the reference saves it beside the model; None also where it would not read it again."""
    with tempfile.TemporaryDirectory() as folder:
        config = differential.saved(differential.build(document, cls_name).config, cls_name, Path(folder))
    return None if differential.differences(config, cls_name, run=False) else case(config, cls_name)


def cases(name: str) -> list[dict[str, Any]]:
    """Some that are counted, the first ones also as the reference saves them, and some that are refused, of those about which both
    sides agree."""
    cls_name, vary = MODEL_TYPES[name].cls, MODEL_TYPES[name].vary
    rng = random.Random(7)  # noqa: S311
    found: list[dict[str, Any]] = []
    wanted = {True: REFUSED, False: COUNTED}
    for _ in range(600):
        document = differential.document_of(name, rng.choice, vary)
        cls = document.get("architectures", [cls_name])[0]
        facts = case(document, cls)
        if facts is None or facts in found or not wanted["refused" in facts] or differential.differences(document, cls):
            continue
        wanted["refused" in facts] -= 1
        found.append(facts)
        if not any(wanted.values()):
            break
    counted = [facts["config"] for facts in found if "refused" not in facts][:SAVED]
    saved = [as_saved(document, document.get("architectures", [cls_name])[0]) for document in counted]
    return [*found, *[facts for facts in saved if facts]]


def cases_with_task_head(name: str, most: int = 600) -> list[dict[str, Any]]:
    """One config of a class with the head of another task that is counted, as the reference built it."""
    model_type, _, cls = name.partition(".")
    rng = random.Random(11)  # noqa: S311
    for _ in range(most):
        document = differential.labelled(
            differential.document_of(model_type, rng.choice, MODEL_TYPES[model_type].vary), cls, rng.choice
        )
        if (facts := case(document, cls)) and "refused" not in facts and not differential.differences(document, cls):
            return [facts]
    return []


def freeze_task_heads() -> None:
    names = [f"{model_type}.{cls}" for model_type in DECLARED for cls in task_heads(model_type)]
    blocks = []
    for name in sorted(names):
        found = cases_with_task_head(name)
        print(name, len(found))
        blocks.append(f"{json.dumps(name)}: [\n{lines(found)}\n]")
    TASK_HEADS.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")


def unreachable_facts(config: dict[str, Any]) -> dict[str, Any]:
    """What the reference allocates for a config, and which of its tensors are none that a forward pass reads by our declaration."""
    model = differential.build(config, config["architectures"][0])
    prefix = f"{model.base_model_prefix}."
    saved = {name.removeprefix(prefix): prod(shape) for name, shape in differential.named(model)[0].items()}
    read = {name.removeprefix(prefix) for name in differential.ours(config)[1]}
    numel = sum(p.numel() for p in model.parameters())
    return {
        "config": config,
        "prefix": prefix,
        "numel": numel,
        "unreachable": {name: n for name, n in sorted(saved.items()) if name not in read},
    }


def freeze_unreachable() -> None:
    """The same configs anew."""
    entries = [unreachable_facts(entry["config"]) for entry in json.loads(UNREACHABLE.read_text(encoding="utf-8"))]
    UNREACHABLE.write_text(f"[\n{lines(entries)}\n]\n", encoding="utf-8")


def lines(entries: list[dict[str, Any]]) -> str:
    return ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)


def main(names: list[str]) -> None:
    differential.silence()
    if names == ["--task-heads"]:
        freeze_task_heads()
        return
    if names == ["--unreachable"]:
        freeze_unreachable()
        return
    for name in names or sorted(MODEL_TYPES):
        found = cases(name)
        frozen = {known: kept for known, kept in load().items() if known in MODEL_TYPES} | {name: found}
        blocks = [f"{json.dumps(known)}: [\n{lines(frozen[known])}\n]" for known in sorted(frozen)]
        CASES.write_text("{\n" + ",\n".join(blocks) + "\n}\n", encoding="utf-8")
        print(name, len(found))


if __name__ == "__main__":
    main(sys.argv[1:])
