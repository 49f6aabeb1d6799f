"""The same model in all layouts that writers use: only their changes to names and shapes are undone.

Sources: of Meta's names and Mistral's transformers, models/mistral/convert_mistral_weights_to_hf.py and
models/mistral3/convert_mistral3_weights_to_hf.py; of MLX's ml-explore/mlx-lm, mlx_lm/models; of nanoGPT's
karpathy/nanoGPT, model.py; of towers the indices of released models and transformers 5.23, conversion_mapping.py; of
Qwen3-VL-MoE both ways the same file, `check_dims`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from paramcount.api import count
from paramcount.checkpoints.checkpoint import Checkpoint, File, FileTensor
from paramcount.checkpoints.folding import strip_indices
from paramcount.checkpoints.matching import expand_names
from paramcount.checkpoints.verify import Verification, verify_checkpoint
from paramcount.checkpoints.writers.layouts import (
    apply_aliases,
    apply_prefixes,
    fuse_matrices,
    split_matrices,
)
from paramcount.flow import Repeat, TensorRow
from paramcount.loading import load
from tests.cases import load_cases as cases
from tests.headers import Shape, Shapes, load_saved, read_shapes
from tests.structures import keep_every

Config: TypeAlias = dict[str, Any]

# Two layers, width 8, 4 heads of 2 over 2 heads of keys and values, MLP 12, 16 tokens.
SIZES: Config = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 16,
}
DENSE: Config = {**SIZES, "intermediate_size": 12}
EXPERTS: Config = {**DENSE, "num_experts_per_tok": 2}
LLAMA: Config = {"model_type": "llama", **DENSE}
PHI3: Config = {"model_type": "phi3", **DENSE, "pad_token_id": 0}
MIXTRAL: Config = {"model_type": "mixtral", **EXPERTS, "num_local_experts": 3}
QWEN3_MOE: Config = {
    "model_type": "qwen3_moe",
    **EXPERTS,
    "head_dim": 2,
    "moe_intermediate_size": 6,
    "num_experts": 3,
}
GPT2: Config = {"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 16, "n_positions": 10}
BERT: Config = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    **{key: size for key, size in DENSE.items() if key != "num_key_value_heads"},
    "max_position_embeddings": 10,
    "type_vocab_size": 2,
}
# Towers of two layers, width 4, MLP 6, four patches of 2 × 2.
EYES: Config = {
    "hidden_size": 4,
    "intermediate_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 4,
    "patch_size": 2,
    "num_channels": 3,
}
HEADLESS: Config = {"model_type": "siglip_vision_model", **EYES, "vision_use_head": False}
GEMMA: Config = {**DENSE, "head_dim": 2}


def see(model_type: str, text: Config, vision: Config, **keys: Any) -> Config:
    """A language model with a vision encoder."""
    return {"model_type": model_type, "text_config": text, "vision_config": vision, **keys}


LLAVA = see("llava", LLAMA, {"model_type": "clip_vision_model", **EYES})
PALIGEMMA = see("paligemma", {"model_type": "gemma", **GEMMA}, HEADLESS, projection_dim=8)
GEMMA3 = see("gemma3", {"model_type": "gemma3_text", **GEMMA}, HEADLESS, mm_tokens_per_image=4)
MISTRAL3 = see(
    "mistral3",
    {"model_type": "mistral", **GEMMA},
    {"model_type": "pixtral", **EYES},
    spatial_merge_size=2,
    tie_word_embeddings=False,
)
QWEN3_VL: Config = {
    "depth": 2,
    "hidden_size": 4,
    "intermediate_size": 6,
    "num_heads": 2,
    "out_hidden_size": 8,
    "patch_size": 2,
    "num_position_embeddings": 9,
    "deepstack_visual_indexes": [0],
}
QWEN3_VL_MOE = see(
    "qwen3_vl_moe",
    {**QWEN3_MOE, "model_type": "qwen3_vl_moe_text", "tie_word_embeddings": False},
    QWEN3_VL,
    tie_word_embeddings=False,
)


def repeat_layers(layer: Mapping[str, Shape], before: str = "model.layers.") -> Shapes:
    return {f"{before}{i}.{name}": shape for i in range(2) for name, shape in layer.items()}


def add_prefix(before: str, shapes: Mapping[str, Shape]) -> Shapes:
    return {f"{before}{name}": shape for name, shape in shapes.items()}


def rename_shapes(shapes: Mapping[str, Shape], *changes: tuple[str, str]) -> Shapes:
    """The same tensors with other names."""
    found = {}
    for name, shape in shapes.items():
        for before, after in changes:
            name = re.sub(before, after, name)
        found[name] = shape
    return found


def transpose_shapes(shapes: Mapping[str, Shape], *ends: str) -> Shapes:
    """The tensors whose names end this way, with their last two axes swapped."""
    return {
        name: (*shape[:-2], shape[-1], shape[-2]) if name.endswith(ends) else shape for name, shape in shapes.items()
    }


def declare_shapes(config: Config) -> Shapes:
    """The tensors of a declaration, each once."""
    rows = expand_names(
        tensor for tensor in count(config).tensors if tensor.role != "legacy_buffer" and tensor.tied_to is None
    )
    return {name: tensor.shape for name, tensor in rows.items()}


def drop_names(shapes: Mapping[str, Shape], pattern: str) -> Shapes:
    """The tensors whose names do not match."""
    return {name: shape for name, shape in shapes.items() if not re.search(pattern, name)}


def switch(prefix: str, d_ff: int) -> Shapes:
    """Experts of MLX."""
    shapes = read_shapes(f"gate_proj.weight 3 {d_ff} 8, up_proj.weight 3 {d_ff} 8, down_proj.weight 3 8 {d_ff}")
    return add_prefix(f"{prefix}.switch_mlp.", shapes)


LLAMA_FILE, TOGETHER_FILE, GPT2_FILE = map(declare_shapes, (LLAMA, PHI3, GPT2))
MIXTRAL_FILE, QWEN3_MOE_FILE, BERT_FILE = map(declare_shapes, (MIXTRAL, QWEN3_MOE, BERT))
MISTRAL3_FILE, QWEN3_VL_MOE_FILE = map(declare_shapes, (MISTRAL3, QWEN3_VL_MOE))
# As released: under vision_model., as CLIP and SigLIP have it of their own.
LLAVA_FILE, PALIGEMMA_FILE, GEMMA3_FILE = (
    rename_shapes(declare_shapes(config), (r"^vision_tower\.", "vision_tower.vision_model."))
    for config in (LLAVA, PALIGEMMA, GEMMA3)
)
CONV1D = ("c_attn.weight", "attn.c_proj.weight", "c_fc.weight", "mlp.c_proj.weight")
QWEN3_EXPERTS = read_shapes("mlp.experts.gate_up_proj 3 12 8, mlp.experts.down_proj 3 8 6")
# What transformers 5 calls the parts of a composite model: "llava" and "LlavaModel" there.
COMPOSITE = (
    (r"^language_model\.lm_head", "lm_head"),
    (r"^language_model\.model\.", "model.language_model."),
    (r"^(vision_tower|multi_modal_projector)\.", r"model.\1."),
)
# Meta's names, and Mistral's of its towers.
METAS = (
    (r"^(language_model\.)?model\.", ""),
    (r"^(language_model\.)?lm_head", "output"),
    ("^embed_tokens", "tok_embeddings"),
    (r"self_attn\.(.)_proj", r"attention.w\1"),
    (r"attention\.(.)_proj", r"attention.w\1"),
    ("input_layernorm", "attention_norm"),
    ("post_attention_layernorm", "ffn_norm"),
    (r"(mlp|feed_forward)\.gate_proj", "feed_forward.w1"),
    (r"(mlp|feed_forward)\.down_proj", "feed_forward.w2"),
    (r"(mlp|feed_forward)\.up_proj", "feed_forward.w3"),
    ("block_sparse_moe", "feed_forward"),
    ("^vision_tower", "vision_encoder"),
    (r"^multi_modal_projector\.patch_merger", "patch_merger"),
    (r"^multi_modal_projector\.norm", "pre_mm_projector_norm"),
    (r"^multi_modal_projector\.linear_1", "vision_language_adapter.w_in"),
    (r"^multi_modal_projector\.linear_2", "vision_language_adapter.w_out"),
)
OF_LLAMA: dict[str, Shapes] = {
    "llama": LLAMA_FILE,
    "llama without model.": rename_shapes(LLAMA_FILE, (r"^model\.", "")),
    "llama under language_model.": add_prefix("language_model.", LLAMA_FILE),
    "llama inside a composite": rename_shapes(LLAMA_FILE, (r"^model\.", "model.language_model.")),
    "llama, together": TOGETHER_FILE,
    "llama, together without model.": rename_shapes(TOGETHER_FILE, (r"^model\.", "")),
    "llama as Meta names it": rename_shapes(LLAMA_FILE, *METAS),
    "llama as Meta names it, with its frequencies": rename_shapes(LLAMA_FILE, *METAS) | {"rope.freqs": (1,)},
    "llama of torch.compile": add_prefix("_orig_mod.", LLAMA_FILE),
    "llama, its layers of torch.compile": rename_shapes(LLAMA_FILE, (r"(layers\.\d+)", r"\1._orig_mod")),
    "llama, its layers under checkpoints in FSDP": rename_shapes(
        add_prefix("_fsdp_wrapped_module.", LLAMA_FILE),
        (r"(layers\.\d+)", r"\1._fsdp_wrapped_module._checkpoint_wrapped_module"),
    ),
    "llama of DDP": add_prefix("module.", LLAMA_FILE),
    "llama of DDP of torch.compile": add_prefix("module._orig_mod.", LLAMA_FILE),
    "llama inside PEFT": rename_shapes(
        add_prefix("base_model.model.", LLAMA_FILE), (r"(q_proj|v_proj|down_proj)\.", r"\1.base_layer.")
    ),
    "llama inside a trainer": add_prefix("model.", LLAMA_FILE),
}
SEEN_BY_V5 = (*COMPOSITE, (r"vision_model\.", ""))
FORMS: dict[str, tuple[Config, Shapes]] = {name: (LLAMA, file) for name, file in OF_LLAMA.items()} | {
    "phi3": (PHI3, TOGETHER_FILE),
    "phi3, apart": (PHI3, LLAMA_FILE),
    "phi3, its mlp apart": (
        PHI3,
        drop_names(TOGETHER_FILE, "gate_up") | {name: LLAMA_FILE[name] for name in LLAMA_FILE if ".mlp." in name},
    ),
    "llama, tied, by its head alone": (
        {**LLAMA, "tie_word_embeddings": True},
        {name: shape for name, shape in LLAMA_FILE.items() if "embed_tokens" not in name},
    ),
    "mixtral, one by one": (MIXTRAL, MIXTRAL_FILE),
    "mixtral as Mistral names it": (MIXTRAL, rename_shapes(MIXTRAL_FILE, *METAS)),
    "mixtral of MLX": (MIXTRAL, drop_names(MIXTRAL_FILE, "experts") | repeat_layers(switch("block_sparse_moe", 12))),
    "mixtral, experts together": (
        MIXTRAL,
        drop_names(MIXTRAL_FILE, "block_sparse_moe")
        | repeat_layers(
            read_shapes("mlp.gate.weight 3 8, mlp.experts.gate_up_proj 3 24 8, mlp.experts.down_proj 3 8 12")
        ),
    ),
    "qwen3_moe, experts together": (QWEN3_MOE, drop_names(QWEN3_MOE_FILE, "experts") | repeat_layers(QWEN3_EXPERTS)),
    "qwen3_moe of MLX": (QWEN3_MOE, drop_names(QWEN3_MOE_FILE, "experts") | repeat_layers(switch("mlp", 6))),
    "bert": (BERT, BERT_FILE),
    "bert of TensorFlow's names": (
        BERT,
        rename_shapes(BERT_FILE, (r"LayerNorm\.weight", "LayerNorm.gamma"), (r"LayerNorm\.bias", "LayerNorm.beta")),
    ),
    "llava as released": (LLAVA, LLAVA_FILE),
    "llava of transformers 5": (LLAVA, rename_shapes(LLAVA_FILE, *SEEN_BY_V5)),
    "llava of transformers 5, its tower as released": (LLAVA, rename_shapes(LLAVA_FILE, *COMPOSITE)),
    "paligemma as released": (PALIGEMMA, PALIGEMMA_FILE),
    "paligemma of transformers 5": (PALIGEMMA, rename_shapes(PALIGEMMA_FILE, *SEEN_BY_V5)),
    "gemma3 as released": (GEMMA3, GEMMA3_FILE),
    "gemma3 of transformers 5": (GEMMA3, rename_shapes(GEMMA3_FILE, *SEEN_BY_V5)),
    "gemma3 without the infix of its tower": (GEMMA3, rename_shapes(GEMMA3_FILE, (r"vision_model\.", ""))),
    "mistral3 as released": (MISTRAL3, MISTRAL3_FILE),
    "mistral3 as Mistral names it": (MISTRAL3, rename_shapes(MISTRAL3_FILE, *METAS)),
    "qwen3_vl_moe": (QWEN3_VL_MOE, QWEN3_VL_MOE_FILE),
    "qwen3_vl_moe as released": (
        QWEN3_VL_MOE,
        transpose_shapes(QWEN3_VL_MOE_FILE, ".gate_up_proj", "experts.down_proj"),
    ),
    "gpt2": (GPT2, GPT2_FILE),
    "gpt2 under transformer.": (GPT2, add_prefix("transformer.", GPT2_FILE)),
    "gpt2 of nanoGPT": (GPT2, add_prefix("_orig_mod.transformer.", transpose_shapes(GPT2_FILE, *CONV1D))),
    "gpt2 of MLX": (GPT2, add_prefix("model.", transpose_shapes(GPT2_FILE, *CONV1D))),
    "gpt2 with its masks and a copy of the table": (
        GPT2,
        GPT2_FILE | {"lm_head.weight": (16, 8)} | repeat_layers({"attn.bias": (1, 1, 10, 10)}, "h."),
    ),
}


MANY = "EXAMPLES" in os.environ  # every tensor of every form, and every architecture


def last_of_each(names: Iterable[str]) -> list[str]:
    """The last of the names that differ only in their indices."""
    return list(names) if MANY else list({strip_indices(name): name for name in names}.values())


def verify_shapes(config: Mapping[str, object], shapes: Mapping[str, Shape]) -> Verification:
    held = {name: FileTensor("model.safetensors", "F32", shape, 0, 0) for name, shape in shapes.items()}
    path = Path("model.safetensors")
    return verify_checkpoint(load(config), Checkpoint(path, "safetensors", held, (File(path.name, path, None),)))


@pytest.mark.parametrize("form", FORMS)
def test_a_model_matches_in_every_layout(form: str) -> None:
    config, shapes = FORMS[form]
    found = verify_shapes(config, shapes)
    assert [line for line in found.lines if not line.finding.ok] == []
    assert found.ok and found.found == found.expected
    assert found.by_shape == 0


@pytest.mark.parametrize("form", keep_every(8, FORMS))
def test_every_tensor_of_every_layout_is_reported_if_missing(form: str) -> None:
    config, shapes = FORMS[form]
    for name in last_of_each(shapes):
        if name.endswith(("attn.bias", "rope.freqs")) or (
            "lm_head.weight" in shapes and config is GPT2 and name in ("lm_head.weight", "wte.weight")
        ):
            continue  # nobody needs the masks, and of a table and its copy both
        found = verify_shapes(config, {other: shape for other, shape in shapes.items() if other != name})
        assert not found.ok, name
        missing = [line for line in found.lines if line.finding.kind == "missing"]
        assert len(missing) == 1 and missing[0].tensors == 1 and missing[0].finding.declared_shape == shapes[name]
        assert missing[0].pattern == name or not re.search(
            r"\.\d+\.", name
        )  # what stands in no layer may be called as declared


@pytest.mark.parametrize("form", keep_every(8, FORMS))
def test_every_matrix_of_every_layout_is_reported_if_transposed(form: str) -> None:
    config, shapes = FORMS[form]
    for name in last_of_each(shapes):
        shape = shapes[name]
        if len(shape) < 2 or shape[-1] == shape[-2]:
            continue
        over = transpose_shapes({name: shape}, name)
        found = verify_shapes(config, shapes | over)
        (line,) = [line for line in found.lines if not line.finding.ok]
        assert (line.finding.kind, line.pattern, line.finding.file_shape, line.finding.declared_shape) == (
            "wrong shape",
            name,
            over[name],
            shape,
        )


def test_an_extra_layer_and_a_missing_layer_are_folded() -> None:
    more = verify_shapes({**LLAMA, "num_hidden_layers": 1}, LLAMA_FILE)
    fewer = verify_shapes({**LLAMA, "num_hidden_layers": 4}, LLAMA_FILE)
    assert {line.finding.kind for line in more.lines} == {"unexpected"} and len(more.lines) == 9
    assert {line.pattern.split(".")[2] for line in more.lines} == {"1"}
    assert {line.finding.kind for line in fewer.lines} == {"missing"} and len(fewer.lines) == 9
    assert {line.pattern.split(".")[2] for line in fewer.lines} == {"{2-3}"}


def test_unfamiliar_names_are_matched_by_shape_with_a_note() -> None:
    shapes = {f"tensor_{i}": shape for i, shape in enumerate(LLAMA_FILE.values())}
    found = verify_shapes(LLAMA, shapes)
    assert found.ok and found.by_shape == len(LLAMA_FILE) == 21
    norm = next(name for name, shape in shapes.items() if shape == (8,))
    wrong = verify_shapes(LLAMA, shapes | {norm: (7,)})
    assert [
        (line.finding.kind, line.finding.declared_shape, line.finding.file_shape)
        for line in wrong.lines
        if not line.finding.ok
    ] == [("missing", (8,), None), ("unexpected", None, (7,))]


def make_tensor(name: str, *shape: int, splits: Sequence[int] = ()) -> TensorRow:
    layers = Repeat("layer", 2, 2, runs=((0, 2),))
    return TensorRow(name, shape, "mlp", "decoder", "parameter", (layers,), tuple(("mlp", width) for width in splits))


def list_names(tensors: Sequence[TensorRow]) -> list[str]:
    return [each.name for each in tensors]


def test_no_alias_takes_the_name_of_another_tensor() -> None:
    two = [
        make_tensor("layers.{layer}.mlp.linear_gate.weight", 8, 8),
        make_tensor("layers.{layer}.mlp.gate_proj.weight", 8, 8),
    ]
    assert list_names(apply_aliases(two, {"layers.{}.mlp.gate_proj.weight"})) == list_names(two)
    assert list_names(
        apply_aliases(two, {"a.layers.{}.mlp.gate_proj.weight"}, {"layers.{}.mlp.gate_proj.weight"})
    ) == list_names(two)
    shared = [
        make_tensor("layers.{layer}.shared_expert.w.weight", 8, 8),
        make_tensor("layers.{layer}.shared_mlp.w.weight", 8, 8),
    ]
    assert list_names(apply_aliases(shared, {"layers.{}.shared_experts.w.weight"})) == [
        "layers.{layer}.shared_experts.w.weight",
        "layers.{layer}.shared_mlp.w.weight",
    ]
    moving = [make_tensor(f"model.{name}.weight", 8) for name in "abc"] + [make_tensor("c.weight", 8)]
    held = {"a.weight", "b.weight", "c.weight"}
    begins = {f"{name}.weight": [""] for name in "abc"}
    assert list_names(apply_prefixes(moving, held, begins)) == ["a.weight", "b.weight", "model.c.weight", "c.weight"]
    parts = [make_tensor(f"layers.{{layer}}.{name}_proj.weight", 8, 8) for name in ("gate", "up", "gate_up")]
    assert list_names(fuse_matrices(parts, {"layers.{}.gate_up_proj.weight"})) == list_names(parts)
    assert list_names(fuse_matrices(parts[:2], {"layers.{}.gate_up_proj.weight"})) == [
        "layers.{layer}.gate_up_proj.weight"
    ]


def test_parts_may_have_other_names_than_the_fused_matrix() -> None:
    whole = make_tensor("layers.{layer}.attn.gqkv_proj.weight", 26, 8, splits=(8, 8, 6, 4))
    held = {f"layers.{{}}.self_attn.{name}_proj.weight" for name in ("gate", "q", "k", "v")}
    assert {each.name: each.shape for each in split_matrices([whole], held)} == {
        "layers.{layer}.self_attn.gate_proj.weight": (8, 8), "layers.{layer}.self_attn.q_proj.weight": (8, 8),
        "layers.{layer}.self_attn.k_proj.weight": (6, 8), "layers.{layer}.self_attn.v_proj.weight": (4, 8),
    }  # fmt: skip


def test_no_prefix_is_chosen_if_every_name_has_many() -> None:
    few, many = ({f"z{i}.{name}": shape for i in range(n) for name, shape in LLAMA_FILE.items()} for n in (2, 25))
    assert {line.finding.kind for line in verify_shapes(LLAMA, few).lines} == {"unexpected"}
    assert verify_shapes(LLAMA, few).by_shape == 0
    assert verify_shapes(LLAMA, many).by_shape == len(LLAMA_FILE)


# ---- which way round


@pytest.mark.parametrize(
    ("form", "remarks"), [("gpt2", 0), ("gpt2 of nanoGPT", 1), ("qwen3_vl_moe", 0), ("qwen3_vl_moe as released", 1)]
)
def test_a_file_with_all_matrices_transposed_has_a_note(form: str, remarks: int) -> None:
    said = [
        remark for remark in verify_shapes(*FORMS[form]).remarks if "transposed compared with the reference" in remark
    ]
    assert len(said) == remarks


@pytest.mark.parametrize("form", ["llama", "phi3", "mixtral, experts together", "qwen3_moe, experts together", "bert"])
def test_matrices_of_other_models_are_never_transposed(form: str) -> None:
    config, shapes = FORMS[form]
    over = transpose_shapes(shapes, *[name for name, shape in shapes.items() if len(shape) > 1 and "layer" in name])
    found = verify_shapes(config, over)
    wrong = {line.finding.kind for line in found.lines if not line.finding.ok}
    assert wrong == {"wrong shape"}
    assert sum(line.tensors for line in found.lines) == sum(shape != over[name] for name, shape in shapes.items())


# ---- copies, and what the reference works out


def test_a_tied_copy_replaces_its_missing_original_with_a_note() -> None:
    config, shapes = FORMS["llama, tied, by its head alone"]
    found = verify_shapes(config, shapes)
    assert found.remarks == ("model.embed_tokens.weight is missing; its tied copy lm_head.weight is used instead",)
    assert found.found["embedding"] == found.expected["embedding"] == 16 * 8


def test_t5_s_embedding_may_have_any_of_its_names() -> None:
    header = load_saved("t5")
    shapes = {name: shape for name, (_, shape) in header.tensors.items() if name != "shared.weight"}
    table = header.tensors["shared.weight"][1]
    for name in ("shared.weight", "decoder.embed_tokens.weight", "lm_head.weight"):
        assert verify_shapes(header.config, {**shapes, name: table}).ok, name
    both = dict.fromkeys(("decoder.embed_tokens.weight", "lm_head.weight"), table)
    (line,) = verify_shapes(header.config, shapes | both).lines
    assert (line.pattern, line.finding.note) == (
        "lm_head.weight",
        "of decoder.embed_tokens.weight, values not compared",
    )
    assert not verify_shapes(header.config, shapes).ok
    copies = {f"{stack}.embed_tokens.weight": table for stack in ("encoder", "decoder")} | {"lm_head.weight": table}
    found = verify_shapes(header.config, {**shapes, **copies, "shared.weight": table})
    assert found.ok and found.beside == {"tied duplicate": 3 * prod(table)}


TRANSLATION = {
    "d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "encoder_ffn_dim": 12, "decoder_ffn_dim": 12, "vocab_size": 16, "pad_token_id": 0, "max_position_embeddings": 10,
}  # fmt: skip
POSITIONS = [f"model.{stack}.embed_positions.weight" for stack in ("decoder", "encoder")]


@pytest.mark.parametrize("model_type", ["marian", "pegasus"])
def test_only_sinusoidal_positions_that_the_reference_computes_may_be_absent(model_type: str) -> None:
    config = {**TRANSLATION, "model_type": model_type}
    shapes = {**declare_shapes(config), **dict.fromkeys(POSITIONS, (10, 8))}
    found = verify_shapes(config, shapes)
    assert found.ok and found.remarks == ()
    without = verify_shapes(config, {name: shape for name, shape in shapes.items() if name not in POSITIONS})
    assert without.ok and [line.pattern for line in without.lines] == ["final_logits_bias"]  # a buffer
    assert found.expected == found.found == without.expected
    assert {**without.found, "position": 2 * 10 * 8} == without.expected
    assert without.remarks == tuple(f"{name} is not in the file; the reference recomputes it" for name in POSITIONS)
    assert not verify_shapes(config, shapes | {POSITIONS[0]: (9, 8)}).ok


# ---- what is reported beside the layouts

TIED_CONFIG, HEAD_ALONE = FORMS["llama, tied, by its head alone"]
GATES = repeat_layers({"mlp.gate.weight": (3, 8)})
CLASSIFIER = {**LLAMA, "architectures": ["LlamaForSequenceClassification"]}
SCORE = {"score.weight": (3, 8)}
BODY = drop_names(LLAMA_FILE, "lm_head") | SCORE
EYE = {"vision_tower.patch_embed.weight": (8, 3, 2, 2)}
ADAPTER = repeat_layers(
    {f"self_attn.q_proj.lora_{side}.default.weight": (4, 8) for side in "AB"}, "base_model.model.model.layers."
)
BART = {**TRANSLATION, "model_type": "bart"}
LLAVA_NEXT = {"model_type": "llava_next", "text_config": LLAMA, "vision_config": {"model_type": "no such encoder"}}
T5 = load_saved("t5")
T5_FILE = {name: shape for name, (_, shape) in T5.tensors.items()}
REPORTED: dict[str, tuple[Mapping[str, object], Shapes, list[str]]] = {
    "a prefix of a single tensor": (
        LLAMA,
        rename_shapes(LLAMA_FILE, (r"^model\.norm", "decoder.norm")),
        [
            "missing model.norm.weight: norm",
            "unexpected decoder.norm.weight: same shape as the missing model.norm.weight",
        ],
    ),
    "a vision encoder": (LLAMA, LLAMA_FILE | EYE, ["unexpected vision_tower.patch_embed.weight: vision tower"]),
    "a vision encoder that is not counted": (LLAVA_NEXT, add_prefix("language_model.", LLAMA_FILE) | EYE, []),
    "an adapter next to the layers that it wraps": (
        LLAMA,
        OF_LLAMA["llama inside PEFT"] | ADAPTER,
        [f"unexpected base_model.model.model.layers.{{0-1}}.self_attn.q_proj.lora_{side}.default.weight: adapter"
         for side in "AB"],
    ),
    "a router with another name": (MIXTRAL, drop_names(MIXTRAL_FILE, r"\.gate\.") | GATES, []),
    "a router with two names": (
        MIXTRAL, MIXTRAL_FILE | GATES, ["unexpected model.layers.{0-1}.mlp.gate.weight: unknown"],
    ),
    "a part of a fused matrix next to it": (
        PHI3,
        TOGETHER_FILE | {"model.layers.1.self_attn.q_proj.weight": (8, 8)},
        ["unexpected model.layers.1.self_attn.q_proj.weight: unknown"],
    ),
    "half of the matrices transposed": (
        QWEN3_VL_MOE,
        transpose_shapes(QWEN3_VL_MOE_FILE, ".gate_up_proj"),
        ["wrong shape model.language_model.layers.{0-1}.mlp.experts.gate_up_proj: experts.gate, experts.up"],
    ),
    "an untied model without its embedding": (LLAMA, HEAD_ALONE, ["missing model.embed_tokens.weight: embedding"]),
    "a tied head of another shape": (
        TIED_CONFIG, HEAD_ALONE | {"lm_head.weight": (15, 8)}, ["wrong shape lm_head.weight: embedding"],
    ),
    "a classifier": ({**CLASSIFIER, "num_labels": 3}, BODY, []),
    "a classifier of two labels": (CLASSIFIER, BODY, ["wrong shape score.weight: other"]),
    "the head of another task": (LLAMA, LLAMA_FILE | SCORE, ["unexpected score.weight: head of another task"]),
    "a copy of T5's embedding, transposed": (
        T5.config,
        T5_FILE | {"encoder.embed_tokens.weight": T5_FILE["shared.weight"][::-1]},
        ["unexpected encoder.embed_tokens.weight: unknown"],
    ),
    "learned positions": (BART, declare_shapes(BART), []),
    "no learned positions": (
        BART, drop_names(declare_shapes(BART), "embed_positions"), [f"missing {name}: position" for name in POSITIONS],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", REPORTED)
def test_what_a_layout_does_not_explain_is_reported(kind: str) -> None:
    config, shapes, expected = REPORTED[kind]
    found = verify_shapes(config, shapes)
    problems = [line for line in found.lines if not line.finding.ok]
    assert sorted(
        f"{line.finding.kind} {line.pattern}: {line.finding.note or line.finding.what}" for line in problems
    ) == sorted(expected)
    assert found.ok == (not expected)


# ---- all of a kind


def smallest_case(model_type: str) -> dict[str, object]:
    """The smallest test case of a model type."""
    found: dict[str, object] = min(
        (case for case in cases()[model_type] if "refused" not in case), key=lambda case: case["total"]
    )["config"]
    return found


@pytest.mark.parametrize("model_type", sorted(cases()) if MANY else ["hy_v4", "kimi_linear", "phimoe", "t5gemma"])
def test_a_tensor_missing_from_every_layer_is_not_replaced_by_another(model_type: str) -> None:
    config = smallest_case(model_type)
    shapes = declare_shapes(config)
    needless = {
        tensor.name for tensor in count(config).tensors if tensor.role == "legacy_buffer" or tensor.part == "mtp"
    }
    assert verify_shapes(config, shapes).ok
    for kind in {strip_indices(name) for name in shapes} - set(map(strip_indices, needless)):
        if kind.endswith("embed_positions.weight") and model_type in ("marian", "pegasus"):
            continue
        found = verify_shapes(config, {name: shape for name, shape in shapes.items() if strip_indices(name) != kind})
        lines = [line for line in found.lines if not line.finding.ok]
        assert {line.finding.kind for line in lines} == {"missing"}, kind
        assert sum(line.tensors for line in lines) == sum(strip_indices(name) == kind for name in shapes)


def test_a_file_with_many_unfamiliar_names_is_left_unchanged() -> None:
    """No prefix is searched for in endless or uniform names."""
    shapes: Shapes = {"a." * 100_000 + "1.b": (1,), "." * 100_000: (1,), "base_layer." * 50_000: (1,)}
    shapes |= {f"z{i}.{j}.layers.0.self_attn.q_proj.weight": (8, 8) for i in range(300) for j in range(10)}
    found = verify_shapes(LLAMA, LLAMA_FILE | shapes)
    assert found.found == found.expected
    assert sum(line.tensors for line in found.lines) == len(shapes)
    assert {line.finding.kind for line in found.lines} == {"unexpected"}


def test_an_mtp_layer_is_beside_the_model_with_its_copies_of_embedding_and_head() -> None:
    config = {**load_saved("deepseek_v3").config, "num_nextn_predict_layers": 1}
    rows = expand_names(
        tensor
        for tensor in count(config).tensors
        if tensor.role != "legacy_buffer" and (tensor.tied_to is None or tensor.part == "mtp")
    )
    found = verify_shapes(config, {name: tensor.shape for name, tensor in rows.items()})
    buffers = sum(prod(tensor.shape) for tensor in rows.values() if tensor.role == "buffer" and tensor.part != "mtp")
    mtp = sum(prod(tensor.shape) for tensor in rows.values() if tensor.part == "mtp")
    assert found.ok and found.beside == {"buffer": buffers, "MTP layer": mtp}
