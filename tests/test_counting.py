"""What a count says: conventions, invariants, and the public API around it."""

from __future__ import annotations

import inspect
import json
from collections import defaultdict
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcount as pc
import paramcount.zoo as zoo
from paramcount import formulas
from paramcount.architectures import architecture
from paramcount.architectures.classes import get_base_class
from paramcount.counting.arithmetic import format_arithmetic
from paramcount.counting.components import COMPONENTS, PARTS
from paramcount.counting.count import count_sizes
from paramcount.sizes import Sizes
from paramcount.sizes.rules import validate_sizes
from tests.batches import in_batches
from tests.structures import ROWS, ZOO, pick_structures

ONE_OF_EACH = sorted({ROWS[id]["architecture"]: id for id in ZOO}.values())


def list_with_field(field: str) -> list[str]:
    """One model of each architecture that has this field itself and does not list its layers one by one."""
    lists = {"layer_types", "layer_groups", "attention_layers", "encoder_kinds", "decoder_kinds", "windows"}
    listed = lists if field.endswith("layers") else set()
    fields = {id: set(architecture(ROWS[id]["architecture"]).fields) for id in ONE_OF_EACH}
    return [id for id in ONE_OF_EACH if field in fields[id] and not listed & fields[id]]


def resize_model(id: str, **changes: Any) -> Sizes:
    sizes = zoo.load_entry(id).sizes
    return validate_sizes(type(sizes), sizes.to_dict() | changes)


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


@in_batches("id", pick_structures(every=2), size=80)
def test_components_parts_details_and_tensors_all_sum_to_the_total(id: str) -> None:
    count = pc.count(id)
    assert sum(count.components.values()) == count.total
    assert sum(count.parts.values()) == count.total
    assert sum(count.active_components.values()) == count.active
    assert sum(tensor.parameters for tensor in count.tensors if tensor.part != "mtp") == count.total
    assert sum(tensor.active for tensor in count.tensors if tensor.part != "mtp") == count.active
    for name in {name.partition(".")[0] for name in count.details}:
        opened = sum(n for detail, n in count.details.items() if detail.partition(".")[0] == name)
        # A projector names its norms only: the matrices have no detail of their own. Neither have those of Voxtral
        # Realtime that scale the input of the MLP with the delay, nor Qwen 4's convolution of n-grams.
        plain = [
            t
            for t in count.tensors
            if t.component == name
            and (t.part == name or ".ada_rms_norm." in t.name or t.name.endswith(".ple.conv1d.weight"))
        ]
        matrices = sum(t.parameters for t in plain)
        assert opened + matrices == count.components[name]


@in_batches("id", pick_structures(every=2), size=80)
def test_every_component_and_part_is_present_even_if_it_is_zero(id: str) -> None:
    count = pc.count(id)
    assert tuple(count.components) == COMPONENTS
    assert tuple(count.parts) == tuple(part for part in PARTS if part != "mtp")
    assert all(type(n) is int for n in (*count.components.values(), *count.details.values(), count.total, count.active))


@in_batches("id", pick_structures(every=2), size=80)
def test_totals_follow_the_counting_conventions(id: str) -> None:
    count, c = pc.count(id), pc.count(id).components
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


# JetMoE's attention has experts too, Qwen3-Omni's part that speaks and dots3.note's part that sees.
MORE_EXPERTS = {
    "dots3-note-prev": ("vision",),
    "jetmoe-8b": ("qkv", "output_projection"),
    "qwen3-omni-30b-a3b": ("audio",),
}


@in_batches("id", pick_structures(every=2), size=80)
def test_active_is_at_most_the_total_and_equal_when_dense(id: str) -> None:
    count = pc.count(id)
    assert (count.active < count.total) == is_mixture(count.sizes)
    shares = {name for name in count.components if count.active_components[name] != count.components[name]}
    assert shares <= {"experts", *MORE_EXPERTS.get(id, ())}
    assert count.total - count.active == sum(count.components[name] - count.active_components[name] for name in shares)


@in_batches("id", pick_structures(every=2), size=80)
def test_the_printed_arithmetic_of_each_component_gives_its_count(id: str) -> None:
    count = pc.count(id)
    for name, written in format_arithmetic(count).items():
        if "×" in written or written.replace(",", "").isdigit():
            assert eval(written.replace("×", "*").replace(",", "")) == count.components[name]  # noqa: S307 - our own sum
        else:
            assert count.components[name] == 0 if written.startswith("tied to") else name in ("vision", "audio")


