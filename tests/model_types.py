"""The line of truth of every supported architecture, as its file in tests/data/types states it.

`total` is what the reference implementation builds from the default config. `vary`: values of config.json keys that the
differential test draws besides its usual ones; a key with + before it is read by no field but by a derivation
("absent" leaves it out). A key with ! before it is always given. Under "=" stand keys without which the default config
could never run. `python -m tests.oracle.refresh_types` writes all but `vary`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcount.architectures import split_name
from tests.type_files import load_all, load_facts


class ModelType(NamedTuple):
    cls: str
    total: int
    vary: dict[str, Any]


def load_model_types() -> dict[str, ModelType]:
    totals = load_all("total").items()
    return {
        name: ModelType(load_facts(name)["class"], total, load_facts(name).get("vary", {})) for name, total in totals
    }


MODEL_TYPES = load_model_types()


def default_document(name: str) -> dict[str, Any]:
    """The shortest config.json of a model type that the reference could run."""
    facts = MODEL_TYPES[name]
    return {"model_type": split_name(name)[0], "architectures": [facts.cls], **facts.vary.get("=", {})}


def list_running() -> list[str]:
    """The configs whose flow computes the reference's logits: model types, or "model type, what is special"."""
    return [", ".join(filter(None, (name, label))) for name, labels in load_all("running").items() for label in labels]


def load_configs(kind: str = "configs") -> dict[str, dict[str, Any]]:
    """{such a name: its config.json} of small configs in which no two sizes are equal."""
    tables = load_all(kind).items()
    return {", ".join(filter(None, (name, label))): one for name, table in tables for label, one in table.items()}
