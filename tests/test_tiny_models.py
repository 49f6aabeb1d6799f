"""The tiny models: what they answer in NumPy, what the reference answers, and what the page's JavaScript computes."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcount as pc
from paramcount.errors import ParamcountError
from paramcount.execution import Run
from paramcount.explore.tiny_models import export_tiny_models
from paramcount.tiny import ALPHABET, END, FOLDER, LONGEST, NAMES, SEPARATOR, decode, encode, find_folder
from paramcount.zoo import Model

ROOT = Path(__file__).parents[1]
FROZEN = json.loads((ROOT / "tests/data/tiny_models.json").read_text(encoding="utf-8"))
NODE = shutil.which("node")
CLOSE = 1e-5  # of the largest value of a step, or of 1


def run_tiny(name: str, text: str, *, watch: bool = False) -> Run:
    folder = find_folder(name)
    assert folder is not None
    return pc.run(name, folder, encode(text), watch=watch)


def read_arrays(name: str) -> dict[str, Any]:
    """The tensors of a file in FP16, read once for many runs."""
    content = (FOLDER / name / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    arrays = {}
    for tensor, entry in header.items():
        assert entry["dtype"] == "F16"
        first, end = entry["data_offsets"]
        values = np.frombuffer(content[start + first : start + end], "<f2")
        arrays[tensor] = values.astype(np.float32).reshape(entry["shape"])
    return arrays


def predict_letters(model: Model, arrays: dict[str, Any], letters: str, answer: str) -> str:
    """The likeliest letter at each place of an answer, after the letters before it."""
    logits = pc.run(model, arrays, encode(letters + SEPARATOR + answer)).logits
    return "".join(ALPHABET[int(row.argmax())] for row in logits[len(letters) : -1])


# ---- in Python


def test_they_are_small() -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert sum(path.stat().st_size for path in files) < 1_000_000
    assert len(ALPHABET) <= 32
    assert decode(encode(ALPHABET)) == ALPHABET


@pytest.mark.parametrize("name", NAMES)
def test_their_files_have_the_tensors_of_their_configs(name: str) -> None:
    assert pc.verify(name, FOLDER / name).ok


@pytest.mark.parametrize("name", NAMES)
def test_their_logits_are_those_of_the_reference(name: str) -> None:
    for text, expected in FROZEN["logits"][name].items():
        assert np.allclose(run_tiny(name, text).logits, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_they_answer_what_the_reference_answers(name: str) -> None:
    """Inputs that training never saw; of 2,000 of them, the reference has at least 99% right in every letter."""
    assert FROZEN["accuracy"][name] >= 0.99
    model, arrays, answers = pc.load(name), read_arrays(name), FROZEN["answers"][name]
    assert len(answers) >= 45
    assert {letters: predict_letters(model, arrays, letters, answers[letters]) for letters in answers} == answers
    wrong = [letters for letters, answer in answers.items() if answer != "".join(sorted(letters)) + END]
    assert len(wrong) <= 3, wrong


def test_a_character_that_is_no_token_is_an_error() -> None:
    with pytest.raises(ParamcountError, match="text has the character 'é' "):
        encode("é")


# ---- in JavaScript


def run_in_javascript(runs: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What the page's runtime computes for each run: of each part of a text the logits and every step."""
    assert NODE is not None
    data = base64.b64encode(gzip.decompress(export_tiny_models())).decode()
    script = [NODE, str(ROOT / "tests/tiny_steps.mjs")]
    done = subprocess.run(script, input=json.dumps({"data": data, "runs": runs}), capture_output=True, text=True)
    assert not done.stderr
    found: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def check_close(found: dict[str, Any], expected: Any, what: str) -> None:
    assert found["shape"] == list(expected.shape), what
    values = np.array([float(value) for value in found["data"]]).reshape(expected.shape)
    hidden = np.isinf(expected)
    assert (np.isinf(values) == hidden).all(), what
    difference = np.abs(np.where(hidden, 0, values) - np.where(hidden, 0, expected)).max()
    assert difference <= CLOSE * max(1, np.abs(expected[~hidden]).max()), what


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
@pytest.mark.parametrize("name", NAMES)
def test_every_step_in_javascript_is_that_of_numpy(name: str) -> None:
    texts = [*FROZEN["logits"][name], *(f"{letters}|" for letters in list(FROZEN["answers"][name])[:3])]
    answers = run_in_javascript([{"model": name, "parts": [encode(text)], "off": []} for text in texts])
    for text, ((found,)) in zip(texts, answers):
        expected = run_tiny(name, text, watch=True)
        steps = [step for step in found["steps"] if step["label"] != "experts"]  # NumPy lists what is inside
        assert len(steps) == len(expected.steps)
        for i, (step, value) in enumerate(zip(steps, expected.steps)):
            check_close(step, value.array, f"{name}, {text}, step {i}: {value.operation}")
        check_close(found["logits"], expected.logits, f"{name}, {text}: logits")


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
@pytest.mark.parametrize("name", NAMES)
def test_javascript_continues_a_text_with_its_cache(name: str) -> None:
    text = "qhzbkxaqmc" + SEPARATOR
    assert len(text) == LONGEST + 1
    ids = encode(text)
    (parts,) = run_in_javascript([{"model": name, "parts": [ids[:6], ids[6:9], ids[9:]], "off": []}])
    whole = run_tiny(name, text).logits
    for part, rows in zip(parts, np.split(whole, [6, 9])):
        check_close(part["logits"], rows, name)


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
def test_a_head_an_expert_and_a_state_can_be_switched_off() -> None:
    off = {"tiny-gpt2": "1.2", "tiny-mixtral": "0.e3", "tiny-mamba": "1.state"}
    runs = [
        {"model": name, "parts": [encode("dbca|abcd")], "off": given}
        for name, it in off.items()
        for given in ([], [it])
    ]
    found = run_in_javascript(runs)
    for name, (on,), (without,) in zip(off, found[::2], found[1::2]):
        assert not np.allclose(on["logits"]["data"], without["logits"]["data"], atol=1e-3), name
    (gpt2,) = found[1]
    heads = [step for step in gpt2["steps"] if step["form"] == "WEIGHTED_VALUES"]
    values = [np.array(step["data"]).reshape(step["shape"]) for step in heads]
    assert [np.abs(value[:, 2]).max() > 0 for value in values] == [True, False]
    assert all(np.abs(values[1][:, h]).max() > 0 for h in (0, 1, 3))
