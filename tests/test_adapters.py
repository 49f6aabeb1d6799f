"""Adapters: trainable parameters by method, targets by name and by group, and what cannot be adapted."""

from __future__ import annotations

import json
from typing import Any

import pytest

import paramcount as pc
from tests.batches import in_batches
from tests.model_types import default_document
from tests.running import Runner

LLAMA = {  # Llama 3.1 8B: (outputs, inputs) of the linear layers of each of its 32 layers
    "q_proj": (4096, 4096), "k_proj": (1024, 4096), "v_proj": (1024, 4096), "o_proj": (4096, 4096),
    "gate_proj": (14336, 4096), "up_proj": (14336, 4096), "down_proj": (4096, 14336),
}  # fmt: skip


GPT_3 = {"model_type": "opt", "hidden_size": 12288, "word_embed_proj_dim": 12288, "num_hidden_layers": 96,
         "num_attention_heads": 96, "ffn_dim": 49152}  # fmt: skip
ESM = {"model_type": "esm", "vocab_size": 33, "hidden_size": 1280, "num_hidden_layers": 33, "num_attention_heads": 20,
       "intermediate_size": 5120, "pad_token_id": 1, "mask_token_id": 32}  # fmt: skip
# (model, options, trainable parameters)
DERIVED: list[tuple[Any, dict[str, Any], int]] = [
    # arXiv:2106.09685, table 5: 18M for W_q and W_v at rank 4, and for W_q, W_k, W_v and W_o at rank 2
    (GPT_3, {"r": 4, "targets": "q_proj,v_proj"}, 18_874_368),
    (GPT_3, {"r": 2, "targets": "attention"}, 18_874_368),
    ("llama-3.1-8b", {"method": "rslora"}, 32 * 16 * sum(map(sum, LLAMA.values()))),  # which only scales
    # DoRA adds a magnitude per output, also of Conv1D, which stores [in, out]
    ("llama-3.1-8b", {"method": "dora"}, 32 * sum(17 * n_out + 16 * n_in for n_out, n_in in LLAMA.values())),
    ("gpt2-small", {"r": 8, "targets": "c_attn", "method": "dora"}, 12 * (8 * (768 + 2304) + 2304)),
    # arXiv:2205.05638, section 3.3: vectors for keys, values and the MLP's inner activations
    ("llama-3.1-8b", {"method": "ia3", "targets": "k_proj,v_proj,down_proj"}, 32 * (1024 + 1024 + 14336)),
    # arXiv:2310.11454, section 3.2: a vector d of the rank and b of the outputs per layer
    ("llama-3.1-8b", {"r": 256, "method": "vera", "targets": "q_proj,v_proj"}, 32 * (4096 + 256 + 1024 + 256)),
    # Llama 3.2 1B ties its LM head to the embedding of 128,256 × 2,048; each becomes a copy of its own
    ("llama-3.2-1b", {"targets": "q_proj", "modules_to_save": ["lm_head", "embed_tokens"]},
     2 * 128_256 * 2048 + 16 * 16 * (2048 + 2048)),
    # EsmContactPredictionHead, which no forward pass reads: a linear layer from 33 layers of 20 heads to 1 logit
    (ESM, {"r": 1, "targets": "regression"}, 33 * 20 + 1),
    # Qwen2-VL: a convolution of 2 frames, 14 × 14 pixels, 3 channels, to 1,280 values; attention's proj has its name
    ({"model_type": "qwen2_vl"}, {"r": 1, "targets": "proj"}, 3 * 2 * 14 * 14 + 1280 + 32 * (1280 + 1280)),
    # Mixtral: gate and up of the 8 experts are one parameter of the reference, [8, 2 · 14,336, 4,096]
    ("mixtral-8x7b", {"r": 4, "targets": "experts"}, 32 * 8 * 4 * (28672 + 4096 + 4096 + 14336)),
    # Zamba2ForCausalLM with peft 0.21.2: get_layers ties the parameters of separate modules, and not their adapters
    ("zamba2-2.7b", {"r": 4}, 11_146_112),
    # modules and parameters: q_proj of 24 layers, 4,096 × 2,880; the router of 32 experts
    ("gpt-oss-20b", {"r": 1, "targets": "q_proj", "target_parameters": ["router.weight"]},
     24 * (4096 + 2880 + 32 + 2880)),
]  # fmt: skip


@pytest.mark.parametrize(("model", "options", "trainable"), DERIVED)
def test_an_adapter_has_the_parameters_that_follow_from_the_sizes(
    model: Any, options: dict[str, Any], trainable: int
) -> None:
    assert pc.lora(model, **options).trainable == trainable


