"""Bad sizes, fields and mappings: each is refused in one line that names the place, and nothing is printed or
written.
"""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.zoo.entries import dump_sizes
from tests.batches import in_batches
from tests.refusals import read_refusals
from tests.refusing import Refuse, error_of, model_error
from tests.structures import ROWS, ZOO, keep_every

MOST = 2**31
LISTED = "what `paramcount architectures` lists"
OPTIONAL_PARTS = {"n_dense_layers", "n_shared_experts", "n_mtp_layers"}  # a model may have none of these
PRESENT = {  # by a flag or null
    "n_shared_experts": {
        "deepseek_vl_v2.DeepseekOCRForCausalLM", "deepseek_vl_v2.language", "dots3_note.language", "hunyuan",
    },
}  # fmt: skip


def read_zero_sizes() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """{size: (architectures, or their blocks, in which it may be 0, * for all; those in which it may not)}"""
    text = (Path(__file__).parent / "data" / "zero_sizes.txt").read_text(encoding="utf-8")
    rows = [line.split(": ") for line in text.splitlines() if not line.startswith("#")]
    split = {size: blocks.partition(" not ") for size, blocks in rows}
    return {size: (frozenset(allowed.split()), frozenset(other.split())) for size, (allowed, _, other) in split.items()}


ZERO = read_zero_sizes()
WITHOUT_FLAGS = {  # of their own
    "aya_vision", "clip", "clip_text_model", "clip_vision_model", "cohere2_vision", "cpmant", "deepseek_vl",
    "exaone4_5", "fun_asr_nano", "glmasr", "hyperclovax_vision_v2", "inkling_mm_model", "kimi_k25", "kimi_vl",
    "minicpmv2", "moshi", "paligemma", "pi0", "qwen2_audio", "qwen3_asr", "siglip_text_model",
    "speecht5.SpeechT5ForTextToSpeech", "vibevoice_asr", "video_llama_3", "voxtral",
}  # fmt: skip
WITHOUT_SIZES = {"deepseek_vl", "encoder-decoder"}  # of their own

LLAMA: dict[str, Any] = {
    "vocab_size": 1000, "d_model": 256, "n_layers": 2, "n_heads": 32, "n_kv_heads": 8, "d_head": 8, "d_ff": 512,
    "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False,
}  # fmt: skip
CHOSEN = ("gpt2-xl", "mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-20b")  # before others of the architecture
IDS = {ROWS[id]["architecture"]: id for id in (*ZOO, *CHOSEN)}
PAPER = {"id": "paper", "kind": "paper", "ref": "arXiv:2302.13971", "accessed": "2026-11-20"}


def make_entry(architecture: str = "llama", /, **changes: Any) -> dict[str, Any]:
    """A mapping with the config of some model of that architecture, and these sizes changed; None leaves one out."""
    config = LLAMA if architecture == "llama" else dump_sizes(zoo.load_entry(IDS[architecture]).sizes)
    config = {name: value for name, value in {**config, **changes}.items() if name not in changes or value is not None}
    return {"architecture": architecture, "config": config}


