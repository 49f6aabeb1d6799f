"""What writers do to names and shapes is undone, and nothing more: the same model in the forms in which files hold it. Shapes by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from paramcount.checkpoints.held import Checkpoint, File, Held
from paramcount.checkpoints.layouts import called, key
from paramcount.checkpoints.verifying import Verification, verified
from paramcount.names import load

Shape = tuple[int, ...]

# Two layers, width 8, 4 heads of 2 over 2 heads of keys and values, MLP 12, 16 tokens.
SIZES = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 16}
LLAMA = {"model_type": "llama", **SIZES, "intermediate_size": 12}
PHI3 = {"model_type": "phi3", **SIZES, "intermediate_size": 12, "pad_token_id": 0}
MIXTRAL = {"model_type": "mixtral", **SIZES, "intermediate_size": 12, "num_local_experts": 3, "num_experts_per_tok": 2}
QWEN3_MOE = {"model_type": "qwen3_moe", **SIZES, "head_dim": 2, "moe_intermediate_size": 6, "num_experts": 3, "num_experts_per_tok": 2, "intermediate_size": 12}
GPT2 = {"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 16, "n_positions": 10}

TABLES = {"model.embed_tokens.weight": (16, 8), "model.norm.weight": (8,), "lm_head.weight": (16, 8)}
NORMS = {"input_layernorm.weight": (8,), "post_attention_layernorm.weight": (8,)}
APART = {"self_attn.q_proj.weight": (8, 8), "self_attn.k_proj.weight": (4, 8), "self_attn.v_proj.weight": (4, 8), "self_attn.o_proj.weight": (8, 8)}
MLP = {"mlp.gate_proj.weight": (12, 8), "mlp.up_proj.weight": (12, 8), "mlp.down_proj.weight": (8, 12)}
TOGETHER = {"self_attn.qkv_proj.weight": (16, 8), "self_attn.o_proj.weight": (8, 8), "mlp.gate_up_proj.weight": (24, 8), "mlp.down_proj.weight": (8, 12)}
QK_NORMS = {"self_attn.q_norm.weight": (2,), "self_attn.k_norm.weight": (2,)}
GPT2_LAYER = {
    "ln_1.weight": (8,), "ln_1.bias": (8,), "attn.c_attn.weight": (8, 24), "attn.c_attn.bias": (24,), "attn.c_proj.weight": (8, 8), "attn.c_proj.bias": (8,),
    "ln_2.weight": (8,), "ln_2.bias": (8,), "mlp.c_fc.weight": (8, 32), "mlp.c_fc.bias": (32,), "mlp.c_proj.weight": (32, 8), "mlp.c_proj.bias": (8,),
}  # fmt: skip
GPT2_TABLES = {"wte.weight": (16, 8), "wpe.weight": (10, 8), "ln_f.weight": (8,), "ln_f.bias": (8,)}


def in_layers(layer: Mapping[str, Shape], before: str = "model.layers.") -> dict[str, Shape]:
    return {f"{before}{i}.{name}": shape for i in range(2) for name, shape in layer.items()}


def experts(layer: Mapping[str, Shape]) -> dict[str, Shape]:
    """Each of the three experts of a layer."""
    return {name.replace("*", str(i)): shape for i in range(3) for name, shape in layer.items()}


LLAMA_FILE = TABLES | in_layers(NORMS | APART | MLP)
FORMS: dict[str, tuple[dict[str, object], dict[str, Shape]]] = {
    "llama": (LLAMA, LLAMA_FILE),
    "llama without model.": (LLAMA, {name.removeprefix("model."): shape for name, shape in LLAMA_FILE.items()}),
    "llama under language_model.": (LLAMA, {f"language_model.{name}": shape for name, shape in LLAMA_FILE.items()}),
    "llama inside a composite": (LLAMA, {name.replace("model.", "model.language_model."): shape for name, shape in LLAMA_FILE.items()}),
    "llama, together": (LLAMA, TABLES | in_layers(NORMS | TOGETHER)),
    "llama, together without model.": (LLAMA, {n.removeprefix("model."): shape for n, shape in (TABLES | in_layers(NORMS | TOGETHER)).items()}),
    "phi3": (PHI3, TABLES | in_layers(NORMS | TOGETHER)),
    "phi3, apart": (PHI3, TABLES | in_layers(NORMS | APART | MLP)),
    "phi3, its mlp apart": (PHI3, TABLES | in_layers(NORMS | MLP | {n: s for n, s in TOGETHER.items() if n.startswith("self_attn")})),
    "mixtral, one by one": (
        MIXTRAL,
        TABLES
        | in_layers(NORMS | APART | {"block_sparse_moe.gate.weight": (3, 8)})
        | in_layers(experts({"block_sparse_moe.experts.*.w1.weight": (12, 8), "block_sparse_moe.experts.*.w3.weight": (12, 8)}))
        | in_layers(experts({"block_sparse_moe.experts.*.w2.weight": (8, 12)})),
    ),
    "mixtral, experts together": (
        MIXTRAL,
        TABLES | in_layers(NORMS | APART | {"mlp.gate.weight": (3, 8), "mlp.experts.gate_up_proj": (3, 24, 8), "mlp.experts.down_proj": (3, 8, 12)}),
    ),
    "qwen3_moe, experts together": (
        QWEN3_MOE,
        TABLES | in_layers(NORMS | APART | QK_NORMS | {"mlp.gate.weight": (3, 8), "mlp.experts.gate_up_proj": (3, 12, 8), "mlp.experts.down_proj": (3, 8, 6)}),
    ),
    "gpt2": (GPT2, GPT2_TABLES | in_layers(GPT2_LAYER, "h.")),
    "gpt2 under transformer.": (GPT2, {f"transformer.{n}": s for n, s in (GPT2_TABLES | in_layers(GPT2_LAYER, "h.")).items()}),
    "gpt2 with its masks and a copy of the table": (
        GPT2,
        GPT2_TABLES | {"lm_head.weight": (16, 8)} | in_layers(GPT2_LAYER | {"attn.bias": (1, 1, 10, 10)}, "h."),
    ),
}  # fmt: skip


def checked(config: Mapping[str, object], shapes: Mapping[str, Shape]) -> Verification:
    held = {name: Held("model.safetensors", "F32", shape, 0, 0) for name, shape in shapes.items()}
    path = Path("model.safetensors")
    return verified(load(config), Checkpoint(path, "safetensors", held, (File(path.name, path, None),)))


@pytest.mark.parametrize("form", FORMS)
def test_a_model_is_found_in_every_form_that_writers_give_it(form: str) -> None:
    config, shapes = FORMS[form]
    found = checked(config, shapes)
    assert [line for line in found.lines if not line.said.ok] == []
    assert found.ok and found.found == found.expected
    assert found.by_shape == 0


@pytest.mark.parametrize("form", FORMS)
def test_every_tensor_of_every_form_is_missed_where_it_is_not_there(form: str) -> None:
    config, shapes = FORMS[form]
    for name in shapes:
        if name.endswith("attn.bias") or (name == "lm_head.weight" and config is GPT2):
            continue  # nobody needs the masks and the copy
        found = checked(config, {other: shape for other, shape in shapes.items() if other != name})
        assert not found.ok, name
        missing = [line for line in found.lines if line.said.finding == "missing"]
        assert len(missing) == 1 and missing[0].tensors == 1 and missing[0].pattern == name


@pytest.mark.parametrize("form", FORMS)
def test_every_matrix_of_every_form_is_told_where_it_stands_the_other_way_round(form: str) -> None:
    config, shapes = FORMS[form]
    for name, shape in shapes.items():
        if len(shape) < 2 or shape[-1] == shape[-2]:
            continue
        turned = (*shape[:-2], shape[-1], shape[-2])
        found = checked(config, {**shapes, name: turned})
        (line,) = [line for line in found.lines if not line.said.ok]
        assert (line.said.finding, line.pattern, line.said.held, line.said.declared) == ("wrong shape", name, turned, shape)


def test_a_name_that_one_tensor_alone_has_is_no_layout() -> None:
    shapes = {name.replace("model.norm.", "decoder.norm."): shape for name, shape in LLAMA_FILE.items()}
    found = checked(LLAMA, shapes)
    assert [(line.said.finding, line.pattern, line.said.note) for line in found.lines] == [
        ("missing", "model.norm.weight", ""),
        ("unexpected", "decoder.norm.weight", "has the shape of the missing model.norm.weight"),
    ]


def test_a_layer_too_many_and_a_layer_too_few_are_folded() -> None:
    more = checked({**LLAMA, "num_hidden_layers": 1}, LLAMA_FILE)
    fewer = checked({**LLAMA, "num_hidden_layers": 4}, LLAMA_FILE)
    assert {line.said.finding for line in more.lines} == {"unexpected"} and len(more.lines) == 9
    assert {line.pattern.split(".")[2] for line in more.lines} == {"1"}
    assert {line.said.finding for line in fewer.lines} == {"missing"} and len(fewer.lines) == 9
    assert {line.pattern.split(".")[2] for line in fewer.lines} == {"{2-3}"}


def test_strange_names_are_matched_by_shape_and_that_is_said() -> None:
    shapes = {f"tensor_{i}": shape for i, shape in enumerate(LLAMA_FILE.values())}
    found = checked(LLAMA, shapes)
    assert found.ok and found.by_shape == len(LLAMA_FILE) == 21
    wrong = checked(LLAMA, shapes | {"tensor_3": (7,)})
    assert [(line.said.finding, line.said.declared, line.said.held) for line in wrong.lines if not line.said.ok] == [
        ("missing", (8,), None),
        ("unexpected", None, (7,)),
    ]


def test_a_tower_beside_a_language_model_is_no_finding_and_one_beside_a_plain_model_is() -> None:
    tower = {"vision_tower.patch_embed.weight": (8, 3, 2, 2)}
    found = checked(LLAMA, LLAMA_FILE | tower)
    assert [(line.said.finding, line.said.what) for line in found.lines] == [("unexpected", "vision tower")]
    llava = {"model_type": "llava_next", "text_config": LLAMA, "vision_config": {"model_type": "clip_vision_model"}}
    composite = checked(llava, {f"language_model.{name}": shape for name, shape in LLAMA_FILE.items()} | tower)
    assert composite.ok and composite.beside == {"vision tower": 96}


def test_an_alias_is_taken_only_where_the_file_holds_it() -> None:
    assert called("model.layers.{layer}.block_sparse_moe.gate.weight", {key("model.layers.0.mlp.gate.weight")}) == "model.layers.{layer}.mlp.gate.weight"
    assert called("model.layers.{layer}.block_sparse_moe.gate.weight", set()) == "model.layers.{layer}.block_sparse_moe.gate.weight"