@in_batches("id", pick_structures(every=2), size=80)
def test_a_tied_tensor_has_the_shape_of_the_other_tensor(id: str) -> None:
    shapes = defaultdict[str, set[tuple[int, ...]]](set)  # layers of several kinds have several shapes of one name
    for tensor in pc.count(id).tensors:
        # A block that is shared by layers stands in the first of them.
        for name in (tensor.name, name_first(tensor)):
            shapes[name].add(tensor.shape)
    assert [
        tensor.name for tensor in pc.count(id).tensors if tensor.tied_to and tensor.shape not in shapes[tensor.tied_to]
    ] == []


# Decoders whose LM head has a bias in modeling_*.py; that of every encoder except NeoMME has one.
BIASED_HEADS = {
    "bert-generation",
    "codegen",
    "ctrl",
    "flaubert",
    "git",
    "gptj",
    "modernbert-decoder",
    "phi",
    "phimoe",
    "xlm",
    "xlnet",
}
# Without ties the decoder of these has a token embedding of its own, and the encoder another.
TWO_EMBEDDINGS = {
    "bart",
    "bigbird_pegasus",
    "blenderbot",
    "blenderbot-small",
    "led",
    "m2m_100",
    "nllb-moe",
    "marian",
    "mbart",
    "mvp",
    "pegasus",
    "pegasus_x",
    "plbart",
    "prophetnet",
    "seamless_m4t",
    "seamless_m4t_v2",
    "switch_transformers",
    "t5gemma2",
}
# tie_word_embeddings = false unties more: the blocks that Zamba's layers share, NeoMME's projection of embeddings, and
# the layers that DiffusionGemma's encoder and decoder share.
MORE_TIES = {"diffusion_gemma", "neomme", "zamba", "zamba2"}


# The token embedding of mllama has more rows than its LM head, so that they are never tied; the reference refuses to
# tie those of DBRX, and LUKE ties its head for entities, not that for words. The table of Florence-2 is its language
# model's, and FSMT has two vocabularies.
UNTIED = ("dbrx", "florence2", "fsmt", "luke", "mllama")
# The encoder of an encoder-decoder: it has the sizes of both, and no LM head.
ENCODERS = ("mt5.MT5EncoderModel", "t5.T5EncoderModel", "umt5.UMT5EncoderModel")


@pytest.mark.parametrize(
    "id", [id for id in list_with_field("tie_word_embeddings") if ROWS[id]["architecture"] not in (*UNTIED, *ENCODERS)]
)
def test_a_tied_lm_head_adds_nothing_and_an_untied_one_adds_a_matrix(id: str) -> None:
    tied, untied = (count_sizes(resize_model(id, tie_word_embeddings=tie)) for tie in (True, False))
    entry = zoo.load_entry(id)
    sizes: Any = entry.sizes
    has_bias = entry.architecture in BIASED_HEADS or (
        sizes.reference.endswith(("ForMaskedLM", "ForPreTraining")) and entry.architecture not in ("eurobert", "neomme")
    )
    bias = sizes.vocab_size if has_bias else 0
    if entry.architecture == "mobilebert":  # with a matrix for the dimensions that the token embedding lacks
        bias += sizes.vocab_size * (sizes.d_model - sizes.d_embedding)
    written = sizes.decoder if entry.architecture == "blt" else sizes
    matrix = sizes.vocab_size * getattr(written, "d_embedding", written.d_model)
    if entry.architecture == "idefics":  # further tokens have a table and a matrix of their own
        matrix += sizes.n_additional * sizes.d_model
    assert (tied.lm_head, tied.tied, untied.lm_head, untied.tied) == (bias, True, matrix + bias, False)
    more = untied.total - tied.total
    if entry.architecture in MORE_TIES:
        assert more == sum(tensor.elements for tensor in tied.tensors if tensor.tied_to) > matrix
    else:
        if entry.architecture == "t5gemma2":  # the decoder's embedding has a vector of its own for the end of an image
            more -= sizes.d_model
        assert more == (2 if entry.architecture in TWO_EMBEDDINGS else 1) * matrix