def test_vera_shares_two_frozen_matrices() -> None:
    result = pc.lora("llama-3.1-8b", r=256, method="vera", targets="q_proj,v_proj")
    assert result.projection == 256 * (4096 + 4096)
    assert result.adapter_bytes == 4 * (result.trainable + result.projection)


def test_groups_name_the_layers_of_components() -> None:
    names = {
        group: [module.name.rpartition(".")[2] for module in pc.lora("llama-3.1-8b", targets=group).modules]
        for group in ("attention", "mlp")
    }
    assert names == {"attention": list(LLAMA)[:4], "mlp": list(LLAMA)[4:]}
    both = pc.lora("llama-3.1-8b", targets=["attention", "mlp", "q_proj"])
    assert both.modules == pc.lora("llama-3.1-8b").modules


def test_biases_are_trained_in_place() -> None:
    without = pc.lora("gpt2-small", targets="c_attn")
    adapted = pc.lora("gpt2-small", targets="c_attn", bias="adapted")
    assert adapted.trainable == without.trainable + 12 * 2304
    assert adapted.total == without.total
    # 12 layers with biases of c_attn, c_proj, c_fc, c_proj and two norms, and the last norm's
    every = pc.lora("gpt2-small", targets="c_attn", bias="all")
    assert every.trainable == without.trainable + 12 * (2304 + 768 + 3072 + 768 + 2 * 768) + 768


def test_names_of_experts_from_before_they_were_stacked_double_the_rank() -> None:
    result = pc.lora("mixtral-8x7b", r=4, targets="w1,w3,w2")
    assert [(module.rank, module.parameters) for module in result.modules] == [
        (8, 32 * 8 * 8 * (28672 + 4096)),
        (4, 32 * 8 * 4 * (4096 + 14336)),
    ]
    assert result.notes == (
        "as in peft 0.21, w1, w3 and w2 name the routed experts and the router",
        "w1 and w3 of the experts share one adapter of twice the rank",
    )


def test_the_names_of_experts_are_never_those_of_dense_mlps() -> None:
    # DeepSeek-V3 names its 58 layers of routed experts; 3 dense MLPs and the shared experts have the same names
    names = [module.name for module in pc.lora("deepseek-v3", targets="gate_proj,up_proj,down_proj").modules]
    assert names == [f"model.layers.{{layer}}.mlp.experts.{name}" for name in ("gate_up_proj", "down_proj")]
    dense = {"model_type": "deepseek_v3", "first_k_dense_replace": 61}  # no layer has experts
    assert {module.component.partition(".")[0] for module in pc.lora(dense).modules} == {"qkv", "output_projection"}


