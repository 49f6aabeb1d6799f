"""`pc.formula`: polynomials of models and architectures compared with counts, required flags and errors."""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import Any

import pytest

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.architectures import ARCHITECTURES, architecture, split_name
from paramcount.architectures.encoders import ENCODERS
from paramcount.counting.count import Count, count_sizes
from paramcount.explaining.architecture import check_structure, make_open_sizes, sum_architecture
from paramcount.explaining.formulas import COUNTS, find_architecture, select_count
from paramcount.sizes import Sizes
from paramcount.symbolic.polynomials import Polynomial, make_symbols
from paramcount.zoo import count_model
from tests.batches import in_batches
from tests.cases import load_cases
from tests.model_types import MODEL_TYPES
from tests.refusing import assert_one_line
from tests.structures import ZOO, keep_every, pick_structures
from tests.test_remote_models import MODELS
from tests.type_files import load_all

REMOTE = [facts["config"] for facts in MODELS.values()]
CASES = {name: [case["config"] for case in cases if not case.get("refused")] for name, cases in load_cases().items()}


def list_values(sizes: Sizes, prefix: str = "") -> dict[str, Any]:
    """Every field by its path."""
    found: dict[str, Any] = {}
    for name, value in sizes.__dict__.items():
        if isinstance(value, Sizes):
            found |= {prefix + name: value, **list_values(value, f"{prefix}{name}.")}
        else:
            found[prefix + name] = value
    return found


def evaluate_at(formula: Polynomial, sizes: Sizes) -> int:
    values = list_values(sizes)
    n: int = formula.evaluate(**{name: values[name] for name in formula.names})
    return n


def formula_error(*args: Any, **structure: Any) -> pc.ParamcountError:
    with pytest.raises(pc.ParamcountError) as caught:
        pc.formula(*args, **structure)
    assert_one_line(str(caught.value))
    return caught.value


# ---- formulas of models


@in_batches("id", pick_structures(every=8), size=10)
def test_the_formulas_of_a_model_evaluate_to_its_counts(id: str) -> None:
    count, sizes = pc.count(id), zoo.load_entry(id).sizes
    counts = {of: getattr(count, of) for of in COUNTS} | {**count.components, **count.details, **count.parts}
    for of, n in counts.items():
        if n is None:
            with pytest.raises(pc.ParamcountError, match="is unknown"):
                pc.formula(id, of)
        else:
            assert evaluate_at(pc.formula(id, of), sizes) == n, of


@in_batches("name", keep_every(10, MODEL_TYPES), size=30)
def test_the_formulas_of_a_config_json_evaluate_to_its_count(name: str) -> None:
    for config in CASES[name][-1:]:
        model = pc.load(config)
        for of in ("total", "active"):
            assert evaluate_at(pc.formula(model, of), model.sizes) == getattr(count_model(model), of)


def test_a_given_size_is_a_number_and_a_given_flag_changes_the_structure() -> None:
    assert str(pc.formula("llama-3.1-8b", "mlp", n_layers=40)) == "120 · d_model · d_ff"
    assert str(pc.formula("llama-3.1-8b", "mlp", n_layers=32)) == "96 · d_model · d_ff"  # also if unchanged
    tied = pc.formula("llama-3.1-8b", tie_word_embeddings=True)
    assert str(pc.formula("llama-3.1-8b") - tied) == "vocab_size · d_model"
    assert "vision.n_layers" not in pc.formula("llama-3.2-11b-vision", "vision", vision={"n_layers": 31}).names
    assert pc.formula(
        "llama-3.2-11b-vision", "vision.mlp", **{"vision.n_layers": 32, "vision.n_global_layers": 8}
    ).names == ("vision.d_ff", "vision.d_model")


def test_a_size_that_the_structure_depends_on_is_a_number() -> None:
    assert str(pc.formula("llama-3.2-11b-vision", "mlp")) == "120 · d_model · d_ff"  # 40 layers


# ---- formulas of architectures


@cache
def architecture_name(cls: type[Sizes]) -> str:
    return next((name for name in ARCHITECTURES if architecture(name) is cls), "") or next(
        name for name, place in ENCODERS.items() if place.endswith(f".{cls.__name__}")
    )


def user_value(value: Any) -> Any:
    """The value to pass for a field: True for an optional size that exists."""
    return True if type(value) is int else value


