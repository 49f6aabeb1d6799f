"""Running a model: weights from files and mappings, caches, errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcount as pc
from paramcount.counting.sum_weights import list_flows
from paramcount.execution import memory, run_model
from paramcount.flow import HiddenStates, list_steps
from paramcount.flow.operation import Array
from tests.gpt2_files import write_weights
from tests.refusing import error_of
from tests.small_models import GPT2, LLAMA, MIXTRAL, TOKENS, make_arrays, write_model

CLOSE = 2e-5


def run_arrays(config: dict[str, Any], tokens: list[int] = TOKENS) -> pc.Run:
    return pc.run(config, make_arrays(config), tokens)


# ---- weights

GPT_OSS = {
    "model_type": "gpt_oss", "vocab_size": 23, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 64, "num_local_experts": 4, "num_experts_per_tok": 2,
}  # fmt: skip


def test_inputs_per_token_are_cut_to_the_present_tokens_and_end_with_their_default() -> None:
    """KOSMOS-2.5: segments of the first three tokens, of which two go in first."""
    text = {"vocab_size": 96, "embed_dim": 16, "layers": 1, "attention_heads": 2, "ffn_dim": 20}
    config = {"model_type": "kosmos-2.5", "text_config": text, "vision_config": {"num_hidden_layers": 1}}
    sizes = pc.load(config).sizes
    arrays = make_arrays(config)
    tokens, segments = [5, 9, 7, 11], np.array([1, 0, 1])
    whole = run_model(sizes, arrays, tokens, segments=np.array([1, 0, 1, 0])).logits
    parts = run_model(sizes, arrays, tokens[:2], segments=segments)
    found = np.concatenate((parts.logits, parts.append(tokens[2:3]).logits))
    assert found == pytest.approx(whole[:3], abs=1e-5)
    assert run_model(sizes, arrays, tokens, segments=segments).logits == pytest.approx(whole, abs=1e-5)
    assert np.abs(run_model(sizes, arrays, tokens).logits - whole).max() > 1e-3


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("config", [LLAMA, MIXTRAL, GPT2])
def test_a_checkpoint_on_disk_gives_the_logits_of_its_arrays(
    config: dict[str, Any], shards: int, tmp_path: Path
) -> None:
    expected = pc.run(config, make_arrays(config), TOKENS).logits
    found = pc.run(str(tmp_path), write_model(tmp_path, config, shards=shards), TOKENS).logits
    assert (found.dtype.name, found.shape) == ("float32", (6, 23))
    assert np.allclose(found, expected, atol=CLOSE)


@pytest.mark.parametrize("config", [LLAMA, GPT2])  # matrices stored as [out, in] and as [in, out]
@pytest.mark.parametrize("block", [1, 50, 1 << 22])  # elements: each row alone, some rows, whole matrices
@pytest.mark.parametrize("dtype", ["F16", "BF16"])
def test_half_precision_is_widened_before_it_is_used(
    dtype: str, block: int, config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paramcount.execution.narrow.BLOCK", block)
    halves = {name: narrow(array, dtype) for name, array in make_arrays(config).items()}
    found = pc.run(config, write_model(tmp_path, config, dtype), TOKENS).logits
    assert np.allclose(found, pc.run(config, halves, TOKENS).logits, atol=CLOSE)


def test_a_nan_in_the_last_row_of_a_narrow_matrix_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paramcount.execution.narrow.BLOCK", 50)
    name = "model.layers.1.mlp.down_proj.weight"
    arrays = make_arrays(LLAMA)
    arrays[name][-1, -1] = np.nan
    write_weights(tmp_path / "model.safetensors", arrays, "BF16")
    with pytest.raises(pc.ParamcountError, match=f"{name} has NaN values"):
        pc.run(LLAMA, str(tmp_path), TOKENS)


def narrow(array: Array, dtype: str) -> Array:
    """The values that are left of float32 ones in two bytes."""
    if dtype == "F16":
        return array.astype(np.float16).astype(np.float32)
    return (array.view(np.uint32) >> 16 << 16).view(np.float32)


@pytest.mark.parametrize("blocks", [(16, 16), (0, 0)])
def test_values_of_eight_bits_are_multiplied_by_their_scales(blocks: tuple[int, int], tmp_path: Path) -> None:
    """0x38 is 1 and 0x40 is 2 in E4M3, so a matrix of them is its scales, or twice that."""
    config = LLAMA | {"hidden_size": 32, "head_dim": 8, "quantization_config": {"quant_method": "fp8"}}
    if blocks[0]:
        config["quantization_config"]["weight_block_size"] = list(blocks)
    arrays, types, plain = make_arrays(config), {}, {}
    scales: Array
    for name in [name for name in arrays if name.endswith("_proj.weight")]:
        rows, columns = arrays[name].shape
        bits = np.where(np.indices((rows, columns)).sum(0) % 2, 0x40, 0x38)
        scales = np.full((1, 1), 0.25, np.float32)
        if blocks[0]:
            n = (-(-rows // blocks[0]), -(-columns // blocks[1]))
            scales = (1 + np.arange(n[0] * n[1], dtype=np.float32).reshape(n)) / 16
        spread = scales.repeat(blocks[0] or rows, 0)[:rows].repeat(blocks[1] or columns, 1)[:, :columns]
        plain[name] = np.where(bits == 0x40, 2, 1) * spread
        arrays[name], types[name] = bits.astype(np.int8), "F8_E4M3"
        arrays[name + ("_scale_inv" if blocks[0] else "_scale")] = scales if blocks[0] else scales[0, 0]
    write_weights(tmp_path / "model.safetensors", arrays, types=types)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    expected = pc.run(config, make_arrays(config) | plain, TOKENS).logits
    assert np.allclose(pc.run(str(tmp_path), tmp_path, TOKENS).logits, expected, atol=CLOSE)


def test_the_experts_of_gpt_oss_are_stored_in_four_bits_as_rows_of_outputs(tmp_path: Path) -> None:
    """Low halves first: 0x72 is 1, 6 and 0x9D is -3, -0.5 in E2M1; a scale of 126 is 1/2, one of 129 is 4."""
    quantised = GPT_OSS | {"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}}
    arrays, plain = make_arrays(GPT_OSS), {}
    for name in [name for name in arrays if name.endswith(("gate_up_proj", "down_proj"))]:
        n, inputs, outputs = arrays[name].shape
        is_first = np.indices((n, outputs, inputs // 32)).sum(0) % 3 == 0
        values = np.where(is_first[..., None], np.tile([1, 6], 16) * 0.5, np.tile([-3, -0.5], 16) * 4)
        plain[name] = values.reshape(n, outputs, inputs).transpose(0, 2, 1)
        del arrays[name]
        bits = np.where(is_first[..., None], 0x72, 0x9D - 256) * np.ones(16, int)
        arrays |= {f"{name}_blocks": bits, f"{name}_scales": np.where(is_first, 126, 129 - 256)}
    types = {name: "U8" for name in arrays if name.endswith(("_blocks", "_scales"))}
    write_weights(tmp_path / "model.safetensors", arrays, types=types)
    (tmp_path / "config.json").write_text(json.dumps(quantised), encoding="utf-8")
    expected = pc.run(GPT_OSS, make_arrays(GPT_OSS) | plain, TOKENS).logits
    assert np.allclose(pc.run(str(tmp_path), tmp_path, TOKENS).logits, expected, atol=CLOSE)


@pytest.mark.parametrize("writer", ["ModelOpt", "compressed-tensors"])
def test_values_of_nvfp4_are_multiplied_by_two_scales(writer: str, tmp_path: Path) -> None:
    """As above; in E4M3, 0x38 is 1 and 0x30 is 1/2. The scale of the tensor is a factor or, inverted, a divisor."""
    arrays, types, plain = make_arrays(LLAMA), {}, {}
    for name in [name for name in arrays if name.endswith("_proj.weight")]:
        rows, columns = arrays[name].shape
        is_first = np.indices((rows, -(-columns // 16))).sum(0) % 3 == 0
        blocks = np.where(is_first[..., None], np.tile([1, 6], 8), np.tile([-3, -0.5], 8) / 2) / 4
        plain[name] = blocks.reshape(rows, -1)[:, :columns]
        bits = np.where(np.repeat(is_first, 8, axis=1), 0x72, 0x9D - 256)[:, : columns // 2]
        stem = name.removesuffix("weight")
        del arrays[name]
        scales = {f"{stem}weight_scale": np.where(is_first, 0x38, 0x30)}
        if writer == "ModelOpt":
            added = {name: bits, f"{stem}weight_scale_2": np.array(0.25), f"{stem}input_scale": np.array(1)}
            types[name] = "U8"
        else:
            added = {f"{stem}weight_packed": bits, f"{stem}weight_global_scale": np.array([4])}
            types[f"{stem}weight_packed"] = "U8"
        arrays |= added | scales
        types |= dict.fromkeys(scales, "F8_E4M3")
    write_weights(tmp_path / "model.safetensors", arrays, types=types)
    expected = pc.run(LLAMA, make_arrays(LLAMA) | plain, TOKENS).logits
    assert np.allclose(pc.run(LLAMA, tmp_path, TOKENS).logits, expected, atol=CLOSE)


def test_a_format_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    arrays, name = make_arrays(LLAMA), "model.layers.0.self_attn.q_proj."
    del arrays[f"{name}weight"]
    arrays |= {
        f"{name}qweight": np.zeros((2, 16)),
        f"{name}scales": np.zeros((1, 16)),
        f"{name}qzeros": np.zeros((1, 2)),
    }
    write_weights(tmp_path / "model.safetensors", arrays, types={f"{name}qweight": "I32", f"{name}qzeros": "I32"})
    with pytest.raises(pc.ParamcountError) as caught:
        pc.run(LLAMA, tmp_path, TOKENS)
    assert caught.value.found == "is stored as GPTQ 4-bit; GPTQ weights can be planned and verified, but not run"
    assert caught.value.expected == "F64, F32, F16, BF16, I64, FP8, MXFP4 or NVFP4"


def test_a_table_of_ids_is_stored_as_integers(tmp_path: Path) -> None:
    """DeepSeek V4: layers that choose experts by token id have a table of them, I64 in the files of the reference."""
    config = {
        "model_type": "deepseek_v4", "vocab_size": 23, "num_hidden_layers": 1, "num_attention_heads": 4, "head_dim": 16,
        "sliding_window": 6, "hidden_size": 32, "o_groups": 2, "q_lora_rank": 8, "o_lora_rank": 4,
        "qk_rope_head_dim": 8, "moe_intermediate_size": 8, "n_routed_experts": 4, "num_experts_per_tok": 2,
        "num_hash_layers": 1, "layer_types": ["sliding_attention"],
    }  # fmt: skip
    arrays = make_arrays(config)
    (name,) = (name for name in arrays if name.endswith("tid2eid"))
    arrays[name] = np.arange(23 * 2).reshape(23, 2) % 4
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_weights(tmp_path / "model.safetensors", arrays, types={name: "I64"})
    found = pc.run(str(tmp_path), tmp_path, TOKENS).logits
    assert found == pytest.approx(pc.run(config, arrays, TOKENS).logits, abs=CLOSE)


GEMMA = {
    "model_type": "gemma", "vocab_size": 23, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 8, "intermediate_size": 24,
}  # fmt: skip


@pytest.mark.parametrize("flag", [True, False, None])
def test_the_tokens_of_a_prompt_see_later_ones_if_the_config_says_so(flag: bool | None) -> None:
    # GemmaAttention: is_causal = not use_bidirectional_attention; a token that follows the prompt changes nothing in it
    config = {**GEMMA, "use_bidirectional_attention": flag}
    run, other = (run_arrays(config, [*TOKENS[:-1], last]) for last in (3, 4))
    assert bool(np.abs(run.logits[0] - other.logits[0]).max() > 1e-3) is (flag is True)
    assert run.append([5]).logits.shape == (1, 23)
    assert len([step for step in pc.trace(config, tokens=7).steps if step.op == "last position"]) == 1
    mask = [step.mask for step in pc.trace(config, tokens=7).steps if step.mask]
    assert bool(mask) is (flag is not True)


@pytest.mark.parametrize(("flag", "sees_later"), [(None, True), (False, False)])
def test_the_tokens_of_a_prompt_of_paligemma_see_later_ones(flag: bool | None, sees_later: bool) -> None:
    # PaliGemmaConfig.__post_init__ sets use_bidirectional_attention of its text_config if that has null or none
    text = {**GEMMA, "use_bidirectional_attention": flag}
    vision = {
        "model_type": "siglip_vision_model", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 1, "image_size": 4, "patch_size": 2,
    }  # fmt: skip
    config = {
        "model_type": "paligemma", "text_config": text, "vision_config": vision, "projection_dim": 16,
        "image_token_index": 22,
    }  # fmt: skip
    run, other = (run_arrays(config, [1, 2, last]) for last in (3, 4))
    assert bool(np.abs(run.logits[0] - other.logits[0]).max() > 1e-3) is sees_later


@pytest.mark.parametrize(("flag", "seen"), [(True, 7 * 8 // 2), (False, 7 * 7), (None, 7 * 7)])
def test_a_trace_counts_the_later_tokens_that_is_causal_shows(flag: bool | None, seen: int) -> None:
    trace = pc.trace({**LLAMA, "is_causal": flag}, tokens=7)
    weighted = {step.visible_multiply_adds for step in trace.steps if step.op == "QKᵀ"}
    heads, d_head = LLAMA["num_attention_heads"], LLAMA["hidden_size"] // LLAMA["num_attention_heads"]
    assert weighted == {seen * heads * d_head}


def test_names_may_have_another_prefix_and_lack_the_tied_original() -> None:
    config = GPT2 | {"tie_word_embeddings": True}
    arrays = make_arrays(config)
    expected = pc.run(config, arrays, TOKENS).logits
    longer = {f"transformer.{name.removeprefix('transformer.')}": array for name, array in arrays.items()}
    assert np.array_equal(pc.run(config, longer, TOKENS).logits, expected)
    (table,) = [name for name in arrays if name.endswith("wte.weight")]
    copied = {"lm_head.weight" if name == table else name: array for name, array in arrays.items()}
    assert np.array_equal(pc.run(config, copied, TOKENS).logits, expected)


def test_experts_may_be_stacked_and_matrices_fused_in_the_file() -> None:
    arrays = make_arrays(MIXTRAL)
    expected = pc.run(MIXTRAL, arrays, TOKENS).logits
    stacked = {name: array for name, array in arrays.items() if ".experts." not in name}
    for i in range(3):
        start = f"model.layers.{i}.block_sparse_moe.experts."
        if f"{start}0.w1.weight" not in arrays:
            start = f"model.layers.{i}.mlp.experts."
        gate, down, up = (np.stack([arrays[f"{start}{e}.w{n}.weight"] for e in range(4)]) for n in (1, 2, 3))
        stacked |= {f"{start}gate_up_proj": np.concatenate((gate, up), axis=1), f"{start}down_proj": down}
        q, k, v = (stacked.pop(f"model.layers.{i}.self_attn.{name}_proj.weight") for name in "qkv")
        stacked[f"model.layers.{i}.self_attn.qkv_proj.weight"] = np.concatenate((q, k, v))
    assert np.allclose(pc.run(MIXTRAL, stacked, TOKENS).logits, expected, atol=CLOSE)


# ---- runs


@pytest.mark.parametrize("config", [LLAMA, MIXTRAL, GPT2])
def test_further_tokens_with_a_cache_give_the_logits_of_the_whole_text(config: dict[str, Any]) -> None:
    whole = run_arrays(config).logits
    run = run_arrays(config, TOKENS[:2])
    parts = [run.logits]
    for tokens in ([TOKENS[2]], TOKENS[3:5], [TOKENS[5]]):
        run = run.append(tokens)
        parts.append(run.logits)
    assert np.allclose(np.concatenate(parts), whole, atol=CLOSE)


def test_a_run_is_continued_only_once() -> None:
    run = run_arrays(LLAMA)
    run.append([1])
    with pytest.raises(pc.ParamcountError, match=r"this run was already continued \(expected the last run"):
        run.append([2])


def test_the_steps_of_a_watched_run_are_its_intermediate_values() -> None:
    run = pc.run(LLAMA, make_arrays(LLAMA), TOKENS, watch=True)
    assert np.array_equal(run.steps[-1].array, run.logits)
    assert (run.steps[0].operation, run.steps[0].name, run.steps[0].layer) == (
        "lookup",
        "model.embed_tokens.weight",
        (),
    )
    shares = [step.array for step in run.steps if step.operation == "attention weights"]
    assert [array.shape for array in shares] == 3 * [(4, 6, 6)]
    assert all(np.allclose(array.sum(-1), 1, atol=CLOSE) for array in shares)
    assert {step.layer for step in run.steps} == {(), (0,), (1,), (2,)}
    assert pc.run(LLAMA, make_arrays(LLAMA), TOKENS).steps == []


# ---- errors


def change(name: str, array: Array | None) -> dict[str, Array]:
    arrays = {**make_arrays(LLAMA), name: array}
    return {name: array for name, array in arrays.items() if array is not None}


NORM = "model.norm.weight"


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (change(NORM, None), f"the weights mapping has no tensor {NORM} (expected shape [16])"),
        (
            change("model.layers.2.mlp.up_proj.weight", np.ones((16, 20))),
            "tensor model.layers.2.mlp.up_proj.weight has shape [16, 20] (expected [20, 16], transposed)",
        ),
        (
            change(NORM, np.full(16, np.nan)),
            f"the weights mapping: tensor {NORM} has NaN values (expected finite weights)",
        ),
        (
            change(NORM, np.full(16, 1e39)),
            f"the weights mapping: tensor {NORM} has infinite values (expected finite weights)",
        ),
        (
            change(NORM, np.array(["a"] * 16)),
            f"the weights mapping: tensor {NORM} has the dtype <U1 (expected numbers)",
        ),
        (change(NORM, np.full(16, 3e38)), "logits are not finite"),
    ],
)
def test_weights_that_do_not_fit_are_a_one_line_error(weights: dict[str, Array], message: str) -> None:
    assert message in error_of(pc.run, LLAMA, weights, TOKENS)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([], "tokens is empty (expected at least one token id)"),
        ([1.5], "tokens is not a list of integers (expected a list of token ids)"),
        ([1, 23], "tokens: unknown token id 23 (expected 0 to 22)"),
        ([-1], "tokens: unknown token id -1 (expected 0 to 22)"),
        ([0] * 12, "unnamed: 12 tokens exceed the 11 positions of the position embedding (expected at most 11)"),
    ],
)
def test_tokens_that_a_model_does_not_have_are_a_one_line_error(tokens: list[Any], message: str) -> None:
    assert error_of(pc.run, GPT2, make_arrays(GPT2), tokens) == message


def test_weights_of_another_type_are_an_error() -> None:
    with pytest.raises(pc.ParamcountError, match=r"^weights is of type int \(expected the path of a checkpoint"):
        pc.run(GPT2, 3, [0])  # type: ignore[arg-type]


def test_further_tokens_may_not_exceed_the_positions() -> None:
    run = run_arrays(GPT2, [0] * 10)
    with pytest.raises(pc.ParamcountError, match="12 tokens exceed the 11 positions"):
        run.append([0, 0])


def test_a_zoo_entry_without_settings_cannot_run() -> None:
    entry = {"architecture": "gpt2", "config": pc.load(GPT2).sizes.to_dict()}
    with pytest.raises(pc.ParamcountError) as caught:
        pc.run(entry, make_arrays(GPT2), TOKENS)
    assert "because the norm_eps, attention_scale and activation settings are unknown" in str(caught.value)
    assert str(caught.value).endswith("(expected the config.json of the model, which states them)")


def test_a_missing_file_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(pc.ParamcountError, match="contains no checkpoint"):
        pc.run(LLAMA, tmp_path, TOKENS)


def test_an_incomplete_checkpoint_is_a_one_line_error(tmp_path: Path) -> None:
    write_model(tmp_path, LLAMA, shards=3)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(pc.ParamcountError, match=r"model-00002-of-00003.safetensors"):
        pc.run(LLAMA, tmp_path, TOKENS)


def test_a_pass_that_does_not_fit_into_memory_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "find_available_memory", lambda: 10_000)
    with pytest.raises(pc.ParamcountError, match=r"needs .* kB of memory, but 10\.0 kB is available"):
        run_arrays(LLAMA)


def test_the_largest_score_matrix_is_part_of_the_memory_that_a_pass_needs() -> None:
    out, _ = next(iter(list_flows(pc.load(LLAMA).sizes)))
    sizes = [memory.estimate_memory(out, n) for n in (1000, 2000)]
    assert sizes[1] > 4 * 3 * 4 * 2000**2
    assert sizes[1] > 2 * sizes[0]


# ---- settings of zoo entries


def test_an_entry_runs_with_the_settings_that_it_states() -> None:
    sizes = pc.load(LLAMA).sizes.to_dict()
    entry = {"architecture": "llama", "config": sizes, "settings": {"rms_norm_eps": 0.5, "rope_theta": 100.0}}
    expected = pc.run(LLAMA | {"rms_norm_eps": 0.5, "rope_theta": 100.0}, make_arrays(LLAMA), TOKENS).logits
    assert np.array_equal(pc.run(entry, make_arrays(LLAMA), TOKENS).logits, expected)


# ---- encoders

T5 = {"model_type": "t5", "vocab_size": 23, "d_model": 8, "d_kv": 4, "d_ff": 12, "num_layers": 2, "num_heads": 2}


class CountedWeights:
    """Weights that count how often each of them is read."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays, self.reads = arrays, dict.fromkeys(arrays, 0)

    def read(self, name: str, shape: tuple[int, ...], index: int | None) -> Array:
        self.reads[name] += 1
        return self.arrays[name]

    read_matrix = read


