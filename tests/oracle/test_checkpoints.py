"""Checkpoints that the reference implementation wrote verify with nothing left over, in whatever form it writes them.

Damaged ones do not.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from paramcount import Verification, count, verify
from tests.cases import load_cases as cases
from tests.damaging import DAMAGES, list_complaints, list_findings, sample_names
from tests.headers import HEADERS, total_bytes, write_header
from tests.model_types import MODEL_TYPES
from tests.oracle import differential, flaws, passes
from tests.oracle.checkpoints import (
    CONFIGS,
    FROZEN,
    QUANTISED,
    build_model,
    freeze_header,
    header_path,
    read_tensors,
    write_model,
)

NAMES = sorted(
    {*CONFIGS, *passes.EVERY_WAY} - {"mllama.MllamaForCausalLM"}
)  # whose config.json is the section of another's
# Whose experts, and for some other tensors, stand under other names where the reference does not turn its names back as
# it saves.
OWN_NAMES = [
    "qwen2_moe", "qwen3_moe, sparse", "deepseek_v2", "deepseek_v3", "mixtral", "glm4_moe", "olmoe", "jamba",
    "qwen3_next", "lfm2_moe", "gpt_neox",
    "gemma3", "llava", "mllama",
]  # fmt: skip
# Under its own names so much is called otherwise that no table of ours says it all.
OWN_OTHERWISE = {
    "audio-spectrogram-transformer": "nearly everything",
    "cosmos3_edge": "fc1, which is the matrix of another MLP elsewhere, is up_proj, fc2 likewise down_proj",
    "deepseek_ocr2": "nearly everything in its vision encoder and projector",
    "deepseek_v4": "nearly everything",
    "dots3_note": "nearly everything in its encoders and projectors",
    "gte": "nearly everything",
    "hunyuan_vl": "nearly everything in its vision encoder and projector",
    "inkling2_text": "nearly everything",
    "inkling_mm_model": "nearly everything",
    "jina_embeddings_v3": "nearly everything",
    "kimi_k25": "nearly everything in its vision encoder and projector",
    "molmo2": "nearly everything",
    "nemotron_h_omni": "nearly everything in its encoders and projectors",
    "nomic_bert": "nearly everything",
    "olmo_hybrid": "the norms of some layers are called as others of other layers",
    "qwen4_exp": "the reference joins the shards of an n-gram table",
    "qwen4_exp.Qwen4ExpForCausalLM": "the reference joins the shards of an n-gram table",
    "qwen4_exp_text": "the reference joins the shards of an n-gram table",
    "step3p7": "nearly everything in its vision encoder and projector",
    "unlimited_ocr": "nearly everything in its vision encoders and projector",
    "qianfan_ocr": "nearly everything in its vision encoder and projector",
    "vision-encoder-decoder": "nearly everything in its vision encoder",
    "kyutai_speech_to_text": "nearly everything in its codec",
    "pi0": "a table that no forward pass reads is known under its released name alone",
    "qwen2_5_omni": "a table that no forward pass reads is known under its released name alone",
    "qwen2_5_omni_thinker": "a table that no forward pass reads is known under its released name alone",
}
# Saved with more than any layer reads, or with less than it needs.
OTHERWISE = {
    "inkling2": "the reference adds to its config that matrices are stored in FP8",
    "ernie4_5_vl_moe": "experts of texts and of images are one list",
    "esm": "names of norms are older ones, and the name of frequencies is a pattern",
    "marian": "sinusoids are left out",
    "mistral_large4": "names are Mistral's own",
    "mistral_large4_text": "names are Mistral's own",
    "molmo2": "the joined token embedding is cut into equal halves though the two that it had are not",
    "olmo_hybrid": (
        "convolutions of q, k and v are cut into equal parts though they are not: the reference could not load them"
    ),
}
# Whose config.json is saved as another than it was given as: verified against what was given.
READ_OTHERWISE = {
    "vision-encoder-decoder": "a null for mBART's heads is saved under a key of its encoder, where it is an error",
    "glm_moe_dsa": "num_local_experts as saved is not the number of experts that are stored, and read back as another",
}
SMALL = 300_000  # parameters


@pytest.fixture(autouse=True)
def _silent() -> None:
    differential.silence()


def verify_folder(folder: Path) -> Verification:
    return verify(folder / "config.json", folder)


def assert_complete(found: Verification, folder: Path) -> None:
    assert (found.ok, list_complaints(found)) == (True, "")
    assert found.expected == found.found
    assert (found.shapes_checked, found.by_shape) == (True, 0)
    assert found.size.predicted == found.size.found == total_bytes(read_tensors(folder))


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_has_the_tensors_of_its_config(name: str, tmp_path: Path) -> None:
    model = build_model(name)
    assert_complete(verify_folder(write_model(model, tmp_path / "one")), tmp_path / "one")
    found = verify_folder(write_model(model, tmp_path / "several", max_shard_size="30KB"))
    assert_complete(found, tmp_path / "several")
    assert found.files > 1


@pytest.mark.parametrize("name", NAMES)
def test_damage_to_it_is_found_and_named(name: str, tmp_path: Path) -> None:
    folder = write_model(build_model(name), tmp_path)
    tensors = read_tensors(folder)
    for damage, tensor in itertools.product(DAMAGES.values(), sample_names(list(tensors), 5)):
        for case in damage(tensors, tensor):
            found = verify(folder / "config.json", write_header(folder / "header.json", case.tensors))
            assert list_findings(found) == set(case.says)


@pytest.mark.parametrize("name", OWN_NAMES)
def test_saved_under_the_references_own_names_it_is_the_same(name: str, tmp_path: Path) -> None:
    model = build_model(name)
    assert_complete(verify_folder(write_model(model, tmp_path / "own", save_original_format=False)), tmp_path / "own")
    write_model(model, tmp_path / "original")
    assert read_tensors(tmp_path / "own").keys() != read_tensors(tmp_path / "original").keys()


@pytest.mark.parametrize("name", sorted(set(MODEL_TYPES) - set(OTHERWISE) - set(OWN_OTHERWISE)))
def test_every_architecture_is_known_under_the_references_own_names(name: str, tmp_path: Path) -> None:
    config = min((case for case in cases()[name] if "refused" not in case), key=lambda case: case["total"])["config"]
    model = differential.build_model(config, config.get("architectures", [MODEL_TYPES[name].cls])[0], "cpu")
    folder = write_model(model, tmp_path, save_original_format=False)
    assert_complete(verify(config, folder), folder)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_any_type_is_read(dtype: str, tmp_path: Path) -> None:
    import torch

    assert_complete(verify_folder(write_model(build_model("mixtral").to(getattr(torch, dtype)), tmp_path)), tmp_path)


@pytest.mark.parametrize("name", ["gpt2", "llama, tied", "gemma2", "bloom"])
def test_the_body_of_a_tied_model_is_all_of_it(name: str, tmp_path: Path) -> None:
    model = build_model(name)
    (body, whole) = write_model(model.base_model, tmp_path / "body"), write_model(model, tmp_path / "whole")
    found = verify(whole / "config.json", body)
    assert_complete(found, body)
    assert read_tensors(body).keys() != read_tensors(whole).keys()


@pytest.mark.parametrize("name", ["llama", "mixtral", "mamba2", "gpt_neox"])
def test_the_body_of_another_lacks_its_head_alone(name: str, tmp_path: Path) -> None:
    model = build_model(name)
    if model.config.get_text_config().tie_word_embeddings:
        pytest.skip("its head is its table")
    body, whole = write_model(model.base_model, tmp_path / "body"), write_model(model, tmp_path / "whole")
    found = verify(whole / "config.json", body)
    assert [(line.finding.kind, line.finding.what) for line in found.lines if not line.finding.ok] == [
        ("missing", "lm_head")
    ]


def test_a_copy_of_a_tied_head_is_accounted_for_and_another_head_is_not(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = write_model(build_model("llama, tied"), tmp_path)
    tensors = load_file(folder / "model.safetensors")
    table = tensors["model.embed_tokens.weight"]
    save_file({**tensors, "lm_head.weight": table.clone()}, folder / "model.safetensors")
    found = verify_folder(folder)
    assert found.ok
    assert found.beside == {"tied duplicate": table.numel()}
    save_file({**tensors, "lm_head.weight": table + 1}, folder / "model.safetensors")
    found = verify_folder(folder)
    assert not found.ok
    assert [(line.finding.kind, line.pattern) for line in found.lines] == [("differs", "lm_head.weight")]


@pytest.mark.parametrize("name", ["llama, tied", "gpt2, round", "gemma2"])
def test_of_a_table_and_its_head_either_may_be_there_alone_as_the_reference_reads_it(name: str, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_model

    model = build_model(name)
    folder = write_model(model, tmp_path)
    with_table = read_tensors(folder)
    save_model(model, str(folder / "model.safetensors"))
    assert read_tensors(folder).keys() - with_table.keys() == {"lm_head.weight"}
    assert_complete(verify_folder(folder), folder)
    again = type(model).from_pretrained(folder)
    assert torch.equal(again.get_input_embeddings().weight, model.get_input_embeddings().weight)


def test_a_compiled_model_is_the_same_model(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    model = build_model("llama")
    folder = write_model(model, tmp_path)
    save_file(torch.compile(model).state_dict(), folder / "model.safetensors")
    assert all(name.startswith("_orig_mod.") for name in read_tensors(folder))
    assert_complete(verify_folder(folder), folder)


def test_the_tables_that_the_writer_leaves_out_may_be_absent_and_no_others(tmp_path: Path) -> None:
    import transformers

    for name, of in MODEL_TYPES.items():
        written = getattr(getattr(transformers, of.cls), "_keys_to_ignore_on_save", None) or ()
        declared = count(
            min((case for case in cases()[name] if "refused" not in case), key=lambda case: case["total"])["config"]
        )
        left_out = {tensor.name for tensor in declared.tensors if tensor.name.endswith(declared.sizes.not_saved)}
        assert left_out == set(written) or name in ("pegasus", "fsmt"), name  # whose earlier writers did
    case = next(case for case in cases()["marian"] if "refused" not in case)
    folder = write_model(differential.build_model(case["config"], "MarianMTModel", "cpu"), tmp_path)
    found = verify_folder(folder)
    assert found.ok
    assert {part for part, n in found.expected.items() if n != found.found[part]} == {"position"}


def test_only_what_the_reference_reads_either_way_round_may_stand_so(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import conversion_mapping
    from transformers.core_model_loading import Transpose

    mappings = {name: conversion_mapping.get_checkpoint_conversion_mapping(name) or () for name in MODEL_TYPES}
    for name, steps in mappings.items():
        free = {
            step.target_patterns[0]
            for step in steps
            for op in getattr(step, "operations", ())
            if isinstance(op, Transpose) and op.check_dims
        }
        config = min((case for case in cases()[name] if "refused" not in case), key=lambda case: case["total"])[
            "config"
        ]
        assert {end.removeprefix(".") for end in count(config).sizes.transposable} == free or name in (
            "gpt2",
            "gpt-sw3",
        )  # as nanoGPT and MLX write them
    case = min((case for case in cases()["qwen3_vl_moe"] if "refused" not in case), key=lambda case: case["total"])
    model = differential.build_model(case["config"], "Qwen3VLMoeForConditionalGeneration", "cpu")
    folder = write_model(model, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    over = {
        name: tensor.transpose(1, 2).contiguous() if ".mlp.experts." in name else tensor
        for name, tensor in tensors.items()
    }
    save_file(over, folder / "model.safetensors")
    found = verify_folder(folder)
    assert_complete(found, folder)
    assert len(found.remarks) == 1
    again = type(model).from_pretrained(folder)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters()))


@pytest.mark.parametrize("name", QUANTISED)
def test_a_quantised_model_has_the_tensors_of_its_config(name: str, tmp_path: Path) -> None:
    found = verify_folder(QUANTISED[name](tmp_path))
    assert_complete(found, tmp_path)
    assert found.scheme is not None
    assert name.partition(", ")[2].split()[0] in found.scheme


@pytest.mark.parametrize("name", sorted(set(MODEL_TYPES) - set(OTHERWISE)))
def test_every_architecture_is_saved_under_the_declared_names(name: str, tmp_path: Path) -> None:
    known = [case for case in cases()[name] if "refused" not in case]
    for i, case in enumerate(case for case in known if case["total"] < SMALL or len(known) == 1):
        config = case["config"]
        model = differential.build_model(config, config.get("architectures", [MODEL_TYPES[name].cls])[0], "cpu")
        if not flaws.has_flaw(model):
            folder = write_model(model, tmp_path / str(i))
            assert_complete(verify(config if name in READ_OTHERWISE else folder / "config.json", folder), folder)


@pytest.mark.parametrize("name", FROZEN)
def test_the_frozen_headers_are_what_the_reference_saves(name: str) -> None:
    assert json.loads(header_path(name).read_text(encoding="utf-8")) == freeze_header(name)


def test_every_frozen_header_is_written_here() -> None:
    assert {header_path(name) for name in FROZEN} == set(HEADERS.glob("*.json"))
