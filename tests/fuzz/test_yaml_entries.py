"""Zoo entries in YAML, spoilt or made up, and mappings from Python: counted exactly, or refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.formats.strict_yaml import parse_yaml
from tests.fuzz.frame import call_or_refuse, check_count, fuzz, often, spoil_text
from tests.fuzz.values import LEAVES, SCRAPS, SIZES, VALUES

pytestmark = pytest.mark.fuzz

ENTRIES = ("gpt2-small", "llama-3.1-8b", "deepseek-v3", "qwen3-30b-a3b", "llama-3.2-11b-vision", "gpt-oss-20b", "gpt-4")
TEXTS = [path.read_text(encoding="utf-8") for path in map(zoo.find_path, ENTRIES) if path]


def test_a_corrupted_entry_is_counted_or_rejected() -> None:
    def verdict_of(text: str) -> str:
        count = call_or_refuse(lambda: pc.count(parse_yaml(text)))
        check_count(count)
        return "read" if count else "refused"

    assert fuzz(lambda rng: spoil_text(rng, TEXTS, SCRAPS), verdict_of) == {"refused", "read"}


@often
@given(
    st.text(alphabet=st.sampled_from("ab:-{}[],&*!|>'\"%@#?~<. \n\t019é\\"), max_size=40)
    | st.text(max_size=40)
    | st.lists(st.sampled_from(SCRAPS)).map("".join)
)
def test_any_text_is_a_mapping_or_rejected(text: str) -> None:
    found = call_or_refuse(lambda: parse_yaml(text))
    assert found is None or isinstance(found, dict)


@often
@given(data=st.binary(max_size=60) | st.sampled_from(TEXTS).map(lambda text: text[:50].encode("utf-16")))
def test_any_bytes_in_a_file_are_rejected(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(data)
    check_count(call_or_refuse(lambda: pc.count(path)))


@often
@given(st.data())
def test_any_mapping_is_counted_or_rejected(data: st.DataObject) -> None:
    document: dict[Any, Any] = data.draw(st.sampled_from(TEXTS).map(parse_yaml))
    config = document.get("config", {})
    for _ in range(data.draw(st.integers(1, 3))):
        if config and data.draw(st.booleans()):
            config[data.draw(st.sampled_from(list(config)) | LEAVES)] = data.draw(SIZES | VALUES)
        else:
            document[data.draw(st.sampled_from(sorted(zoo.Entry.model_fields)) | LEAVES)] = data.draw(VALUES)
    check_count(call_or_refuse(lambda: pc.count(document)))


@often
@given(VALUES)
def test_any_object_is_counted_or_rejected(spec: Any) -> None:
    assert call_or_refuse(lambda: pc.count(spec)) is None
    call_or_refuse(lambda: pc.load(spec))
