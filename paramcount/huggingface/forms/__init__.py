"""Forms in which people keep the sizes of models other than a config.json with `model_type`, one file each.

A form recognises a parsed file by its keys and translates it to the keys of a config.json, which is then read like any
other; a note says as what the file was read. Every way to name a model reaches this table, because it lies behind the
reading of any mapping. `refused` names the files of other tools, which hold no sizes of a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcount.huggingface.forms import (
    deepseek_inference,
    gpt_oss_original,
    meta_params,
    mistral_params,
    state_spaces,
    untyped,
)
from paramcount.huggingface.forms.form import ConfigForm, Translation

__all__ = ["FILE_NAMES", "FORMS", "ConfigForm", "Translation", "find_form"]

# The names under which files of these forms are kept; in a directory, the first that is there counts.
FILE_NAMES = (
    "params.json", "bert_config.json", "albert_config.json", "xlnet_config.json", "hparams.json", "adapter_config.json",
)  # fmt: skip

FORMS = (
    deepseek_inference.FORM,
    mistral_params.FORM,
    meta_params.FORM,
    state_spaces.FORM,
    gpt_oss_original.FORM,
    untyped.HPARAMS,
    untyped.FORM,
)


def find_form(document: Mapping[str, Any]) -> ConfigForm | None:
    """The form of a parsed file; None for a config.json, and for what no form recognises."""
    return next((form for form in FORMS if form.matches(document)), None)