def list_blocks(architecture: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The blocks of sizes of a model and where they are; a language model that has an entry of its own is left out."""

    def walk(config: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
        if config.get("architecture") not in IDS:
            yield path, config
        for name, value in config.items():
            if isinstance(value, dict):
                yield from walk(value, (*path, name))

    return walk(make_entry(architecture)["config"], ())


def change_block(entry: dict[str, Any], path: Sequence[str], name: str, value: object) -> dict[str, Any]:
    """An entry with one size of one block changed; None leaves it out."""
    block = dict(entry["config"])
    entry = {**entry, "config": block}
    for part in path:
        block[part] = block = dict(block[part])
    block[name] = value
    if value is None:
        del block[name]
    return entry


def tuples_to_lists(document: Any) -> Any:
    """Tuples as lists, as a file has them."""
    if isinstance(document, Mapping):
        return {key: tuples_to_lists(value) for key, value in document.items()}
    return [tuples_to_lists(value) for value in document] if isinstance(document, (list, tuple)) else document


pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


# ---- sizes


@in_batches("architecture", keep_every(10, IDS))
def test_every_size_of_every_architecture_is_a_whole_number_in_its_range(architecture: str) -> None:
    sizes = {
        (path, name): value
        for path, block in list_blocks(architecture)
        for name, value in block.items()
        if type(value) is int
    }
    assert bool(sizes) == (architecture not in WITHOUT_SIZES)
    for (path, name), size in sizes.items():
        block = ".".join((architecture, *path))
        optional = name in OPTIONAL_PARTS and block not in PRESENT.get(name, ())
        allowed, other = ZERO.get(name, ((), ()))
        least = 0 if optional or ({"*", block} & {*allowed} and block not in other) else 1
        integer = "a positive integer" if least == 1 else "a non-negative integer"
        wrong = {
            least - 1: f"= {least - 1} (expected {integer})",
            -(10**40): f"= a number of more than 30 digits (expected {integer})",
            MOST + 1: "= 2147483649 (expected an integer of at most 2,147,483,648)",
            10**5000: "= a number of more than 30 digits (expected an integer of at most 2,147,483,648)",
            1.5: "= 1.5 (expected an integer)",
            size * 1.0 + 0.5 - 0.5: f"= {size}.0 (expected an integer)",
            float("nan"): "= nan (expected an integer)",
            float("inf"): "= inf (expected an integer)",
        }
        odd: tuple[tuple[object, str], ...] = (
            (True, "true"),
            (str(size), f"'{size}'"),
            ([size], f"[{size}]"),
            ({}, "{}"),
            (b"1", "a value of type bytes"),
        )
        cases = [*wrong.items(), *((value, f"= {said} (expected an integer)") for value, said in odd)]
        for value, message in cases:
            with pytest.raises(pc.ParamcountError) as caught:
                pc.load(change_block(make_entry(architecture), path, name, value))
            assert str(caught.value) == f"{'.'.join(('config', *path, name))} {message}"


@in_batches("architecture", keep_every(10, IDS))
def test_every_field_of_every_architecture_is_required_and_no_other_is_known(architecture: str) -> None:
    for path, block in list_blocks(architecture):
        known = type(reduce(getattr, path, zoo.load_entry(IDS[architecture]).sizes)).fields
        fields = [name for name in block if name != "architecture"]
        for name in fields:
            if not known[name].is_required:  # an entry may leave it out
                continue
            with pytest.raises(pc.ParamcountError) as caught:
                pc.load(change_block(make_entry(architecture), path, name, None))
            place = ".".join(("config", *path, name))
            assert str(caught.value) == f"{place} is missing (expected a value for every field)"
        last = fields[-1]
        message = model_error(change_block(make_entry(architecture), path, f"{last}x", 3))
        assert message.startswith(f"{'.'.join(('config', *path, last))}x: unknown field (expected ")
        assert f"; did you mean {last}" in message
        others = len(known) - 5
        assert (f" or {others} other{'s' * (others > 1)}); " in message) == (others > 0)


@in_batches("architecture", keep_every(10, IDS))
def test_every_flag_of_every_architecture_is_true_or_false(architecture: str) -> None:
    flags = [
        (path, name)
        for path, block in list_blocks(architecture)
        for name, value in block.items()
        if isinstance(value, bool)
    ]
    assert bool(flags) == (architecture not in WITHOUT_FLAGS)
    for path, name in flags:
        for value, said in ((0, "0"), (1, "1"), ("no", "'no'"), ("true", "'true'"), ([], "[]")):
            with pytest.raises(pc.ParamcountError) as caught:
                pc.load(change_block(make_entry(architecture), path, name, value))
            assert str(caught.value) == f"{'.'.join(('config', *path, name))} = {said} (expected true or false)"


def test_the_largest_size_is_counted_and_stays_exact() -> None:
    assert pc.count(make_entry(vocab_size=MOST)).embedding == MOST * 256


def test_a_count_of_optional_parts_may_be_zero() -> None:
    count = pc.count(make_entry("deepseek_v3", n_dense_layers=0, n_shared_experts=0, n_mtp_layers=0))
    assert (count.components["shared_experts"], count.mtp, count.components["mlp"]) == (0, 0, 0)
    assert pc.count(make_entry("qwen3_moe", dense_layers=[])).components["mlp"] == 0


def read_entry(text: str) -> dict[str, Any]:
    """An entry from the name of an architecture and changed sizes, such as `mllama {"vision.n_heads": 0}`."""
    architecture, _, changes = text.partition(" ")
    entry = make_entry(architecture)
    for name, value in json.loads(changes).items():
        *path, size = name.split(".")
        entry = change_block(entry, path, size, value)
    return entry


@pytest.mark.parametrize(("text", "message"), read_refusals("sizes"))
def test_sizes_that_contradict_each_other_are_rejected(text: str, message: str, refuse: Refuse) -> None:
    spec = read_entry(text)
    assert model_error(spec) == message
    path = Path("configs/llama/x.yaml")
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(tuples_to_lists(spec)), encoding="utf-8")
    assert refuse("configs/llama/x.yaml", "-o", "out.csv") == f"configs/llama/x.yaml: {message}"


def test_a_list_has_at_most_10_000_items() -> None:
    message = "config.dense_layers = [0, 1, 2, …] (expected a list of at most 10,000 items)"
    assert model_error(make_entry("qwen3_moe", dense_layers=[*range(10_001)])) == message


# ---- entries: everything but the sizes

NEITHER = "model_type is missing (expected a config.json with model_type, or a zoo entry with architecture and config)"


def publish_figure(value: object, source: str = "paper") -> dict[str, Any]:
    return {"sources": [PAPER], "published": [{"what": "total", "value": value, "exact": True, "source": source}]}


LONG = (
    '{"name": "%s"}' % ("n" * 2001),
    f"name = '{'n' * 28}…{'n' * 29}' (expected a string of at most 2000 characters)",
)


@pytest.mark.parametrize(("fields", "message"), [*read_refusals("fields"), LONG])
def test_a_wrong_field_is_rejected_alike_in_a_mapping_and_in_a_file(fields: str, message: str, refuse: Refuse) -> None:
    spec = make_entry() | json.loads(fields)
    assert model_error(spec) == message
    Path("x.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    assert refuse("./x.yaml", "-o", "out.csv") == f"x.yaml: {message}"


class Unprintable:
    def __repr__(self) -> str:
        raise AssertionError


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, NEITHER),
        ({1: 2}, NEITHER),
        (make_entry() | {1: 2}, "1 is not the name of a field (expected a string)"),
        (make_entry() | {None: 2}, "None is not the name of a field (expected a string)"),
        ({"architecture": "llama", "config": LLAMA | {1: 2}},
         "config.1 is not the name of a field (expected a string)"),
        (make_entry(n_heads=Unprintable()), "config.n_heads = a value of type Unprintable (expected an integer)"),
        (make_entry(n_heads={10**5000}), "config.n_heads = a value of type set (expected an integer)"),
        (make_entry("qwen3_moe", dense_layers=itertools.count()),
         "config.dense_layers = a value of type count (expected a list of at most 10,000 items)"),
        ({"architecture": 10**5000, "config": {}},
         f"architecture: unknown architecture a value of type int (expected {LISTED})"),
        (make_entry() | publish_figure(10**5000),
         "published.0.value = a number of more than 30 digits (expected an integer of at most "
         "1,000,000,000,000,000,000,000,000,000,000 or a string)"),
        (make_entry() | {"released": datetime.datetime(2024, 7, 23, tzinfo=datetime.UTC)},
         "released = a value of type datetime (expected a date such as 2024-07-23)"),
        (make_entry() | {"released": float("nan")}, "released = nan (expected a date such as 2024-07-23)"),
        (make_entry() | {"id": "\ud800"}, r"id = '\ud800' (expected a Unicode string)"),
        ({"architecture": "llama", "config": LLAMA | {"\ud800": 1}}, r"config = '\ud800' (expected a Unicode string)"),
    ],
)  # fmt: skip
def test_a_mapping_that_no_file_can_contain_is_rejected(spec: object, message: str) -> None:
    assert model_error(spec) == message


def test_a_number_of_too_many_digits_for_a_key_is_rejected() -> None:
    assert model_error(make_entry() | {10**5000: 1}).endswith("is not the name of a field (expected a string)")


def test_any_mapping_and_any_date_will_do() -> None:
    spec = MappingProxyType(
        {"architecture": "llama", "config": MappingProxyType(LLAMA), "released": datetime.date(2024, 7, 23)}
    )
    model = pc.load(spec)
    assert (model.released, model.id) == (datetime.date(2024, 7, 23), "unnamed")
    assert pc.load({**spec, "released": "2024-07-23"}) == model
    assert pc.count(spec).total == pc.count(make_entry()).total == pc.count(model).total


@pytest.mark.parametrize(
    "spec", [None, 3, 1.5, True, b"gpt2-small", ["gpt2-small"], ("gpt2-small",), {"gpt2-small"}, object, pc.count]
)
def test_objects_that_are_not_models_are_rejected(spec: object) -> None:
    accepted = (
        "a zoo id, a Hugging Face id or URL, a path, a mapping, a transformers config or a Model from paramcount.load"
    )
    assert model_error(spec) == f"{type(spec).__name__} is not a model (expected {accepted})"


@pytest.mark.parametrize("models", [None, 3, b"gpt2-small", object])
def test_only_lists_of_models_are_compared(models: Any) -> None:
    with pytest.raises(
        pc.ParamcountError,
        match=rf"^{type(models).__name__} is not a list of models \(expected a list of any of these: a zoo id, ",
    ):
        pc.compare(models)


def test_one_model_is_compared_without_a_list_around_it() -> None:
    model = pc.load("gpt2-small")
    for one in ("gpt2-small", model, make_entry() | {"id": "gpt2-small"}):
        models: Any = one
        assert list(pc.compare(models)["id"]) == ["gpt2-small"]
    assert list(pc.compare([])["id"]) == []


def test_a_model_with_a_zoo_id_and_other_sizes_is_compared_as_a_separate_row() -> None:
    assert list(pc.compare(["gpt2-small", make_entry() | {"id": "gpt2-small"}]).total) == [
        124_439_808,
        pc.count(make_entry()).total,
    ]
    assert len(pc.compare(["gpt2-small", "gpt2", "gpt2-small"])) == 1


def test_an_estimate_has_nothing_to_count() -> None:
    claims = [{"what": "total", "value": "1.8T", "by": "somebody", "source": "paper"}]
    spec = {"id": "rumour", "estimate": True, "claims": claims, "sources": [PAPER]}
    expected = "rumour is a third-party estimate; its sizes are unpublished; run `paramcount rumour --estimates`"
    assert pc.load(spec).estimate
    assert error_of(pc.count, spec) == expected
    assert error_of(pc.compare, [spec]) == expected
    assert model_error(spec | {"reference": "GPT"}) == "reference is set in an estimate (expected claims only)"