def requested_structure(error: pc.ParamcountError, cls: type[Sizes], sizes: Sizes) -> dict[str, Any]:
    """The values of these sizes for the flags that an error requires."""
    values = list_values(sizes)
    found: dict[str, Any] = {}
    for piece in error.expected.split("; "):
        path, _, how = piece.partition(": ")
        if path not in values:  # in a part that these sizes lack
            continue
        value = values[path]
        if isinstance(value, Sizes):
            found[path] = True if how.startswith("None") else architecture_name(type(value))
        else:
            found[path] = value if how.startswith("an integer, because") else user_value(value)
    return found


def supply_structure(name: str, sizes: Sizes) -> tuple[dict[str, Any], int]:
    """All flags that an architecture requires, and the number of errors until they are complete.

    Fields that an entry may leave out, such as the attention layers of a hybrid, are not required: they are given.
    """
    optional = {field: getattr(sizes, field) for field, facts in type(sizes).fields.items() if not facts.is_required}
    structure = {
        field: user_value(value) for field, value in optional.items() if value != type(sizes).fields[field].unstated
    }
    for errors in range(6):
        try:
            pc.formula({"architecture": name}, **structure)
        except pc.ParamcountError as error:
            if not error.found.startswith("the weights depend on "):
                raise
            structure |= requested_structure(error, architecture(name), sizes)
        else:
            return structure, errors
    raise AssertionError(structure)


def make_default(name: str) -> Any:
    facts = MODEL_TYPES[name]
    return {"model_type": split_name(name)[0], "architectures": [facts.cls], **facts.vary.get("=", {})}


def load_model(name: str) -> zoo.Model:
    """A model of an architecture: a default config, a released config with remote code, or an entry of the zoo."""
    if name in MODEL_TYPES:
        return pc.load(make_default(name))
    if name == "minimax_text_01":
        lightning = next(config for config in REMOTE if config["model_type"] == "minimax_m1")
        return pc.load({**lightning, "model_type": name})
    models = chain(map(pc.load, REMOTE), map(zoo.load_entry, ZOO))
    return next(model for model in models if model.architecture == name)


# Architectures with the same weights as an encoder
NOT_OF_A_MODEL = {name for name in ARCHITECTURES if name.endswith("ForTokenClassification")}
# Whose authors alone have code, and of which no entry and no released config was found
NOT_OF_A_MODEL |= {name for name in load_all("without_entry") if name not in MODEL_TYPES} - {
    c["model_type"] for c in REMOTE
}
# Released only inside of another model, or in another form of the same file
NOT_OF_A_MODEL |= {
    "eagle.EagleLlamaForCausalLM", "eagle3.Eagle3DeepseekV2ForCausalLM", "eagle3.Eagle3DraftModel",
    "eagle3.Eagle3LlamaForCausalLM", "kimi_k3_text",
}  # fmt: skip
ZIPPED = {"nemotron-nas"}  # several lists per layer, each required once another is given


SLOW = {"granite4_vision", "musicgen", "musicgen_melody", "qwen3_omni_moe"}  # flags of many parts are tried together
EVERY = [
    *keep_every(24, set(ARCHITECTURES) - NOT_OF_A_MODEL - SLOW),
    *(pytest.param(name, marks=pytest.mark.exhaustive) for name in sorted(SLOW)),
]


@in_batches("name", EVERY, size=12)
def test_an_architecture_with_its_required_flags_evaluates_to_the_count(name: str) -> None:
    model = load_model(name)
    structure, errors = supply_structure(name, model.sizes)
    parts = {"language", "encoder", "decoder", "text_encoder", "vlm", "vlm.language"} & set(structure)
    assert errors <= 1 + len(parts) or name in ZIPPED  # one error names them all; those of each named part, another
    cls, count = architecture(name), count_sizes(model.sizes)
    values = check_structure(cls, structure)
    sums, _ = sum_architecture(cls, values)
    for of in ("total", "active", "active_min", "buffers", "mtp"):
        assert evaluate_at(select_count(sums, make_open_sizes(cls, values, {}), cls, of), model.sizes) == getattr(
            count, of
        ), of


@pytest.mark.parametrize(
    "name", ["llama", "qwen2", "deepseek_v3", "mixtral", "falcon", "jamba", "t5", "opt", "bloom", "gemma2", "gpt_neox"]
)
def test_flags_that_are_not_required_make_no_difference(name: str) -> None:
    """Frozen configs with equal required flags have the same formula, whatever their other flags are."""
    for config in CASES.get(name, []):
        model = pc.load(config)
        if model.reading.head and model.architecture == name:
            structure, _ = supply_structure(name, model.sizes)
            total: Count = count_model(model)
            assert evaluate_at(pc.formula({"architecture": name}, **structure), model.sizes) == total.total


