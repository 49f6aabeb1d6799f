"""Entries whose released files differ from the reference implementation, the config.json of such a release, and its
files.
"""

from __future__ import annotations

import csv
import json
import re
from math import prod
from pathlib import Path
from typing import Any

import pandas
import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.checkpoints.matching import expand_names
from paramcount.explore.models import export_models
from paramcount.loading import load
from tests.comparison import load_configs, load_reference
from tests.headers import Tensors, write_header
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


# ---- where a user compares with the reference

ENTRY = "t5-v1.1-large"
RELEASED = 783_150_080  # github sdpetrides/t5x-train-and-test, README.md


def test_a_difference_has_the_totals_of_the_reference_and_names_the_tensor_that_only_the_release_has(
    run: Runner,
) -> None:
    reference = load_reference()[ENTRY]["total"]
    found: dict[str, Any] = json.loads(run("diff", "t5-small", ENTRY, "--json").out)
    assert (found["total_b"], found["reference_total_b"]) == (RELEASED, reference)
    assert found["reference_total_a"] == found["total_a"] == load_reference()["t5-small"]["total"]
    line = f"{ENTRY}: the reference implementation ties lm_head and has {reference:,}"
    assert found["release_differences"] == [line]
    assert line in " ".join(run("diff", "t5-small", ENTRY).out.split())


def test_a_sweep_counts_what_the_reference_builds_of_every_row() -> None:
    config = load_configs()[ENTRY]
    (frame,) = pc.sweep(ENTRY, {"n_layers": [12, 24], "d_ff": [1024, 2816]}, columns=["total", "reference_total"])
    for _, row in frame.iterrows():
        document = config | {"num_layers": int(row["n_layers"]), "d_ff": int(row["d_ff"])}
        with pytest.warns(pc.ConfigWarning):
            assert pc.count(document).total == row["reference_total"]
    assert set(frame["total"] - frame["reference_total"]) == {32128 * 1024}  # vocab_size × d_model


def test_a_frame_has_the_total_of_the_reference() -> None:
    config = load_configs()[ENTRY]
    keys = ("d_model", "d_ff", "d_kv", "num_heads", "num_layers", "vocab_size", "feed_forward_proj")
    frame = pandas.DataFrame([{key: config[key] for key in keys}] * 5)
    result = pc.count_frame(frame, architecture="t5", columns=["reference_total"])
    assert result["reference_total"].tolist() == [load_reference()[ENTRY]["total"]] * 5


def test_the_page_has_the_total_of_the_reference_and_the_tensor_that_only_the_release_has() -> None:
    (model,) = export_models([load(ENTRY)])["models"]
    reference = load_reference()[ENTRY]["total"]
    assert (model["total"], model["reference_total"]) == (RELEASED, reference)
    assert model["release_difference"] == f"the reference implementation ties lm_head and has {reference:,}"


# ---- verify: the LM head of a release is a tensor of its own

SMALL = "t5-v1.1-small"
SMALL_TOTAL = 76_961_152  # github sdpetrides/t5x-train-and-test, README.md
HEAD = 32_128 * 512  # vocab_size × d_model
COPIES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")  # older files have the embedding three times


def list_tensors() -> Tensors:
    """The tensors of the release."""
    tensors = expand_names(tensor for tensor in pc.count(SMALL).tensors if tensor.tied_to is None)
    return {name: ("F32", tensor.shape) for name, tensor in tensors.items()}


@pytest.fixture
def release(tmp_path: Path) -> str:
    tensors = list_tensors()
    assert sum(prod(shape) for _, shape in tensors.values()) == SMALL_TOTAL
    copies = dict.fromkeys(COPIES, tensors["shared.weight"])
    return str(write_header(tmp_path / "release.json", tensors | copies))


