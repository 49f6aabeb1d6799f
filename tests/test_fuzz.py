"""Whatever comes in, there is an answer or a ParamcountError of one printable line. EXAMPLES=20000 pytest tests/test_fuzz.py looks longer."""

from __future__ import annotations

import contextlib
import io
import json
import os
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import paramcount as pc
from paramcount import zoo
from paramcount.cli import main
from paramcount.counting.count import COMPONENTS
from paramcount.formats.strict_yaml import loads
from paramcount.huggingface.locate import parse_document
from paramcount.zoo import names
from tests.model_types import MODEL_TYPES
from tests.oracle.differential import document_of
from tests.refusing import assert_one_line

EXAMPLES = int(os.environ.get("EXAMPLES", "200"))
often = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
seldom = settings(often, max_examples=EXAMPLES // 4)

ENTRIES = ("gpt2-small", "llama-3.1-8b", "deepseek-v3", "qwen3-30b-a3b", "llama-3.2-11b-vision", "gpt-oss-20b", "gpt-4")
TEXTS = [path.read_text(encoding="utf-8") for path in map(zoo.path_of, ENTRIES) if path]
SCRAPS = (
    "", " ", "  ", "\n", "\n\n", "\t", "\r\n", ":", ": ", "- ", "-", "{", "}", "[", "]", ",", "#", "|", ">", "? ", "%", "@", "`", "'", '"', "\\", "&a ", "*a", "!", "!!int ",
    "<<: ", "---\n", "...\n", "0", "-1", "1", "7", "64", "2147483648", "2147483649", "9" * 40, "1" * 101, "1e5", "0.5", "1e999", "012", "true", "null", "~", "no", "é", "\0",
    "\x1b", "\u2028", "\u202e", "\ufeff", "😀", "config:", "n_layers: 3\n", "d_model", "id: x\n", "estimate: true\n", "a" * 300,
)  # fmt: skip


def answered(ask: Callable[[], object]) -> object:
    """The answer, or None where the question was refused as it should be. Any other exception goes through."""
    try:
        return ask()
    except pc.ParamcountError as error:
        assert_one_line(str(error))
        return None


def check(count: object) -> None:
    """What is counted at all is counted in whole numbers that sum up."""
    if isinstance(count, pc.Count):
        assert tuple(count.components) == COMPONENTS
        assert type(count.total) is int
        assert count.total == sum(count.components.values()) == sum(count.parts.values())
        assert 0 < count.active <= count.total


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """A real entry with scraps in it, pieces cut out, and lines in another order."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        scrap = draw(st.sampled_from(SCRAPS) | st.text(max_size=4))
        match draw(st.integers(0, 5)):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                lines = text.split("\n")
                i, j = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
                lines[i], lines[j] = lines[j], lines[i] if draw(st.booleans()) else lines[j]
                text = "\n".join(lines)
            case 2:
                colon = text.find(": ", start) + 2
                text = text[:colon] + scrap + "\n" + text[colon:].partition("\n")[2]
            case 3:
                text = text[:start]
            case _:
                text = text[:start] + scrap + text[end:]
    return text


@often
@given(spoilt())
def test_a_spoilt_entry_is_counted_or_refused(text: str) -> None:
    check(answered(lambda: pc.count(loads(text))))


@often
@given(
    st.text(alphabet=st.sampled_from("ab:-{}[],&*!|>'\"%@#?~<. \n\t019é\\"), max_size=40)
    | st.text(max_size=40)
    | st.lists(st.sampled_from(SCRAPS)).map("".join)
)
def test_any_text_is_a_mapping_or_refused(text: str) -> None:
    found = answered(lambda: loads(text))
    assert found is None or isinstance(found, dict)


@often
@given(data=st.binary(max_size=60) | st.sampled_from(TEXTS).map(lambda text: text[:50].encode("utf-16")))
def test_any_bytes_in_a_file_are_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(data)
    check(answered(lambda: pc.count(path)))


WORDS = st.text(max_size=30) | st.text(string.printable, max_size=12) | st.text("gpt2-*?[]!/.~yaml\0\n\ud800\u202e", max_size=8)


@often
@given(WORDS)
def test_any_name_is_found_or_refused(name: str) -> None:
    check(answered(lambda: pc.count(name)))
    answered(lambda: names.expand(name))
    assert answered(lambda: zoo.path_of(name)) is None or name in zoo.ids()


SIZES = st.integers() | st.integers(-2, 130) | st.sampled_from([2**31, 2**31 + 1, 2**63, 2**64]) | st.just(5000).map(lambda n: 10**n)
LEAVES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | SIZES | st.floats() | st.text(max_size=8) | st.binary(max_size=4) | st.dates() | st.datetimes() | st.complex_numbers()
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LEAVES, inner, max_size=3) | st.frozensets(LEAVES, max_size=2), max_leaves=6
)


@often
@given(st.data())
def test_any_mapping_is_counted_or_refused(data: st.DataObject) -> None:
    document: dict[Any, Any] = data.draw(st.sampled_from(TEXTS).map(loads))
    config = document.get("config", {})
    for _ in range(data.draw(st.integers(1, 3))):
        if config and data.draw(st.booleans()):
            config[data.draw(st.sampled_from(list(config)) | LEAVES)] = data.draw(SIZES | VALUES)
        else:
            document[data.draw(st.sampled_from(sorted(zoo.Entry.model_fields)) | LEAVES)] = data.draw(VALUES)
    check(answered(lambda: pc.count(document)))


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | SIZES.filter(lambda n: n < 10**100)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["full_attention", "linear_attention", "moe", "auto", "relu"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def paths(document: dict[str, Any], start: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every key, as the steps that lead to it."""
    found = []
    for key, value in document.items():
        found.append((*start, key))
        if isinstance(value, dict):
            found += paths(value, (*start, key))
    return found


@often
@given(st.data())
def test_any_config_json_is_counted_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(MODEL_TYPES)))
    document = document_of(name, lambda options: data.draw(st.sampled_from(options)), MODEL_TYPES[name].vary)
    for _ in range(data.draw(st.integers(0, 3))):
        *outer, last = data.draw(st.sampled_from(paths(document)))
        place: Any = document
        for step in outer:
            place = place[step] if isinstance(place, dict) and step in place else {}
        if isinstance(place, dict):
            place[last] = data.draw(JSON)
    check(answered(lambda: pc.count(document)))
    check(answered(lambda: names.load_found(parse_document(json.dumps(document), "config.json"))))


