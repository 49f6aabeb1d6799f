"""Weights that transformers initialises and saves, and a tokenizer.json that both sides load, against that library's
own logits.

The reference computes in float64 from the saved file, so that what differs is the rounding of one float32 pass.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from paramcount.errors import ParamcountError
from paramcount.execution.text import TextRun, run_text
from paramcount.loading import load_path
from tests.gpt2_files import train_tokenizer

TEXT = "the capital of France is\n the café 🍕"
TINY = {"vocab_size": 300, "n_positions": 64, "n_embd": 48, "n_layer": 3, "n_head": 4, "n_inner": None}
NARROW = {"vocab_size": 310, "n_positions": 40, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_inner": 20}
SMALL = {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None}

# Of the logarithm of a probability. Float32 has 24 bits, so that each sum of a pass is off by parts of 1e-7, and logits
# here are below 4.
# Seen: 2.8e-6 at most, no more than between the library's own passes in float32 and float64.
CLOSE = 2e-5


def make_model(keys: dict[str, Any], *, trained: bool = True, **more: Any) -> Any:
    """A model as the library initialises it.

    `trained`: with values added, so that no bias is zero, no gain one, and words differ clearly.
    """
    torch.manual_seed(7)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(**keys, bos_token_id=None, eos_token_id=None, **more)
    ).eval()
    if trained:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.2 * torch.randn_like(parameter)
    return model


def save_model(model: Any, folder: Path) -> Path:
    """The model, saved by the library, and a tokenizer beside it."""
    model.save_pretrained(folder)
    train_tokenizer().save(str(folder / "tokenizer.json"))
    return folder / "model.safetensors"


def run_saved(path: Path, text: str = TEXT, **options: Any) -> TextRun:
    """The pass of a saved model, read from the config.json that the library wrote."""
    return run_text(load_path(path.parent / "config.json"), str(path), text, **options)


def reference_logits(folder: Path, ids: tuple[int, ...]) -> Any:
    """The last token's logits in float64, by weights that the library loads from what it saved."""
    model = transformers.GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float64).eval()
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0, -1]


def assert_same_logits(found: TextRun, logits: Any) -> None:
    """Every token's probability as the reference has it, and the same five first."""
    vocab_size = len(logits)
    assert len(found.next_words) == vocab_size
    expected = torch.log_softmax(logits, dim=-1)
    for word in found.next_words:
        assert math.log(word.probability) == pytest.approx(expected[word.id].item(), abs=CLOSE)
    best = torch.topk(logits, 6)
    assert (best.values[:-1] - best.values[1:]).min() > 2 * CLOSE  # their order is no matter of rounding
    assert [word.id for word in found.next_words[:5]] == best.indices[:5].tolist()


def reference_tokens(folder: Path, text: str) -> list[int]:
    ids: list[int] = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))(text)[
        "input_ids"
    ]
    return ids


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("keys", [TINY, NARROW], ids=["n_inner null", "n_inner given"])
def test_the_next_words_of_saved_weights_are_those_of_the_reference(
    keys: dict[str, Any], dtype: str, tmp_path: Path
) -> None:
    path = save_model(make_model(keys).to(getattr(torch, dtype)), tmp_path)
    found = run_saved(path, top=keys["vocab_size"])
    assert list(found.ids) == reference_tokens(tmp_path, TEXT)
    assert_same_logits(found, reference_logits(tmp_path, found.ids))
    short = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64"}[dtype]
    assert found.notes == (f"weights stored as {short}, computed in float32",)


def test_weights_as_they_are_initialised_give_the_logits_of_the_reference(tmp_path: Path) -> None:
    path = save_model(make_model(TINY, trained=False), tmp_path)
    found = run_saved(path, top=300)
    assert_same_logits(found, reference_logits(tmp_path, found.ids))


def test_gpt2_small_itself_gives_the_logits_of_the_reference(tmp_path: Path) -> None:
    path = save_model(make_model(SMALL, trained=False), tmp_path)
    found = run_saved(path, TEXT * 3, top=50257)
    assert_same_logits(found, reference_logits(tmp_path, found.ids))


def test_the_text_fills_every_position(tmp_path: Path) -> None:
    path = save_model(make_model(TINY), tmp_path)
    text = "the" + " the" * 63
    found = run_saved(path, text, top=300)
    assert len(found.ids) == 64
    assert_same_logits(found, reference_logits(tmp_path, found.ids))
    with pytest.raises(ParamcountError, match=r"^text: 65 tokens \(expected 1 to 64 tokens\)$"):
        run_saved(path, text + " the")


def test_a_body_alone_predicts_no_token(tmp_path: Path) -> None:
    path = save_model(make_model(TINY).transformer, tmp_path)
    with pytest.raises(ParamcountError, match=r"config\.json: GPT2Model has no LM head"):
        run_saved(path)


def test_masks_and_the_head_of_older_files_change_nothing(tmp_path: Path) -> None:
    model = make_model(TINY)
    path = save_model(model, tmp_path)
    before = run_saved(path, top=300)
    arrays = {name: tensor.clone().contiguous() for name, tensor in model.state_dict().items()}
    for i in range(3):
        arrays[f"transformer.h.{i}.attn.bias"] = torch.tril(torch.ones(64, 64, dtype=torch.bool)).view(1, 1, 64, 64)
        arrays[f"transformer.h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    assert torch.equal(arrays["lm_head.weight"], arrays["transformer.wte.weight"])
    from safetensors.torch import save_file

    save_file(arrays, path)
    assert run_saved(path, top=300).next_words == before.next_words


def test_one_shard_of_several_is_the_whole_checkpoint(tmp_path: Path) -> None:
    whole = run_saved(save_model(make_model(TINY), tmp_path / "whole"), top=300)
    make_model(TINY).save_pretrained(tmp_path, max_shard_size="100KB")
    train_tokenizer().save(str(tmp_path / "tokenizer.json"))
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 2
    for shard in shards:
        assert run_saved(shard, top=300).next_words == whole.next_words


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("activation_function", "relu"),
        ("layer_norm_epsilon", 0.1),
        ("scale_attn_weights", False),
        ("n_head", 6),
        *(("activation_function", name) for name in ("gelu_fast", "gelu_accurate", "gelu_pytorch_tanh")),
    ],
)
def test_settings_of_the_pass_are_those_of_the_reference(key: str, value: Any, tmp_path: Path) -> None:
    path = save_model(make_model({**TINY, key: value}), tmp_path)
    found = run_saved(path, top=300)
    assert_same_logits(found, reference_logits(tmp_path, found.ids))
