"""What a count says: conventions, invariants, and the public API around it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.architectures.classes import get_base_class
from paramcount.counting.arithmetic import format_arithmetic
from paramcount.counting.components import COMPONENTS, PARTS
from tests.batches import in_batches
from tests.structures import ZOO, pick_structures

count_once = lru_cache(maxsize=80)(pc.count)  # for the tests of a batch


def in_groups(test: Callable[..., None]) -> Callable[..., None]:
    return in_batches("id", pick_structures(every=2), size=80, grouped=True)(test)


def name_first(tensor: Any) -> str:
    """The name of the first copy, with numbers for layers and experts."""
    return str(tensor.name.format(**{repeat.axis: repeat.indices[0] for repeat in tensor.repeats if repeat.indices}))


def is_mixture(sizes: Any) -> bool:
    """Whether some layer routes tokens to experts."""
    language = getattr(sizes, "language", sizes)
    kinds = getattr(language, "layer_types", None)
    kinds = kinds if isinstance(kinds, tuple) else None  # a setting of Qwen2 MoE, which says nothing of experts
    # Nemotron-H and Doge have the sizes of experts even if they have only dense MLPs.
    if not getattr(language, "moe", True):
        return False
    return bool(getattr(language, "n_routed_experts", 0)) and (kinds is None or "moe" in kinds or "mlp" not in kinds)


@in_groups
def test_components_parts_details_and_tensors_all_sum_to_the_total(id: str) -> None:
    count = count_once(id)
    assert tuple(count.components) == COMPONENTS  # also if it is zero
    assert tuple(count.parts) == tuple(part for part in PARTS if part != "mtp")
    assert all(type(n) is int for n in (*count.components.values(), *count.details.values(), count.total, count.active))
    assert sum(count.components.values()) == count.total
    assert sum(count.parts.values()) == count.total
    assert sum(count.active_components.values()) == count.active
    assert sum(tensor.parameters for tensor in count.tensors if tensor.part != "mtp") == count.total
    assert sum(tensor.active for tensor in count.tensors if tensor.part != "mtp") == count.active
    for name in {name.partition(".")[0] for name in count.details}:
        opened = sum(n for detail, n in count.details.items() if detail.partition(".")[0] == name)
        # A projector names its norms only: the matrices have no detail of their own. Neither have those of Voxtral
        # Realtime that scale the input of the MLP with the delay, Qwen 4's convolution of n-grams, nor Nomic's bias of
        # all experts.
        plain = [
            t
            for t in count.tensors
            if t.component == name
            and (t.part == name or ".ada_rms_norm." in t.name or t.name.endswith((".conv1d.weight", ".experts.bias")))
        ]
        matrices = sum(t.parameters for t in plain)
        assert opened + matrices == count.components[name]


@in_groups
def test_totals_follow_the_counting_conventions(id: str) -> None:
    count = count_once(id)
    c = count.components
    tables = c["embedding"] + c["other_embedding"] + c["position"] + c["lm_head"]
    assert count.non_embedding == count.total - tables
    assert count.active_non_embedding == count.active - tables
    assert count.language_model == count.total - c["vision"] - c["audio"] - c["projector"]
    assert (count.embedding, count.lm_head) == (c["embedding"], c["lm_head"])
    is_base = count.reference == get_base_class(type(count.sizes))
    assert (count.scope, count.not_counted) == ("model", ("lm_head",) if is_base else ())
    # A tied matrix adds nothing. A bias adds its own values, and so does the second matrix of MobileBERT's LM head.
    head = [tensor for tensor in count.tensors if tensor.component == "lm_head" and tensor.part != "mtp"]
    matrices = [t for t in head if len(t.shape) == 2 and t.name != "cls.predictions.dense.weight"]
    assert count.tied == (bool(matrices) and not any(matrix.parameters for matrix in matrices))
    assert (count.bytes_fp32, count.bytes_bf16) == (4 * count.total, 2 * count.total)


POSITIONS = re.compile(
    "wpe|position|pos_emb|pos_conv_emb|rel_emb|rel_pos|rel_attn_emb|rel_logits|distance_emb|relative|pos_bias"
)


@in_groups
def test_learned_positions_are_the_tensors_that_are_named_so(id: str) -> None:
    count = count_once(id)
    of_text = [tensor for tensor in count.tensors if tensor.part in ("decoder", "encoder", "cross_attention")]
    found = sum(tensor.parameters for tensor in of_text if POSITIONS.search(tensor.name))
    assert found == count.components["position"]


# JetMoE's attention has experts too, Qwen3-Omni's part that speaks and dots3.note's part that sees.
MORE_EXPERTS = {
    "dots3-note-prev": ("vision",),
    "jetmoe-8b": ("qkv", "output_projection"),
    "qwen3-omni-30b-a3b": ("audio",),
}


@in_groups
def test_active_is_at_most_the_total_and_equal_when_dense(id: str) -> None:
    count = count_once(id)
    assert (count.active < count.total) == is_mixture(count.sizes)
    shares = {name for name in count.components if count.active_components[name] != count.components[name]}
    assert shares <= {"experts", *MORE_EXPERTS.get(id, ())}
    assert count.total - count.active == sum(count.components[name] - count.active_components[name] for name in shares)


@in_groups
def test_the_printed_arithmetic_of_each_component_gives_its_count(id: str) -> None:
    count = count_once(id)
    for name, written in format_arithmetic(count).items():
        if "×" in written or written.replace(",", "").isdigit():
            assert eval(written.replace("×", "*").replace(",", "")) == count.components[name]  # noqa: S307 - our own sum
        else:
            assert count.components[name] == 0 if written.startswith("tied to") else name in ("vision", "audio")


@in_groups
def test_a_tied_tensor_has_the_shape_of_the_other_tensor(id: str) -> None:
    shapes = defaultdict[str, set[tuple[int, ...]]](set)  # layers of several kinds have several shapes of one name
    for tensor in count_once(id).tensors:
        # A block that is shared by layers stands in the first of them.
        for name in (tensor.name, name_first(tensor)):
            shapes[name].add(tensor.shape)
    assert [
        tensor.name
        for tensor in count_once(id).tensors
        if tensor.tied_to and tensor.shape not in shapes[tensor.tied_to]
    ] == []


def test_a_tensor_has_its_part_and_its_number_of_copies() -> None:
    # Reversed, so that the tensors of the model replace those of its MTP layer.
    rows = {tensor.name: tensor for tensor in reversed(pc.count("deepseek-v3").tensors)}
    gate = rows["model.layers.{layer}.mlp.experts.{expert}.gate_proj.weight"]
    assert (gate.shape, gate.component, gate.part, gate.role, gate.copies) == (
        (2048, 7168),
        "experts.gate",
        "decoder",
        "parameter",
        58 * 256,
    )
    assert [(r.axis, r.count, r.active, r.kind) for r in gate.repeats] == [
        ("layer", 58, 58, "moe"),
        ("expert", 256, 8, ""),
    ]
    assert gate.repeats[0].indices == tuple(range(3, 61))
    correction = rows["model.layers.{layer}.mlp.gate.e_score_correction_bias"]
    assert (correction.role, correction.parameters) == ("buffer", 0)
    copy = rows["model.layers.{layer}.shared_head.head.weight"]
    assert (copy.tied_to, copy.parameters, copy.elements, copy.part, copy.repeats[0].indices) == (
        "lm_head.weight",
        0,
        129280 * 7168,
        "mtp",
        (61,),
    )


def test_a_fused_matrix_lists_its_components_and_a_stacked_one_its_experts() -> None:
    rows = {tensor.name: tensor for tensor in pc.count("gpt-oss-20b").tensors}
    fused = rows["model.layers.{layer}.mlp.experts.gate_up_proj"]
    assert (fused.shape, fused.copies, fused.repeats[0].kind) == ((32, 2880, 5760), 12, "full_attention")
    assert fused.repeats[0].indices == tuple(range(1, 24, 2))
    assert fused.splits == (("experts.gate", 2880), ("experts.up", 2880))
    assert fused.stacked is not None and (fused.stacked.count, fused.stacked.active) == (32, 4)
    assert fused.active * 8 == fused.parameters


def test_json_contains_a_schema_version_and_every_count() -> None:
    data = json.loads(json.dumps(pc.count("deepseek-v3").to_dict()))
    assert data["schema_version"] == 2
    assert (data["total"], data["active"], data["buffers"], data["mtp"]) == (
        671026404352,
        37552282624,
        14848,
        11610067968,
    )
    assert data["active_without_input_table"] == 36625603584
    assert sum(data["components"].values()) == data["total"]
    assert sum(data["release"].values()) == data["checkpoint"] == 684531386000
    assert pc.count("gpt2-small").checkpoint == 137022720
    assert pc.count("llama-2-70b").checkpoint is None  # nobody said what its files hold


def test_the_data_frame_has_one_row_per_model_and_whole_numbers_only() -> None:
    frame = pc.compare(["gpt2-small", "deepseek-v3"])
    assert list(frame["id"]) == ["gpt2-small", "deepseek-v3"]
    assert list(frame.columns[:4]) == ["id", "total", "active", "non_embedding"]
    frame = frame.set_index("id")
    assert str(frame["total"].dtype) == "Int64"
    assert frame.loc["deepseek-v3", "active"] == 37552282624
    assert frame.loc["gpt2-small", "n_routed_experts"] == 0


def test_a_family_is_all_its_models_and_estimates_are_optional() -> None:
    assert set(pc.compare("gpt")["id"]) == {id for id in zoo.list_ids("gpt") if id in ZOO}
    frame = pc.compare(["gpt"], estimates=True).set_index("id")
    assert frame.loc["gpt-4", "estimate"] and frame["total"].isna().sum() == 2
    assert str(frame.loc["gpt-4", "claimed_total"]).startswith("1.8T (")
    with pytest.raises(pc.ParamcountError, match="--estimates"):
        pc.compare(["gpt-4"])


def test_only_the_data_frame_rejects_a_count_that_does_not_fit_int64() -> None:
    model = pc.load("llama-3.1-8b")
    huge = {
        "architecture": "llama",
        "config": model.sizes.to_dict() | {"d_model": 2**31, "d_ff": 2**31, "n_layers": 2**31},
    }
    assert pc.count(huge).total > 2**63
    with pytest.raises(pc.ParamcountError, match="2⁶³"):
        pc.compare([huge])


def test_changing_one_count_does_not_change_another() -> None:
    count = pc.count("gpt2-small")
    for held in (count.components, count.details, count.parts, count.active_components, count.release):
        held.clear()  # type: ignore[attr-defined]
    assert pc.count("gpt2-small").components["qkv"] == 21261312
    assert pc.count("gpt2-small").checkpoint == 137022720


def test_a_second_use_of_a_tensor_is_a_row_that_is_tied_to_it() -> None:
    # CPM-Ant looks up its prompt and its text in one table
    rows = [t for t in pc.count({"model_type": "cpmant"}).tensors if t.name == "cpmant.input_embedding.weight"]
    assert [(row.tied_to, row.parameters > 0) for row in rows] == [
        ("cpmant.input_embedding.weight", False),
        (None, True),
    ]


STEP = ["full_attention", *["sliding_attention"] * 3] * 12  # of Step 3.5 Flash: 45 layers and three MTP layers


def test_the_mtp_layers_of_step_fill_the_release() -> None:
    """The Hub's safetensors total of stepfun-ai/Step-3.5-Flash is 199,384,301,376 (github sammcj/llmfit@9e7ac95666a4:
    llmfit-core/data/hf_models.json). The names are those that Step3p5MTP of vLLM loads."""
    count = pc.count("step-3.7-flash")
    language = count.total - count.parts["vision"] - count.parts["projector"]
    assert language + count.buffers + (count.mtp or 0) == 199_384_301_376
    names = {tensor.name.removeprefix("model.layers.{layer}.") for tensor in count.tensors if tensor.part == "mtp"}
    attention = [f"self_attn.{name}" for name in ("q_proj", "k_proj", "v_proj", "o_proj", "g_proj", "q_norm", "k_norm")]
    other = ["enorm", "hnorm", "eh_proj", "input_layernorm", "post_attention_layernorm"]
    head = ["transformer.shared_head.norm", "transformer.shared_head.output"]
    mlp = ["mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
    assert names == {f"{name}.weight" for name in (*attention, *other, *head, *mlp)}


@pytest.mark.parametrize(
    ("words", "mtp"),
    [
        (STEP, 2_428_171_008),
        # 32 heads fewer, each with queries, outputs and a gate
        ([*STEP[:45], *["attention"] * 3], 2_428_171_008 - 3 * 32 * (2 * 4096 * 128 + 4096)),
        (None, 2_428_171_008 - 3 * 32 * (2 * 4096 * 128 + 4096)),
        (STEP[:45], None),
    ],
)
@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_the_types_of_mtp_layers_stand_behind_those_of_the_model(words: list[str] | None, mtp: int | None) -> None:
    """As Step3p7TextConfig of the reference splits them off."""
    text = {
        "sliding_window": 512, "num_nextn_predict_layers": 3, "layer_types": words, "vocab_size": 128896,
        "num_attention_groups": 8, "attention_other_setting": {"num_attention_heads": 96},
    }  # fmt: skip
    assert pc.count({"model_type": "step3p7", "text_config": text}).mtp == mtp


@pytest.mark.filterwarnings("ignore::paramcount.ConfigWarning")
def test_of_two_names_of_zamba2s_head_size_the_last_one_is_read() -> None:
    """Zamba2Config has a field for neither: each sets the same attribute."""
    sizes = [("head_dim", 32), ("attention_head_dim", 8)]
    found: list[Any] = [pc.load({"model_type": "zamba2", **dict(pair)}).sizes for pair in (sizes, sizes[::-1])]
    assert [sizes.d_head for sizes in found] == [8, 32]