@pytest.mark.parametrize(
    ("id", "field"),
    [
        (id, field)
        for field in ("n_layers", "n_encoder_layers", "n_decoder_layers")
        for id in list_with_field(field)
        # The encoder of Funnel has blocks of layers, IDEFICS a cross-attention before each few, ALBEF two numbers.
        if ROWS[id]["architecture"] not in ("funnel", "idefics", "albef_bert", "blip_bert")
        if not (field == "n_decoder_layers" and ROWS[id]["architecture"] in ENCODERS)
    ],
)
def test_one_more_layer_adds_exactly_one_layers_weights(id: str, field: str) -> None:
    sizes: Any = zoo.load_entry(id).sizes
    fewer, more = count_sizes(sizes), count_sizes(resize_model(id, **{field: getattr(sizes, field) + 1}))
    # A layer of the kind that is added: the last layer of mllama and GPT-NeoX-Japanese differs from the others.
    if hasattr(sizes, "cross_attention_layers") or zoo.load_entry(id).architecture == "gpt_neox_japanese":
        kind = 0
    else:
        others = {
            *getattr(sizes, "reusing_layers", ()),
            *(getattr(sizes, "dense_layers", None) or ()),
            *getattr(sizes, "adapters", ()),
        }
        kind = max(set(range(getattr(sizes, field))) - others)
    # The layers of Evolla are those of its decoder; the protein's encoder has a size of its own.
    of_decoder = field == "n_decoder_layers" or zoo.load_entry(id).architecture == "evolla"
    is_encoder = fewer.parts["encoder"] and not of_decoder
    layer = sum(
        prod(t.shape) * prod(r.count for r in t.repeats if r.axis == "expert")
        for t in fewer.tensors
        if t.parameters
        and t.part in (("encoder",) if is_encoder else ("decoder", "cross_attention"))
        and any(r.axis == "layer" and kind in r.indices for r in t.repeats)
    )
    assert more.total - fewer.total == layer > 0


@settings(max_examples=40, deadline=None)
@given(
    vocab=st.integers(1, 2**31),
    d=st.integers(1, 2**22),
    layers=st.integers(1, 500),
    kv=st.integers(1, 64),
    groups=st.integers(1, 8),
    d_head=st.integers(1, 150).map(lambda pairs: 2 * pairs),
    d_ff=st.integers(1, 2**31),
)
def test_the_count_of_any_llama_equals_the_closed_form(
    vocab: int, d: int, layers: int, kv: int, groups: int, d_head: int, d_ff: int
) -> None:
    q = kv * groups
    d *= q  # the heads divide it
    changes = {
        "vocab_size": vocab,
        "d_model": d,
        "n_layers": layers,
        "n_heads": q,
        "n_kv_heads": kv,
        "d_head": d_head,
        "d_ff": d_ff,
    }
    count = count_sizes(resize_model("llama-3.1-8b", **changes))
    assert count.total == 2 * vocab * d + layers * (2 * d * q * d_head + 2 * d * kv * d_head + 3 * d * d_ff + 2 * d) + d


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


def test_a_name_a_path_a_mapping_and_a_loaded_model_have_the_same_count(tmp_path: Any) -> None:
    model = pc.load("llama-3.1-8b")
    assert model.config is not None and model.architecture is not None
    mapping = {"architecture": model.architecture, "config": model.config.to_dict()}
    path = tmp_path / "mine.yaml"
    path.write_text((zoo.CONFIGS / "llama/llama-3.1-8b.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    specs = ["llama-3.1-8b", "meta-llama/Llama-3.1-8B", "Llama 3.1 8B", str(path), path, mapping, model]
    assert {pc.count(spec).total for spec in specs} == {8030261248}
    assert pc.count(mapping).id == "unnamed"


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


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, f in inspect.getmembers(formulas, inspect.isfunction)
        if f.__module__ == formulas.__name__ and name[0] != "_"
    ],
)
def test_a_public_formula_documents_its_shapes_units_errors_and_source_with_an_example(name: str) -> None:
    text = inspect.getdoc(getattr(formulas, name)) or ""
    for part in ("Shapes: ", "Units: ", "Raises: ", "Source: ", ">>> "):
        assert part in text


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
