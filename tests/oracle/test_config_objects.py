"""A config object of the reference counts as the config.json of its model type does: `to_dict()` writes out what an
absent key means.
"""

from __future__ import annotations

import paramcount as pc
from tests.refusing import read_or_none


def test_every_config_object_counts_as_its_model_type_alone() -> None:
    from transformers import CONFIG_MAPPING

    compared = 0
    for model_type, config_class in CONFIG_MAPPING.items():
        if bare := read_or_none(pc.count, {"model_type": model_type}):
            assert pc.count(config_class()).total == bare.total, model_type
            compared += 1
    assert compared > 200
