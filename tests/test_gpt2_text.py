"""Real weights and real tokens: the next words equal the reference's, and an invalid text or tokenizer is one line."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paramcount.errors import ParamcountError, join_place
from paramcount.execution.text import (
    NextToken,
    TextRun,
    format_next_token,
    format_token,
    format_tokens,
    run_text,
)
from paramcount.formats import tokenizer as tokenizer_files
from paramcount.formats.tokenizer_process import tokenize
from paramcount.gpt2.forward_pass import Array, forward, make_weights
from paramcount.loading import load
from tests.gpt2_files import FROZEN, TEXT, WORDS, make_frozen_weights, train_tokenizer, write_weights, write_words
from tests.refusing import assert_one_line

CONFIG = {
    "model_type": "gpt2",
    "vocab_size": 23,
    "n_positions": 11,
    "n_embd": 8,
    "n_layer": 2,
    "n_head": 2,
    "n_inner": 20,
}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """The weights whose logits the reference gave, and beside them a tokenizer."""
    write_words(tmp_path / "tokenizer.json")
    return write_weights(tmp_path / "model.safetensors", make_frozen_weights())


def predict(weights: Path, text: str = TEXT, tokenizer: Path | None = None, **options: Any) -> TextRun:
    return run_text(load(CONFIG), str(weights), text, None if tokenizer is None else str(tokenizer), **options)


def running_error(weights: Path, text: str = TEXT, **options: Any) -> str:
    with pytest.raises(ParamcountError) as caught:
        predict(weights, text, **options)
    assert_one_line(str(caught.value))
    return str(caught.value).replace(f"{weights.parent}{os.sep}", "")


def rank_tokens(logits: Any) -> list[tuple[float, int]]:
    """(probability, id) of a row of logits, likeliest first; without NumPy."""
    powers = [math.exp(x) for x in logits]
    return sorted(((power / sum(powers), id) for id, power in enumerate(powers)), key=lambda pair: -pair[0])


# ---- what is found


def round_weights(dtype: str) -> dict[str, Array]:
    """The weights as a file of this type has them, in float64."""
    weights = make_frozen_weights()
    if dtype == "F16":
        return {name: array.astype(np.float16).astype(np.float64) for name, array in weights.items()}
    bits = {name: array.astype(np.float32).view(np.uint32) & 0xFFFF0000 for name, array in weights.items()}
    return {name: array.view(np.float32).astype(np.float64) for name, array in bits.items()}


@pytest.mark.parametrize("prefix", ["", "transformer."])
@pytest.mark.parametrize("dtype", ["F64", "F32", "F16", "BF16"])
def test_the_next_words_match_the_reference(dtype: str, prefix: str, tmp_path: Path) -> None:
    write_words(tmp_path / "tokenizer.json")
    path = write_weights(tmp_path / "w.safetensors", make_frozen_weights(), dtype, prefix=prefix)
    found = predict(path, TEXT, top=23)
    logits = FROZEN["logits"]
    if dtype in ("F16", "BF16"):
        logits = forward(round_weights(dtype), FROZEN["token_ids"], n_heads=2).tolist()
    expected = rank_tokens(logits[-1])
    assert list(found.ids) == FROZEN["token_ids"]
    assert [word.id for word in found.next_words] == [id for _, id in expected]
    assert [word.text for word in found.next_words] == [WORDS[id] for _, id in expected]
    # The reference's logits are float64; these went through float32, whose rounding here stays below 1e-6.
    assert [word.probability for word in found.next_words] == pytest.approx([share for share, _ in expected], rel=1e-5)
    assert sum(word.probability for word in found.next_words) == pytest.approx(1, abs=1e-12)
    assert found.notes == (f"weights stored as {dtype}, computed in float32",)


def test_numpy_error_settings_do_not_affect_the_pass(weights: Path) -> None:
    before = predict(weights, TEXT)
    path = write_weights(
        weights.parent / "w.st",
        make_frozen_weights()
        | {"ln_f.weight": make_frozen_weights()["ln_f.weight"] * 1e4, "h.0.ln_1.bias": np.full(8, 1e-60)},
        "F64",
    )
    with np.errstate(all="raise"):
        assert predict(weights, TEXT) == before
        assert predict(path, TEXT, top=23).next_words[-1].probability == 0  # e^-1000 and less


def test_an_unused_row_of_the_embedding_is_a_word_without_text(weights: Path) -> None:
    write_words(weights.parent / "tokenizer.json", ["w22", *WORDS[1:12]])
    found = predict(weights, "w1 w2", top=23)
    assert {word.id: word.text for word in found.next_words} == {
        id: f"w{id}" if id else "w22" for id in range(12)
    } | dict.fromkeys(range(12, 23))
    assert all(format_next_token(word).endswith(f"%  –  {word.id}") for word in found.next_words if word.id >= 12)


def test_a_tokenizer_in_another_directory_can_be_passed(weights: Path, tmp_path: Path) -> None:
    words = write_words(tmp_path / "other.json", WORDS[::-1])
    assert predict(weights, TEXT, words).ids == tuple(22 - id for id in FROZEN["token_ids"])
    (tmp_path / "tokenizer.json").unlink()
    message = (
        "tokenizer.json does not exist (expected a tokenizer.json next to the weights, or its path as --tokenizer FILE)"
    )
    assert running_error(weights) == message
    expected = "none.json cannot be read: No such file or directory"
    assert running_error(weights, tokenizer=tmp_path / "none.json") == expected


# ---- tokens


def test_incomplete_characters_are_shown_as_bytes_and_spaces_are_preserved(tmp_path: Path) -> None:
    tokenizer = train_tokenizer()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    config = {**CONFIG, "vocab_size": 300, "n_positions": 40}
    text = "the capital of\n France🍕"
    sizes: Any = load(config).sizes
    path = write_weights(tmp_path / "w.safetensors", make_weights(sizes))
    found = run_text(load(config), str(path), text)
    assert list(found.ids) == tokenizer.encode(text).ids
    assert found.tokens[:3] == ("the", " capital", " of") and found.tokens[-4:] == (r"\xf0", r"\x9f", r"\x8d", r"\x95")
    assert "".join(found.tokens[:-4]) == "the capital of\n France"
    assert format_tokens(found).startswith(
        f"{len(found.ids)} tokens: the {found.ids[0]} · ␣capital {found.ids[1]} · ␣of {found.ids[2]} · \\n "
    )


def test_every_byte_token_is_decoded() -> None:
    shown = sorted(tokenizer_files.decode_token(token) for token in train_tokenizer(257).get_vocab())
    assert shown == sorted([*(chr(byte) if byte < 128 else f"\\x{byte:02x}" for byte in range(256)), "<|endoftext|>"])


def test_tokens_of_whole_characters_are_decoded_as_by_the_library() -> None:
    tokenizer = train_tokenizer()
    whole = [
        (token, text)
        for token, id in tokenizer.get_vocab().items()
        if "\ufffd" not in (text := tokenizer.decode([id], skip_special_tokens=False))
    ]
    assert len(whole) > 150
    assert all(tokenizer_files.decode_token(token) == text for token, text in whole)
    assert tokenizer_files.decode_token("<|end of text|>") == "<|end of text|>"


def test_special_tokens_of_the_template_surround_the_text(weights: Path) -> None:
    template = [{"SpecialToken": {"id": "w9", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    post = {
        "type": "TemplateProcessing",
        "single": template,
        "pair": template,
        "special_tokens": {"w9": {"id": "w9", "ids": [9], "tokens": ["w9"]}},
    }
    write_words(weights.parent / "tokenizer.json", post_processor=post)
    assert predict(weights, "w1 w2").ids == (9, 1, 2)


def test_a_tokenizer_neither_pads_nor_truncates_a_text(weights: Path) -> None:
    padding = {
        "strategy": {"Fixed": 10**11},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": "w0",
    }
    truncation = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    write_words(weights.parent / "tokenizer.json", padding=padding, truncation=truncation)
    assert predict(weights, TEXT).ids == tuple(FROZEN["token_ids"])


def test_dropout_of_a_tokenizer_is_disabled(tmp_path: Path) -> None:
    tokenizer = json.loads(train_tokenizer().to_str())
    tokenizer["model"]["dropout"] = 0.9
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    assert tokenizer_files.tokenize_text(tmp_path / "tokenizer.json", "the capital", most=9).tokens == (
        "the",
        " capital",
    )


def split_step(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"pre_tokenizer": split_step("(a+)+$")}, "rejects it: Onig: Regex search error: retry-limit-in-match over"),
    ({"pre_tokenizer": split_step("(")}, "rejects it: "),
    ({"pre_tokenizer": {"type": "Nonsense"}}, "rejects it: "),
    (
        {
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "zz", "type_id": 0}}],
                "pair": [],
                "special_tokens": {},
            },
        },
        "rejects it: ",
    ),
    ({"model": {"type": "WordLevel", "unk_token": "none", "vocab": {"w0": 0}}},
     "rejects it: WordLevel error: Missing [UNK] token from the vocabulary"),
    (
        {
            "normalizer": {
                "type": "Sequence",
                "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 100}] * 6,
            },
        },
        "crashed: memory allocation of ",
    ),
    ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA/////w=="}}, "crashed: memory allocation of "),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"), HOSTILE, ids=[str(next(iter(changes))) + f" {i}" for i, (changes, _) in enumerate(HOSTILE)]
)
def test_a_hostile_tokenizer_crashes_only_the_subprocess(
    changes: dict[str, Any],
    said: str,
    weights: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokenizer_files, "MEMORY_LIMIT", 512 << 20)
    write_words(weights.parent / "tokenizer.json", **changes)
    message = running_error(weights, "a" * 50 + "b")
    assert message.startswith(f"tokenizer.json: the tokenizers library {said}")
    assert message.endswith(" (expected a tokenizer.json)")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the tokenizers library rejects it: "),
        (b"[" * 100_000, "the tokenizers library rejects it: "),
        (b'{"a": \x1b[31m}', "the tokenizers library rejects it: "),
        (b"\xff\xfe", "is not valid UTF-8 (expected a tokenizer.json)"),
        (b"GGUF\3\0\0\0", "is a GGUF file (expected a tokenizer.json)"),
        (
            b"version https://git-lfs.github.com/spec/v1\n",
            "is a Git LFS pointer; run `git lfs pull` to fetch the file (expected a tokenizer.json)",
        ),
        (b'{"model_type": "gpt2"}', "the tokenizers library rejects it: "),
    ],
)
def test_an_invalid_tokenizer_is_a_one_line_error(data: bytes, message: str, weights: Path) -> None:
    (weights.parent / "tokenizer.json").write_bytes(data)
    assert running_error(weights).startswith(join_place("tokenizer.json", message))


def test_a_tokenizer_that_is_too_large_or_too_slow_is_a_one_line_error(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tokenizer_files, "LARGEST_FILE", 100)
        assert running_error(weights) == "tokenizer.json is too large (expected a tokenizer.json of at most 100 bytes)"
    with monkeypatch.context() as patch:
        patch.setattr(tokenizer_files, "TIMEOUT", 0.001)
        expected = "tokenizer.json: the tokenizers library took longer than 0.001 seconds (expected a tokenizer.json)"
        assert running_error(weights) == expected
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(weights.parent / "none"))
        assert running_error(weights) == "tokenizers cannot start a subprocess: No such file or directory"


def test_a_missing_library_is_an_error_that_names_the_extra(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert (
        running_error(weights) == "tokenizing a text needs the [tokenizers] extra: pip install 'paramcount[tokenizers]'"
    )


def test_the_subprocess_imports_no_module_from_its_own_or_the_current_directory(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tokenizers", "json", "resource"):
        (weights.parent / f"{name}.py").write_text("open('ran', 'w')", encoding="utf-8")
    child = weights.parent / "child.py"
    child.write_bytes(tokenizer_files.SCRIPT.read_bytes())
    monkeypatch.setattr(tokenizer_files, "SCRIPT", child)
    monkeypatch.chdir(weights.parent)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert predict(weights, TEXT).ids == tuple(FROZEN["token_ids"])
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("raise MemoryError('none left')", "MemoryError: none left"),
        ("import sys; sys.exit(7)", "exit code 7"),
        ("print('[')", "exit code 0"),
    ],
)
def test_the_error_says_how_the_subprocess_ended(
    program: str, said: str, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = weights.parent / "child.py"
    child.write_text(program, encoding="utf-8")
    monkeypatch.setattr(tokenizer_files, "SCRIPT", child)
    assert (
        running_error(weights) == f"tokenizer.json: the tokenizers library crashed: {said} (expected a tokenizer.json)"
    )


def test_too_many_tokens_are_counted_and_not_listed(weights: Path) -> None:
    asked = {"tokenizer": (weights.parent / "tokenizer.json").read_text(encoding="utf-8"), "text": "w1 w2 w3"}
    assert tokenize(asked | {"most": 2}) == {"n": 3}
    assert tokenize(asked | {"most": 3})["ids"] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text is empty (expected at least one token)"),
        (" \n\t ", "text has no tokens (expected 1 to 11 tokens)"),
        ("w1 " * 12, "text: 12 tokens (expected 1 to 11 tokens)"),
        ("w1 " * 20_000, "text: 20,000 tokens (expected 1 to 11 tokens)"),
        ("w1 \udcff", "text contains bytes that are not text (expected UTF-8)"),
        ("w" * (1 << 22) + "w", "text has 4,194,305 characters (expected at most 4,194,304)"),
    ],
    ids=["empty", "blank", "one too many", "far too many", "no text", "too long"],
)  # fmt: skip
def test_a_text_that_cannot_run_is_a_one_line_error(text: str, message: str, weights: Path) -> None:
    assert running_error(weights, text) == message


def test_ids_beyond_the_vocabulary_are_a_one_line_error(weights: Path) -> None:
    write_words(weights.parent / "tokenizer.json", [*WORDS, "w\x1bx"])
    assert (
        running_error(weights, "w1 w\x1bx") == r"tokenizer: token 1, 'w\x1bx', has id 23 (expected an id from 0 to 22)"
    )


@pytest.mark.parametrize("top", [0, -1, 24, True, 2.0])
def test_the_number_of_next_words_is_between_one_and_the_vocabulary_size(top: Any, weights: Path) -> None:
    assert running_error(weights, top=top) == f"top = {str(top).lower()} (expected an integer from 1 to 23)"


# ---- weights that do not fit


def test_the_file_may_contain_masks_and_a_copy_of_the_head(tmp_path: Path, weights: Path) -> None:
    arrays = make_frozen_weights()
    others = {f"h.{i}.attn.bias": np.ones((1, 1, 11, 11)) for i in (0, 1)} | {
        "h.1.attn.masked_bias": np.array(-1e4),
        "lm_head.weight": arrays["wte.weight"],
    }
    path = write_weights(tmp_path / "w.safetensors", others | arrays, types={"h.0.attn.bias": "I8"})
    found = predict(path, TEXT)
    assert found.next_words == predict(weights, TEXT).next_words
    assert found.notes[1:] == ("unused tensors in the file: h.1.attn.masked_bias",)


def test_weights_of_several_dtypes_are_noted(tmp_path: Path) -> None:
    write_words(tmp_path / "tokenizer.json")
    path = write_weights(tmp_path / "w.st", make_frozen_weights(), "BF16", types={"ln_f.bias": "F32"})
    assert predict(path, TEXT).notes == ("weights stored as BF16 and F32, computed in float32",)


def test_a_broken_config_next_to_the_weights_is_a_one_line_error(weights: Path) -> None:
    (weights.parent / "config.json").write_text('{"model_type": "gpt2"', encoding="utf-8")
    assert running_error(weights).startswith(
        "model.safetensors: config.json: line 1 column 22: invalid JSON: unexpected end of file"
    )


# ---- what people and programs get


def make_run(n: int = 6) -> TextRun:
    words = [NextToken(" P\x1b", 5, 0.5), NextToken(None, 22, 0.12345), NextToken("", 7, 1e-9)]
    tokens = tuple(f" w{i}" for i in range(n))
    return TextRun(tokens, tuple(range(n)), (("logits", (n, 23)),), tuple(words), ("a note",), (), tokens, {})


def test_a_printed_word_has_its_probability() -> None:
    assert [format_next_token(word) for word in make_run().next_words] == [
        "50.00%  ␣P\\x1b  5",
        "12.35%  –  22",
        "< 0.01%  ''  7",
    ]


def test_a_long_list_of_tokens_is_shortened_in_the_middle() -> None:
    line = format_tokens(make_run(1024))
    assert line.startswith("1,024 tokens: ␣w0 0 · ␣w1 1 · ")
    assert "␣w19 19 · … · ␣w1004 1004" in line
    assert line.endswith(" · ␣w1023 1023")
    assert format_tokens(make_run(1)) == "1 token: ␣w0 0"


def test_a_long_or_hostile_token_stays_on_its_line() -> None:
    assert format_token("a\u202e\x1b\n b") == r"a\u202e\x1b\n␣b"
    assert len(format_token("x" * 1000)) == 60
