"""What the reference makes of random configs of a model type: cases of the differential test, of classes with the head
of another task, and of parameters that no forward pass reads. `python -m tests.oracle.refresh_types` freezes them.
"""

from __future__ import annotations

import random
import tempfile
from math import prod
from pathlib import Path
from typing import Any

from paramcount.architectures import split_name
from paramcount.errors import ParamcountError
from tests.cases import hash_shapes
from tests.model_types import MODEL_TYPES
from tests.oracle import differential

COUNTED, SAVED, REFUSED, LARGEST = 5, 1, 2, 2_000


def make_case(document: dict[str, Any], cls_name: str) -> dict[str, Any] | None:
    """What the reference makes of a config.

    None where it has more tensors than are worth a test, or one that is a flaw.
    """
    try:
        _, parameters, _ = differential.count_document(document)
    except ParamcountError:
        return {"config": document, "refused": True}  # by the reference too: it cannot build it, or not run it
    model = differential.build_model(document, cls_name)
    saved, kept = differential.name_tensors(model)
    prefix = f"{model.base_model_prefix}."
    unread = {name.removeprefix(prefix): n for name, n in differential.find_unreachable_tensors(document).items()}
    learned = {name: shape for name, shape in saved.items() if name.removeprefix(prefix) not in unread}
    sums = differential.sum_reference(model)
    facts = {
        "config": document,
        **sums,
        "total": sums["total"] - sum(map(prod, unread.values())),
        "prefix": prefix,
        "tensors": hash_shapes(learned, prefix),
        "buffer_tensors": hash_shapes(kept, prefix),
    }
    return facts if len(learned) <= LARGEST and hash_shapes(parameters, prefix) == facts["tensors"] else None


def make_saved_case(document: dict[str, Any], cls_name: str) -> dict[str, Any] | None:
    """The same of a config as the reference saves it beside the model; None also where it would not read it again."""
    with tempfile.TemporaryDirectory() as folder:
        config = differential.save_config(differential.build_model(document, cls_name).config, cls_name, Path(folder))
    return None if differential.find_differences(config, cls_name, run=False) else make_case(config, cls_name)


def make_cases(name: str) -> list[dict[str, Any]]:
    """Some that are counted, the first ones also as the reference saves them, and some that are refused, of those about
    which both sides agree.
    """
    cls_name, vary = MODEL_TYPES[name].cls, MODEL_TYPES[name].vary
    rng = random.Random(7)  # noqa: S311
    found: list[dict[str, Any]] = []
    wanted = {True: REFUSED, False: COUNTED}
    for _ in range(600):
        document = differential.make_document(name, rng.choice, vary)
        cls = document.get("architectures", [cls_name])[0]
        facts = make_case(document, cls)
        if (
            facts is None
            or facts in found
            or not wanted["refused" in facts]
            or differential.find_differences(document, cls)
        ):
            continue
        wanted["refused" in facts] -= 1
        found.append(facts)
        if not any(wanted.values()):
            break
    counted = [facts["config"] for facts in found if "refused" not in facts][:SAVED]
    saved = [make_saved_case(document, document.get("architectures", [cls_name])[0]) for document in counted]
    return [*found, *[facts for facts in saved if facts]]


def make_head_cases(name: str, most: int = 600) -> list[dict[str, Any]]:
    """One config of a class with the head of another task that is counted, as the reference built it."""
    model_type, cls = split_name(name)
    rng = random.Random(11)  # noqa: S311
    for _ in range(most):
        document = differential.add_labels(
            differential.make_document(model_type, rng.choice, MODEL_TYPES[model_type].vary), cls, rng.choice
        )
        if (
            (facts := make_case(document, cls))
            and "refused" not in facts
            and not differential.find_differences(document, cls)
        ):
            return [facts]
    return []


def find_unreachable(config: dict[str, Any]) -> dict[str, Any]:
    """What the reference allocates for a config, and which of its tensors are none that a forward pass reads by our
    declaration.
    """
    model = differential.build_model(config, config["architectures"][0])
    prefix = f"{model.base_model_prefix}."
    saved = {name.removeprefix(prefix): prod(shape) for name, shape in differential.name_tensors(model)[0].items()}
    read = {name.removeprefix(prefix) for name in differential.count_document(config)[1]}
    numel = sum(p.numel() for p in model.parameters())
    return {
        "config": config,
        "prefix": prefix,
        "numel": numel,
        "unreachable": {name: n for name, n in sorted(saved.items()) if name not in read},
    }