@often
@given(st.text(max_size=80) | st.sampled_from(SCRAPS).map(lambda scrap: f'{{"model_type": "qwen3", "hidden_size": {scrap}}}'))
def test_any_text_is_a_config_json_or_refused(text: str) -> None:
    answered(lambda: names.load_found(parse_document(text, "config.json")))


@often
@given(VALUES)
def test_any_object_is_counted_or_refused(spec: Any) -> None:
    assert answered(lambda: pc.count(spec)) is None
    answered(lambda: pc.load(spec))


ARGUMENTS = st.sampled_from(
    ["gpt2-small", "gpt-oss", "gpt-oss-*", "gpt-4", "show", "compare", "list", "verify", "./none.yaml", "--csv", "--json", "--markdown", "--format", "html", "table", "latex",
     "--columns", "total,active", "--sort", "-total", "--transpose", "--estimates", "--help", "--version", "--", "-", "", "-x", "--nonsense=1", "--format=csv"]
) | st.text(max_size=6).filter(lambda word: not word.startswith("-"))  # fmt: skip


@seldom
@given(st.lists(ARGUMENTS, max_size=5))
def test_any_command_line_ends_well(args: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as leaving:
        main(args)
    assert leaving.value.code in (0, 1, 2)
    if leaving.value.code == 2:
        assert out.getvalue() == ""
        assert_one_line(err.getvalue().removesuffix("\n"))
    else:
        assert out.getvalue()
        assert err.getvalue() == ""