SEVEN = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
NAMES = {"targets": SEVEN}
# (model type, options, trainable parameters)
PEFT: list[tuple[str, dict[str, Any], int]] = [
    # names of modules do not reach the experts that the reference stacks
    ("gpt_oss", NAMES, 2_985_984), ("granitemoe", NAMES, 4_194_304), ("jamba", NAMES, 3_964_928),
    ("lfm2_moe", NAMES, 294_912), ("llama4", NAMES, 14_794_752), ("mixtral", NAMES, 3_407_872),
    ("nemotron_h", NAMES, 405_568), ("qwen2_moe", NAMES, 3_784_704),
    # parameters have the names of the reference
    ("aria_text", {"target_parameters": "mlp.experts.gate_up_proj,mlp.experts.down_proj"}, 20_971_520),
    ("deepseek_v4", {"target_parameters": "ffn_hc.fn"}, 2_822_176),  # hc_ffn_fn in checkpoints
    ("gpt_oss", {"target_parameters": "experts.gate_up_proj"}, 159_252_480),
    ("gpt_oss", {"target_parameters": "experts.down_proj_bias"}, 433_152),
    ("gpt_oss", {"target_parameters": "layers.0.mlp.experts.down_proj"}, 2_949_120),
    ("granitemoe", {"target_parameters": "block_sparse_moe.experts.gate_up_proj"}, 26_738_688),
    ("granitemoe", {"target_parameters": "router.weight"}, 525_312),
    ("mixtral", {"target_parameters": "mlp.experts.gate_up_proj"}, 33_554_432),  # checkpoints name it otherwise
    ("mixtral", {"target_parameters": "mlp.gate.weight"}, 525_312),
    ("nemotron_h", {"target_parameters": "experts.up_proj"}, 377_088),
    ("qwen2_moe", {"target_parameters": "experts.gate_up_proj,experts.down_proj"}, 47_923_200),
    ("step3p7", {"target_parameters": "mlp.experts.gate_up_proj"}, 322_043_904),  # two tensors of a checkpoint
    ("llama", {"target_parameters": "self_attn.q_proj.weight"}, 1_048_576),
    # every embedding takes one; those of encoder and decoder have the table of model.shared
    ("bart", {"targets": "embed_tokens"}, 410_312),
    ("florence2", {"targets": "embed_tokens"}, 410_312),
    ("fsmt", {"targets": "embed_tokens"}, 344_384),
    ("pi0", {"targets": "embed_tokens"}, 2_069_504),
    ("prophetnet.ProphetNetForCausalLM", {"targets": "word_embeddings"}, 252_368),
    ("seamless_m4t", {"targets": "embed_tokens"}, 2_057_008),
    ("t5", {"targets": "embed_tokens"}, 261_120),
    ("t5", {"targets": "shared"}, 130_560),
    ("t5.T5EncoderModel", {"targets": "embed_tokens"}, 130_560),
    ("bert", {"targets": "position_embeddings,token_type_embeddings"}, 8_200),
    ("gpt2", {"targets": "wpe"}, 7_168),
    ("llava", {"targets": "position_embedding"}, 6_404),
    ("prophetnet", {"targets": "word_embeddings,ngram_embeddings"}, 382_656),
    ("t5", {"targets": "relative_attention_bias"}, 320),
    ("whisper", {"targets": "embed_positions"}, 10_864),
    # patterns (strings in target_modules), layers and full names
    ("llama", {"target_pattern": r".*layers\.[01]\..*_proj"}, 624_640),
    ("llama", {"target_pattern": r"model\.layers\.\d+\.self_attn\.(q|v)_proj", "exclude_pattern": r".*\.1\d\..*"},
     1_441_792),
    ("llama", {"targets": ["layers.0.self_attn.q_proj", "model.layers.1.mlp.up_proj"]}, 93_184),
    ("llama", {"targets": ["q_proj", "model.layers.7.mlp.up_proj"], "layers_to_transform": [0, 3]}, 125_952),
    ("llama", {"targets": "q_proj", "layers_to_transform": 2, "layers_pattern": "layers"}, 32_768),
    ("llama", {"exclude_modules": ["down_proj", "layers.0.self_attn.k_proj"]}, 8_028_160),
    ("llama", {"targets": "q_proj,k_proj", "rank_pattern": {"k_proj": 2, r"layers\.0\.self_attn\.q_proj": 8}},
     1_605_632),
    ("gpt2", {"target_pattern": r"transformer\.h\.\d+\.attn\.c_attn"}, 147_456),  # checkpoints begin with h
    ("gpt2", {"targets": "c_attn", "layers_to_transform": [0, 1]}, 24_576),
    ("gpt2", {"targets": "c_attn", "layers_to_transform": "0", "layers_pattern": ["h"]}, 12_288),
    ("qwen2_5_vl", {"target_pattern": r"model\.language_model\..*q_proj"}, 5_242_880),
    ("llava", {"target_pattern": r"model\.language_model\.layers\.\d+\.mlp\.up_proj"}, 1_933_312),
    # peft makes names of a pattern if it adapts experts by their former names: those of all layers
    ("qwen3_moe", {"target_pattern": r".*\.layers\.0\..*(q_proj|gate_proj|up_proj)"}, 88_473_600),
    ("qwen3_moe", {"targets": "q_proj", "layers_to_transform": [1]}, 16_384),
    ("mixtral", {"target_pattern": r".*self_attn.*_proj", "rank_pattern": {"q_proj": 1}}, 2_621_440),
    ("zamba2", {"target_pattern": r".*layers\.18\..*adapter_list\.0\.0"}, 10_752),
]  # fmt: skip


@in_batches(("model_type", "options", "trainable"), PEFT, size=15)
def test_an_adapter_of_the_default_model_has_the_parameters_that_peft_trains(
    model_type: str, options: dict[str, Any], trainable: int
) -> None:
    """Source: peft 0.21.2 with r=4 and these options on the reference's default model."""
    assert pc.lora(default_document(model_type), r=4, **options).trainable == trainable


@pytest.mark.parametrize(("model_type", "biases"), [("udop", 2_048), ("chameleon", 281_600), ("esm", 103_714)])
def test_all_biases_include_those_that_no_forward_pass_reads(model_type: str, biases: int) -> None:
    """Source: parameters that end in .bias and train in peft 0.21.2 with bias="all", on the reference's default."""
    modules = pc.lora(default_document(model_type), r=4, bias="all").modules
    assert sum(module.parameters for module in modules if module.kind == "bias") == biases


def test_a_note_names_the_parameters_of_experts_that_names_of_modules_do_not_reach() -> None:
    assert pc.lora({"model_type": "qwen2_moe"}, targets=SEVEN).notes == (
        "the routed experts get no adapter: they are parameters, not modules; target_parameters names them: "
        "experts.gate_up_proj and experts.down_proj",
    )