def test_one_error_names_every_flag_that_weights_depend_on() -> None:
    error = formula_error("llama")
    assert str(error) == (
        "llama: the weights depend on attention_bias, mlp_bias and tie_word_embeddings; specify them"
        " (expected attention_bias: True or False; mlp_bias: True or False; tie_word_embeddings: True or False)"
    )
    assert "mixer_bias, conv_bias" in str(formula_error("jamba"))  # also flags of a single kind of layer
    assert "d_q_lora: None, True if it exists, or an integer" in str(formula_error("deepseek_v3"))
    assert "norms: a string: sequential, parallel or parallel_two_norms" in str(formula_error("falcon"))


def test_flags_that_no_weight_depends_on_are_not_required() -> None:
    assert "scaled_embedding" in architecture("afmoe").fields
    assert "scaled_embedding" not in str(formula_error("afmoe"))
    assert "window" not in str(formula_error("mistral"))


def test_an_optional_size_may_be_none_true_or_an_integer() -> None:
    flags: dict[str, Any] = {"attention_bias": False, "tie_word_embeddings": False}
    (named,) = make_symbols("d_q_lora")
    there = pc.formula("deepseek_v3", "qkv", d_q_lora=True, **flags)
    assert there == pc.formula("deepseek_v3", "qkv", d_q_lora=named, **flags)
    assert (
        there.evaluate(
            n_layers=61, d_model=7168, n_heads=128, d_q_lora=1536, d_kv_lora=512, d_nope=128, d_rope=64, d_v=128
        )
        == 4_249_550_848
    )
    assert "d_q_lora" not in pc.formula("deepseek_v3", "qkv", d_q_lora=None, **flags).names
    assert "d_q_lora" not in pc.formula("deepseek_v3", "qkv", d_q_lora=1536, **flags).names


def test_layer_types_are_given_as_a_list_of_strings() -> None:
    flags: dict[str, Any] = {"mixer_bias": False, "conv_bias": True, "tie_word_embeddings": False, "dense_layers": [0]}
    attention = pc.formula("jamba", "qkv", layer_types=["mamba", "attention", "attention"], **flags)
    assert str(attention) == "2 · d_model · d_head · (n_heads + 2·n_kv_heads)"


def test_parts_are_given_as_names_of_architectures() -> None:
    message = str(formula_error("llava"))
    assert "language: the name of an architecture" in message
    assert "language.tie_word_embeddings" not in message  # the required flags depend on the language model
    flags: dict[str, Any] = {"projector_bias": True, "language": "llama", "vision": "clip_vision_model"}
    assert "language.tie_word_embeddings: True or False" in str(formula_error("llava", **flags))
    of_language: dict[str, Any] = {"attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False}
    by_dots = pc.formula("llava", **flags, **{f"language.{name}": value for name, value in of_language.items()})
    assert {"language.d_model", "vision.d_model"} <= set(by_dots.names)


# ---- names


def test_a_string_prefers_the_model_and_a_mapping_names_the_architecture() -> None:
    assert pc.formula("gpt2") == pc.formula("gpt2-small")
    assert formula_error({"architecture": "gpt2"}).where == "gpt2"
    names = {name.rpartition("/")[2] for id in zoo.list_ids() for name in zoo.list_names(id)}
    shared = [name for name in ARCHITECTURES if name in names]  # such as facebook/mvp
    assert {"gpt2", "openai-gpt", "mvp"} <= set(shared)
    assert [name for name in shared if find_architecture(name)] == []
    assert find_architecture("deepseek_v3") == "deepseek_v3"  # the model is deepseek-v3
    assert find_architecture("llama") == "llama"  # also a family, but not a model


def test_a_size_that_the_structure_depends_on_is_required() -> None:
    error = formula_error(
        "mllama", tie_word_embeddings=False, cross_attention_layers=(1,), **{"vision.intermediate_layers": (1,)}
    )
    assert (
        str(error) == "mllama: the weights depend on n_layers; specify it"
        " (expected n_layers: an integer, because the structure depends on it)"
    )


def test_legacy_buffers_that_are_not_polynomials_require_a_model() -> None:
    expected = "n_layers · n_positions²"
    assert str(pc.formula({"architecture": "gpt2"}, "legacy_buffers", tie_word_embeddings=True)) == expected
    crossing = pc.formula({"architecture": "gpt2"}, "legacy_buffers", tie_word_embeddings=True, cross_attention=True)
    assert str(crossing) == "n_layers · 2 · n_positions²"
    assert pc.formula("llama-2-7b", "legacy_buffers") == 32 * 64
    flags: dict[str, Any] = {"attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False}
    assert formula_error("llama", "legacy_buffers", **flags).where == "of"
