"""`verify` of a released T5 v1.1, whose LM head is a tensor of its own, against its entry and its config.json."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount.checkpoints.matching import expand_names
from tests.comparison import load_configs
from tests.headers import Tensors, write_header
from tests.running import Runner

ENTRY = "t5-v1.1-small"
RELEASED = 76_961_152  # github sdpetrides/t5x-train-and-test, README.md
HEAD = 32_128 * 512  # vocab_size × d_model
COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")  # older files have the embedding three times


def list_tensors() -> Tensors:
    """The tensors of the release."""
    tensors = expand_names(tensor for tensor in pc.count(ENTRY).tensors if tensor.tied_to is None)
    return {name: ("F32", tensor.shape) for name, tensor in tensors.items()}


@pytest.fixture
def release(tmp_path: Path) -> str:
    tensors = list_tensors()
    assert sum(prod(shape) for _, shape in tensors.values()) == RELEASED
    copies = dict.fromkeys(COPIES, tensors["shared.weight"])
    return str(write_header(tmp_path / "release.json", tensors | copies))


def verify(run: Runner, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = run("verify", *arguments, "--json")
    return done.code, json.loads(done.out)


def test_the_released_files_match_the_entry(release: str, run: Runner) -> None:
    code, found = verify(run, ENTRY, release)
    assert (code, found["ok"]) == (0, True)
    assert found["found"]["lm_head"] == found["expected"]["lm_head"] == HEAD
    assert sum(found["found"].values()) == RELEASED


def test_without_the_lm_head_the_entry_misses_it(tmp_path: Path, run: Runner) -> None:
    tensors = list_tensors()
    del tensors["lm_head.weight"]
    code, found = verify(run, ENTRY, str(write_header(tmp_path / "tied.json", tensors)))
    assert code == 1
    assert "lm_head.weight" in json.dumps(found["lines"])


def test_against_the_config_json_the_separate_lm_head_is_named_as_surplus(
    release: str, tmp_path: Path, run: Runner
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(load_configs()[ENTRY]), encoding="utf-8")
    done = run("verify", str(config), release)
    text = " ".join((done.out + done.err).split())
    assert "lm_head.weight" in text
    assert f"files with a separate lm_head.weight hold {RELEASED:,} parameters, {HEAD:,} more" in text
