"""Entries whose released files differ from the reference implementation, and the config.json of such a release."""

from __future__ import annotations

import json
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from tests.comparison import load_configs, load_reference
from tests.running import Runner

UNTIED = (  # google-research/t5x and google/flaxformer: logits_via_embedding = False
    *(f"t5-v1.1-{size}" for size in ("small", "base", "large", "xl", "xxl")),
    *(f"mt5-{size}" for size in ("small", "base", "large", "xl", "xxl")),
    *(f"umt5-{size}" for size in ("small", "base", "xl", "xxl")),
    *(f"byt5-{size}" for size in ("small", "base", "large", "xl", "xxl")),
    *(f"long-t5-{size}" for size in ("local-base", "local-large", "tglobal-base", "tglobal-large", "tglobal-xl")),
    "blip2-flan-t5-xl",
    "instructblip-flan-t5-xl",
)


def test_the_entries_that_differ_from_the_reference_are_those_whose_publisher_does_not_tie_the_lm_head() -> None:
    counts = {id: pc.count(id) for id in zoo.list_ids() if not zoo.load_entry(id).estimate}
    assert {id for id, count in counts.items() if count.reference_total != count.total} == set(UNTIED)


@pytest.mark.parametrize("id", UNTIED)
def test_the_reference_total_is_that_of_transformers_and_lacks_one_lm_head(id: str) -> None:
    count = pc.count(id)
    language = getattr(count.sizes, "language", count.sizes)
    assert count.reference_total == load_reference()[id]["total"]
    assert count.total - count.reference_total == language.vocab_size * language.d_model == count.lm_head
    assert [name.rpartition("lm_head")[1:] for name in count.released_tensors] == [("lm_head", ".weight")]


def test_the_published_config_json_is_counted_as_the_reference_builds_it_with_a_warning() -> None:
    with pytest.warns(pc.ConfigWarning) as caught:
        count = pc.count(load_configs()["t5-v1.1-large"])
    assert (count.total, count.reference_total) == (750_251_008, 750_251_008)
    assert (
        [str(each.message) for each in caught]
        == list(count.warnings)
        == [
            "ignored tie_word_embeddings = false: T5ForConditionalGeneration always ties lm_head.weight; "
            "files with a separate lm_head.weight hold 783,150,080 parameters, 32,899,072 more"
        ]
    )


def test_a_published_config_json_of_each_such_type_names_the_total_of_the_release() -> None:
    without = []
    for id in UNTIED:
        warnings = pc.load(load_configs()[id]).warnings if id in load_configs() else ()
        if f"hold {pc.count(id).total:,} parameters" not in " ".join(warnings):
            without.append(id)
    assert without == []


def test_an_encoder_without_an_lm_head_has_no_such_warning() -> None:
    assert pc.load(load_configs()["t5-v1.1-xxl-encoder"]).warnings == ()


def test_strict_refuses_a_config_json_whose_flag_the_reference_ignores() -> None:
    with pytest.raises(pc.ParamcountError, match="ignored tie_word_embeddings = false"):
        pc.load(load_configs()["mt5-small"], strict=True)


def test_show_names_the_total_of_the_reference_and_the_tensor(run: Runner) -> None:
    expected = "matches published total; the reference implementation ties lm_head and has 750,251,008"
    assert expected in " ".join(run("show", "t5-v1.1-large").out.split())
    shown: dict[str, Any] = json.loads(run("show", "mt5-base", "--json").out)
    assert shown["proof"] == "as released; the reference implementation ties lm_head and has 390,315,264"
    assert (shown["total"], shown["reference_total"]) == (582_401_280, 390_315_264)