def test_a_name_without_a_match_has_no_effect_and_a_warning_says_so() -> None:
    result = pc.lora({"model_type": "gpt_oss"}, r=16, targets=["q_proj", "v_proj", "down_proj"])
    assert result.trainable == 5_971_968  # as of peft 0.21.2
    assert result.warnings == ("no module is named 'down_proj', so it has no effect, as in peft",)
    (warning,) = pc.lora("llama-3.1-8b", targets="q_porj,v_proj").warnings
    assert warning.startswith("no module is named 'q_porj', so it has no effect, as in peft; did you mean q_proj")


@pytest.mark.parametrize("model_type", ["falcon_h1", "falcon_mamba", "mamba", "mamba2", "nemotron_h"])
def test_modules_that_peft_refuses_are_an_error(model_type: str) -> None:
    # _check_lora_target_modules_mamba of peft
    refusal = r"targets: peft 0\.21 refuses out_proj and conv1d for this model type"
    for targets in ("out_proj", "all-linear", "in_proj,out_proj"):
        with pytest.raises(pc.ParamcountError, match=refusal):
            pc.lora({"model_type": model_type}, targets=targets)
    assert pc.lora({"model_type": model_type}, targets="out_proj", method="ia3").trainable > 0


def test_layers_that_checkpoints_fuse_have_an_adapter_each_under_their_names_in_the_reference() -> None:
    # GteAttention has q, k and v of 768², GteMLP gate and up of 3,072 × 768; the released files fuse both
    modules = {module.name.rpartition(".")[2]: module for module in pc.lora({"model_type": "gte"}, r=1).modules}
    assert {name: module.shape for name, module in modules.items() if name != "dense"} == {
        "q_proj": (768, 768), "k_proj": (768, 768), "v_proj": (768, 768), "o_proj": (768, 768),
        "up_proj": (3072, 768), "gate_proj": (3072, 768), "down_proj": (768, 3072),
    }  # fmt: skip
    assert modules["q_proj"].parameters == 12 * (768 + 768)
    with pytest.raises(pc.ParamcountError, match="no module is named 'qkv_proj'"):
        pc.lora({"model_type": "gte"}, targets="qkv_proj")


def test_an_lm_head_that_is_no_output_embedding_of_the_reference_is_one_of_all_linear_layers() -> None:
    # BlipForConditionalGeneration.get_output_embeddings returns nothing; a vocabulary of 30,524, vectors of 768
    (module,) = (m for m in pc.lora({"model_type": "blip"}, r=1).modules if m.component == "lm_head")
    assert module.parameters == 768 + 30_524


def test_a_layer_is_numbered_behind_a_name_and_a_dot_unless_a_pattern_says_so() -> None:
    # The text model of Qwen2-VL has no module around its layers: check_target_module_exists of peft finds no index
    model = default_document("qwen2_vl_text")
    with pytest.raises(pc.ParamcountError, match="layers_to_transform: no module of 'q_proj' is left"):
        pc.lora(model, targets="q_proj", layers_to_transform=0)
    (module,) = pc.lora(model, targets="q_proj", layers_to_transform=0, layers_pattern="layers").modules
    assert module.copies == 1


def test_warnings_name_patterns_without_effect_and_those_that_may_match_an_activation() -> None:
    llama = "llama-3.1-8b"
    assert pc.lora(llama, targets="q_proj", rank_pattern={"x": 2}).warnings == (
        "no adapted module is named 'x', so its rank has no effect, as in peft",
    )
    assert pc.lora(llama, targets="q_proj", exclude_modules="x").warnings == (
        "no module is named among those to exclude, so they have no effect, as in peft",
    )
    assert pc.lora(llama, targets="q_proj,k_proj", exclude_modules="k_proj").warnings == (
        "every module that is named 'k_proj' is left out, so it has no effect, as in peft",
    )
    (warning,) = pc.lora(llama, target_pattern=r".*\.mlp\..*").warnings
    assert warning.startswith("the pattern matches every module inside model.layers.0.mlp; peft refuses it if")


def test_the_command_line_takes_patterns_and_names_of_parameters(run: Runner) -> None:
    options = ["--layers-to-transform", "0,3", "--rank-pattern", "k_proj=4", "--exclude-modules",
               "layers.3.self_attn.k_proj"]  # fmt: skip
    found = run("lora", "llama-3.1-8b", "--targets", "q_proj,k_proj", *options, "--json")
    rows = [(row["name"].rpartition(".")[2], row["copies"], row["rank"]) for row in json.loads(found.out)["modules"]]
    assert rows == [("q_proj", 2, 16), ("k_proj", 1, 4)]
    assert "LoRA, rank 16, parameters experts.down_proj" in run(
        "lora", "gpt-oss-20b", "--target-parameters", "experts.down_proj"
    ).out  # fmt: skip