def verify(run: Runner, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = run("verify", *arguments, "--json")
    return done.code, json.loads(done.out)


def test_the_released_files_match_the_entry(release: str, run: Runner) -> None:
    code, found = verify(run, SMALL, release)
    assert (code, found["ok"]) == (0, True)
    assert found["found"]["lm_head"] == found["expected"]["lm_head"] == HEAD
    assert sum(found["found"].values()) == SMALL_TOTAL


def test_without_the_lm_head_the_entry_misses_it(tmp_path: Path, run: Runner) -> None:
    tensors = list_tensors()
    del tensors["lm_head.weight"]
    code, found = verify(run, SMALL, str(write_header(tmp_path / "tied.json", tensors)))
    assert code == 1
    assert "lm_head.weight" in json.dumps(found["lines"])


def test_against_the_config_json_the_separate_lm_head_is_named_as_surplus(
    release: str, tmp_path: Path, run: Runner
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(load_configs()[SMALL]), encoding="utf-8")
    done = run("verify", str(config), release)
    text = " ".join((done.out + done.err).split())
    assert "lm_head.weight" in text
    assert f"files with a separate lm_head.weight hold {SMALL_TOTAL:,} parameters, {HEAD:,} more" in text


# ---- every zoo entry against the published totals of indices and of the Hub, to the last digit

# A difference is listed here with its reason, or it is an error.

ALL_DIGITS = re.compile(r"\d{1,3}(,\d{3}){2,}|\d{7,}")
FIGURES = ("checkpoint", "total", "unspecified")
EXPLAINED = {  # {id: published − total}
    # Fewer than the reference builds: the routing biases of 27 layers of 64 experts, the scales of the vision encoder
    "ernie-4.5-21b-a3b": -27 * 64,
    "nemotron-3-nano-omni-30b-a3b": -32 * 2 * 1280,
    "wizardcoder-15b": -2_127_872,  # unexplained, as its entry says
    # Routing biases, which are no parameters
    "glm-4.5v": 45 * 128,
    "kimi-linear-48b-a3b": 26 * 256,
    # CLIP's own patch embedding, which nothing reads
    "deepseek-ocr": 1024 * 3 * 14 * 14,
    # The protein encoder's learned positions, which rotary ones replace, and the frequencies of its layers
    "evolla-10b": 1026 * 1280 + 33 * 32,
    # Scales of the INT4 experts, shapes of two numbers as the Hub counts them, routing biases
    "kimi-k2.5": 31_708_938_240 + 69_120 * 16 + 60 * 384,
    # MTP layers; some with routing biases, MiMo's with FP8 scales and 576 values that are unexplained
    "ernie-4.5-300b-a47b": 989_888_512,
    "k-exaone-236b-a23b": 528_513_280 + 47 * 128,
    "longcat-flash": 1_197_899_776 + 28 * 768,
    "mimo-v2-flash": 987_820_224 + 18_716_736 + 47 * 256 + 576,
    "qwen3-next-80b-a3b": 1_650_471_424,
    "qwen3.5-0.8b": 20_452_864,
    "qwen3.5-2b": 60_828_160,
    "qwen3.5-4b": 120_599_552,
    "qwen3.5-9b": 243_290_624,
    "qwen3.5-27b": 424_699_392,
    "qwen3.5-35b-a3b": 844_640_768,
    "qwen3.5-122b-a10b": 2_523_679_232,
    "qwen3.5-397b-a17b": 6_595_568_128,
}


def read_totals() -> dict[str, int]:
    """{id: total} of the zoo's table, which tests/test_zoo.py compares with the counts."""
    with (zoo.CONFIGS / "zoo.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: int(row["total"]) for row in csv.DictReader(file) if row["total"]}


def list_differences() -> dict[str, int]:
    """{id: a published figure minus the total} of those that are neither the total nor the contents of the files."""
    differences = {}
    for id, total in read_totals().items():
        for figure in zoo.load_entry(id).published:
            text = str(figure.value)
            if figure.what not in FIGURES or not ALL_DIGITS.fullmatch(text):
                continue
            published = int(text.replace(",", ""))
            if published != total and published != pc.count(id).checkpoint:
                differences[id] = published - total
    return differences


def test_every_published_total_of_released_files_is_counted_or_its_difference_is_explained() -> None:
    assert list_differences() == EXPLAINED
