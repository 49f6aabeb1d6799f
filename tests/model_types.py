"""The line of truth of every supported architecture: tests/data/model_types.csv.

`total` is what the reference implementation builds from the default config. `vary`: values of config.json keys, as
JSON, that the differential test draws besides its usual ones; a key with + before it is read by no field but by a
derivation ("absent" leaves it out). A key with ! before it is always given. Under "=" stand keys without which the
default config could never run.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

from paramcount.architectures import split_name


class ModelType(NamedTuple):
    cls: str
    total: int
    vary: dict[str, Any]


def load_model_types() -> dict[str, ModelType]:
    with (Path(__file__).parent / "data" / "model_types.csv").open(encoding="utf-8", newline="") as file:
        return {
            row["model_type"]: ModelType(row["class"], int(row["total"]), json.loads(row["vary"] or "{}"))
            for row in csv.DictReader(file)
        }


MODEL_TYPES = load_model_types()
UNREACHED = {"longcat_flash": 180_388_626_432}  # tests/oracle/flaws.py has the proof


def default_document(name: str) -> dict[str, Any]:
    """The shortest config.json of a model type that the reference could run."""
    facts = MODEL_TYPES[name]
    return {"model_type": split_name(name)[0], "architectures": [facts.cls], **facts.vary.get("=", {})}