def test_what_depends_on_the_encoder_alone_is_computed_once() -> None:
    weights = CountedWeights(make_arrays(T5))
    run = run_model(pc.load(T5).sizes, weights, [3, 1], source_tokens=[5, 9, 2])
    for token in (4, 1, 5):
        run = run.append([token])
    name = "decoder.block.1.layer.1.EncDecAttention."
    assert {key: weights.reads[f"{name}{key}.weight"] for key in "qkvo"} == {"q": 4, "k": 1, "v": 1, "o": 4}
    assert {n for key, n in weights.reads.items() if key.startswith("encoder.")} == {1}


def test_an_encoder_without_input_says_which_is_missing() -> None:
    with pytest.raises(pc.ParamcountError, match="source_tokens"):
        pc.run(T5, make_arrays(T5), TOKENS)


def test_internvl_projects_the_states_of_the_layer_that_its_config_names() -> None:
    """Source: InternVLModel.get_image_features of the reference: the last layer has another path than the others."""
    found = {}
    for layer in (None, -1, -2):
        stated = {} if layer is None else {"vision_feature_layer": layer}
        with pytest.warns(pc.ConfigWarning):
            out, _ = next(iter(list_flows(pc.load({"model_type": "internvl", **stated}).sizes)))
        operations = [data.operation for data, *_ in list_steps(out)]
        found[layer] = [operation.of for operation in operations if isinstance(operation, HiddenStates)]
    assert found == {None: [], -1: [], -2: [(-2,)]}
