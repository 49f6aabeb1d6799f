"""A config that the reference saves with all of its keys has no warnings."""

from __future__ import annotations

import json

import pytest
from transformers import CONFIG_MAPPING

import paramcount as pc
from paramcount.architectures import ARCHITECTURES, split_name

TYPES = sorted({name for name in ARCHITECTURES if not split_name(name)[1] and name in CONFIG_MAPPING})


@pytest.mark.oracle
@pytest.mark.parametrize("model_type", TYPES)
def test_a_config_as_the_reference_saves_it_has_no_warnings(model_type: str) -> None:
    document = json.loads(CONFIG_MAPPING[model_type]().to_json_string(use_diff=False))
    try:
        model = pc.load({**document, "model_type": model_type})
    except pc.ParamcountError as error:  # the reference's own defaults cannot run; other tests say which
        pytest.skip(str(error))
    assert model.warnings == ()
