"""What if: sizes changed from Python and on the command line, the resulting counts, and invalid changes."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.architectures import split_name
from paramcount.sizes import get_key, inner_configs
from paramcount.sizes.values import format_size, parse_settings
from paramcount.zoo.entries import dump_sizes
from paramcount.zoo.what_if import changes_to_dict, describe_changes, get_size
from tests.batches import in_batches
from tests.model_types import MODEL_TYPES
from tests.refusing import Refuse, assert_one_line, error_of
from tests.running import Runner
from tests.structures import ZOO, keep_every, pick_structures, states_size
from tests.test_package import command_code, list_loaded_modules

STACKED = [id for id in ZOO if states_size(id, "n_layers")]
LISTS = ("windows", "encoder_kinds", "layer_types", "layer_groups", "attention_layers")  # an entry per layer
INDEXED = ("samba-1.3b", "stripedhyena-nous-7b")  # whose list has the indices of some layers
BOUNDED = ("hgrn2-1.3b",)  # a table outside of the layers has a row for each
LISTED = {id: name for id in STACKED for name in LISTS if states_size(id, name) and id not in INDEXED}
GROUPED = ("idefics-9b",)  # cross-attention stands in front of each four layers
SINGLE = ("eagle3-llama-3.1-8b-instruct",)  # has one layer, and others are refused
FIRST = ("eagle-llama-3-8b-instruct",)  # its only layer lacks the norm that all but the first have
OTHERS = [id for id in STACKED if id not in (*LISTED, *GROUPED, *INDEXED, *BOUNDED, *SINGLE, *FIRST)]
# The last one alone has a bias; it lacks an indexer; it is dense.
LIKE_A_NEW_LAYER = {"evolla-10b": 30, "gpt-neox-japanese-2.7b": 30, "glm-5.2": 74, "step3": 30}
TINY_OLMOE = {
    "model_type": "olmoe",
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
}
COMPOSITE = {
    "model_type": "llava",
    "text_config": {"model_type": "llama", "num_hidden_layers": 4},
    "vision_config": {"model_type": "clip_vision_model"},
}


def load_error(spec: pc.ModelLike, **changes: object) -> str:
    return error_of(lambda: pc.what_if(spec, **changes))


def default_config(name: str) -> dict[str, Any]:
    """The config.json of a model type that says as little as it can."""
    facts = MODEL_TYPES[name]
    return {"model_type": split_name(name)[0], "architectures": [facts.cls], **facts.vary.get("=", {})}


# ---- counts


@in_batches("id", pick_structures(OTHERS, every=8), size=50)
def test_three_more_layers_add_three_times_the_last_layer(id: str) -> None:
    """The last layer's weights are read off the tensors of the unchanged model, one by one; or those of the layer that
    a new one is like.
    """
    sizes: Any = zoo.load_entry(id).sizes
    count, n, last = pc.count(id), sizes.n_layers, 0
    like = LIKE_A_NEW_LAYER.get(id, n - 1)
    parts = {"encoder" if hasattr(sizes, "n_decoder_layers") or not count.parts["decoder"] else "decoder"}  # T5, BERT
    if not hasattr(sizes, "n_decoder_layers"):
        parts.add("cross_attention")  # of the same layers in ALBEF, TrOCR and MusicGen
    for tensor in count.tensors:
        for repeat in tensor.repeats:
            if repeat.axis == "layer" and tensor.part in parts and like in repeat.indices:
                last += tensor.parameters // repeat.count
    assert last > 0
    changes = {"n_layers": n + 3}
    if hasattr(sizes, "n_fusion_layers"):  # the last ones, which are counted in n_layers too
        changes["n_fusion_layers"] = sizes.n_fusion_layers + 3
    assert pc.count(pc.what_if(id, **changes)).total == count.total + 3 * last


@in_batches("id", pick_structures(ZOO, every=8), size=50)
def test_changing_a_size_equals_editing_the_zoo_entry(id: str) -> None:
    model = zoo.load_entry(id)
    config = dump_sizes(model.sizes)
    entry = {"architecture": model.architecture, "reference": None if model.reading.head else model.reading.reference}
    for name, value in config.items():
        if type(value) is int or isinstance(value, bool):
            new = not value if isinstance(value, bool) else 2 * value
            try:
                expected = pc.count(entry | {"config": config | {name: new}})
            except pc.ParamcountError as error:
                wrong = error.rename(lambda path: path.removeprefix("config.")).found
                with pytest.raises(pc.ParamcountError) as caught:
                    pc.what_if(id, **{name: new})
                assert caught.value.found == wrong
            else:
                found = pc.count(pc.what_if(id, **{name: new}))
                assert (found.components, found.active_components, found.buffers) == (
                    expected.components,
                    expected.active_components,
                    expected.buffers,
                )


@in_batches("name", keep_every(15, MODEL_TYPES), size=50)
def test_changing_a_size_equals_editing_the_config_json_except_for_noted_sizes(name: str) -> None:
    """Doubles every number of every architecture, with what_if and in its config.json."""
    document = default_config(name)
    model = pc.load(document)
    architecture = type(model.sizes)
    for field, value in model.sizes.__dict__.items():
        key = (
            *(get_key(architecture, field).spellings(field) if field not in inner_configs(architecture) else ()),
            "",
        )[0]
        if type(value) is int and key and not re.search("[./]", key) and not architecture.section:
            with contextlib.suppress(pc.ParamcountError):
                found, expected = pc.what_if(model, **{field: 2 * value}), pc.load({**document, key: 2 * value})
                followed = {
                    name: now for name, now in expected.sizes.__dict__.items() if now != getattr(found.sizes, name)
                }
                notes = [note for note in found.reading.notes if "would give" in note]
                assert notes == [
                    f"kept {name} = {format_size(getattr(model.sizes, name))}; deriving it from the new sizes would "
                    f"give {format_size(now)}"
                    for name, now in followed.items()
                ]


@in_batches("name", keep_every(15, MODEL_TYPES), size=50)
def test_one_more_layer_adds_parameters_or_is_an_error(name: str) -> None:
    """A list of layers never keeps its old length silently."""
    model = pc.load(default_config(name))
    for field in ("n_layers", "language.n_layers", "vision.n_layers", "encoder.n_layers"):
        n = get_size(model.sizes, field)
        if type(n) is int:
            with contextlib.suppress(pc.ParamcountError):
                assert pc.count(pc.what_if(model, **{field: n + 1})).total > pc.count(model).total


@pytest.mark.parametrize(
    ("size", "value"),
    [
        ("owners", ()),
        ("owners", (2,) * 12),
        ("owners", (0,) * 13),
        ("owners", (7,) * 13),
        ("layer_types", ("hybrid",) * 76),
    ],
)
def test_a_shared_block_belongs_to_an_earlier_hybrid_layer(size: str, value: tuple[object, ...]) -> None:
    assert pc.what_if({"model_type": "zamba"}, owners=(2,) * 13).sizes == pc.load({"model_type": "zamba"}).sizes
    assert "owners" in load_error({"model_type": "zamba"}, **{size: value})


def test_a_tied_lm_head_adds_nothing_and_more_experts_per_token_add_active_parameters() -> None:
    assert describe_changes(pc.what_if("llama-3.1-8b", tie_word_embeddings=True)) == [
        f"changed tie_word_embeddings false → true: total 8,030,261,248 − {128256 * 4096:,} = "
        f"{8_030_261_248 - 128256 * 4096:,}"
    ]
    expert = 3 * 14336 * 4096
    assert describe_changes(pc.what_if("mixtral-8x7b", n_active_experts=4)) == [
        "changed n_active_experts 2 → 4: total 46,702,792,704 + 0 = 46,702,792,704",
        f"active 12,879,925,248 + {32 * 2 * expert:,} = {12_879_925_248 + 32 * 2 * expert:,}",
    ]
    assert describe_changes(pc.what_if("deepseek-v3", n_mtp_layers=0))[2] == "MTP 11,610,067,968 − 11,610,067,968 = 0"
    assert describe_changes(pc.load("llama-3.1-8b")) == []
    assert changes_to_dict(pc.load("llama-3.1-8b")) == {}


def test_lists_and_null_are_valid_values() -> None:
    kinds = ("sliding_attention", "full_attention") * 15
    model = pc.what_if("gpt-oss-20b", n_layers=30, layer_types=kinds)
    layer = (
        pc.count("gpt-oss-20b").total - pc.count(pc.what_if("gpt-oss-20b", n_layers=23, layer_types=kinds[:23])).total
    )
    assert pc.count(model).total == pc.count("gpt-oss-20b").total + 6 * layer
    assert describe_changes(model)[0].startswith(
        "changed n_layers 24 → 30, layer_types 12 × (sliding_attention, full_attention) → 15 × (sliding_attention, "
        "full_attention): total "
    )
    assert pc.what_if("mistral-7b-v0.1", window=None).sizes.window is None  # type: ignore[attr-defined]
    dense = pc.what_if("qwen3-30b-a3b", dense_layers=[0, 47])
    assert pc.count(dense).total - pc.count("qwen3-30b-a3b").total == 2 * (
        3 * 6144 * 2048 - 128 * 3 * 768 * 2048 - 128 * 2048
    )


def test_sizes_of_inner_configs_are_set_with_dots_or_mappings() -> None:
    model = pc.load(COMPOSITE)
    layer = 4 * 4096 * 4096 + 3 * 11008 * 4096 + 2 * 4096  # of the default Llama
    for changes in ({"language.n_layers": 6}, {"language": {"n_layers": 6}}):
        changed = pc.what_if(model, **changes)
        assert pc.count(changed).total == pc.count(model).total + 2 * layer
        assert changed.changes == {"language.n_layers": (4, 6)}
        assert type(changed.sizes.language) is type(model.sizes.language)  # type: ignore[attr-defined]
    both = pc.what_if(
        model, **{"language.n_layers": 6, "vision.n_layers": get_size(model.sizes, "vision.n_layers") + 1}
    )
    assert pc.count(both).components["vision"] > pc.count(model).components["vision"]


def test_a_second_change_keeps_the_first_original() -> None:
    once = pc.what_if("gpt2-small", n_layers=24)
    twice = pc.what_if(once, vocab_size=50304)
    assert twice.original is pc.load("gpt2-small")
    assert twice.changes == {"n_layers": (12, 24), "vocab_size": (50257, 50304)}
    assert changes_to_dict(twice) == {
        "set": {"n_layers": [12, 24], "vocab_size": [50257, 50304]},
        "original_total": 124439808,
        "original_active": 124439808,
    }


def test_a_changed_model_has_no_published_facts_of_the_original() -> None:
    model = pc.what_if("deepseek-v3", n_layers=60)
    assert (model.checked, model.published, model.release, model.sources) == ("unverified", (), None, ())
    assert (model.hf, model.publisher) == (None, None)
    assert (pc.count(model).release, pc.count(model).checkpoint) == ({}, None)
    assert (model.id, model.context_length) == ("deepseek-v3", 163840)
    assert pc.what_if("gpt2-small", n_positions=2048).context_length is None


def test_a_changed_config_keeps_its_class_and_warnings() -> None:
    classifier = {
        **TINY_OLMOE,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "architectures": ["OlmoeModel"],
        "conv_kernel_size": 4,
    }
    model = pc.what_if(classifier, n_layers=3)
    count = pc.count(model)
    assert (count.reference, count.lm_head, count.not_counted) == ("OlmoeModel", 0, ("lm_head",))
    assert count.warnings == ("ignored conv_kernel_size (looks like a size, but OlmoeForCausalLM does not use it)",)
    assert model.reading.origin["n_layers"].kind == "set"


# ---- invalid changes


@in_batches("id", pick_structures(LISTED), size=50)
def test_a_list_with_one_entry_per_layer_must_change_with_the_number_of_layers(id: str) -> None:
    n: int = pc.load(id).sizes.n_layers  # type: ignore[attr-defined]
    message = load_error(id, n_layers=n + 1)
    assert f"{LISTED[id]} has {n} entries for n_layers = {n + 1} (expected one per layer" in message


@pytest.mark.parametrize(
    ("spec", "changes", "message"),
    [
        ("llama-3.1-8b", {"n_layers": {"x": 3}}, "has no size 'n_layers.x' (expected "),
        ("llama-3.1-8b", {"": 3}, "has no size '' (expected "),
        ("llama-3.1-8b", {"model_config": 3}, "has no size 'model_config' (expected "),
        ("llama-3.2-11b-vision", {"vision.": 3}, "has no size 'vision.' (expected "),
        (COMPOSITE, {"text_config.num_hidden_layers": 3}, "; did you mean language.n_layers or vision.n_layers"),
        (COMPOSITE, {"n_layers": 3}, "; did you mean language.n_layers or vision.n_layers"),
        (COMPOSITE, {"language.n_laiers": 3}, "; did you mean language.n_layers"),
        (
            {"model_type": "gemma4", "text_config": {}, "vision_config": None},
            {"vision.n_layers": 3},
            "vision is null: there is no 'n_layers' to set",
        ),
        (
            "gpt2-small",
            {"n_layers": 3, "n_layer": 4},
            "gpt2-small: n_layers is given twice, as 'n_layers' and as 'n_layer' (expected each size once)",
        ),
        ("eagle3-llama-3.1-8b-instruct", {"n_layers": 4}, "n_layers = 4 (expected 1)"),
        ("albef-text", {"n_layers": 3}, "n_layers = 3 is not n_fusion_layers + n_text_layers = 12 (expected 12)"),
        ("blip-text", {"n_layers": 15}, "(expected 12, for example n_layers=15 and n_fusion_layers=15)"),
    ],
)
def test_a_size_that_cannot_be_set_is_an_error(spec: pc.ModelLike, changes: dict[str, Any], message: str) -> None:
    assert message in load_error(spec, **changes)


def test_changes_that_are_no_mapping_are_an_error() -> None:
    message = error_of(lambda: pc.count("gpt2-small", set=3))  # type: ignore[arg-type]
    assert message == "set is of type int (expected a mapping of sizes to values)"


@pytest.mark.parametrize(
    ("id", "name", "size"),
    [
        ("llama-3.1-8b", "num_hidden_layers", "n_layers"), ("llama-3.1-8b", "hidden_size", "d_model"),
        ("llama-3.1-8b", "KV heads", "n_kv_heads"),
        ("mixtral-8x7b", "intermediate_size", "d_expert"),  # as that architecture reads it
        ("mixtral-8x7b", "num_local_experts", "n_routed_experts"), ("gpt2-small", "n_embd", "d_model"),
        ("gpt2-small", "hidden_size", "d_model"),
        ("gpt2-small", "layers", "n_layers"), ("llama-3.2-11b-vision", "vision.hidden_size", "vision.d_model"),
    ],
)  # fmt: skip
def test_a_config_json_key_or_a_heading_refers_to_a_size(id: str, name: str, size: str) -> None:
    value: object = pc.load(id).sizes
    for field in size.split("."):
        value = getattr(value, field)
    assert dict(pc.what_if(id, **{name: value}).changes) == {size: (value, value)}


# ---- the command line


def test_values_are_parsed_as_yaml() -> None:
    typed = parse_settings(["a=1", "b = true", "c=null", "d=[x, y]", "e=-3", "f=full", "g={x: 1}"])
    assert typed == {"a": 1, "b": True, "c": None, "d": ["x", "y"], "e": -3, "f": "full", "g": {"x": 1}}


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["n_layers"], "--set n_layers has no value (expected a size and its value, such as n_layers=40)"),
        (["n_layers="], "--set n_layers has no value (expected a size and its value, such as n_layers=40)"),
        (["=40"], "--set does not name a size (expected a size and its value, such as n_layers=40)"),
        ([""], "--set does not name a size (expected a size and its value, such as n_layers=40)"),
        (["n_layers=40", "n_layers=40"], "--set n_layers is given twice (expected each size once)"),
        (["n_layers=forty"], "gpt2-small: n_layers = 'forty' (expected an integer)"),
        (["n_layers=4.5"], "gpt2-small: n_layers = 4.5 (expected an integer)"),
        (["n_layers=1__000"], "gpt2-small: n_layers = '1__000' (expected an integer)"),
        (["n_layers=012"], "gpt2-small: n_layers = '012' (expected an integer)"),
        (["n_layers=null"], "gpt2-small: n_layers = null (expected an integer)"),
        (["n_layers=" + "9" * 31],
         "gpt2-small: n_layers = a number of more than 30 digits (expected an integer of at most 2,147,483,648)"),
        (["tie_word_embeddings=yes"], "gpt2-small: tie_word_embeddings = 'yes' (expected true or false)"),
        (["n_layers=[1"], "--set n_layers = '[1': invalid YAML: did not find expected ',' or ']'"),
        (["n_layers=3\nd_ff: 4"], r"--set n_layers = '3\nd_ff: 4' (expected a string of printable characters)"),
        (["n_layers=\x1b[31m"], r"--set n_layers = '\x1b[31m' (expected a string of printable characters)"),
        (["n_layers=&a [*a, *a]"], "--set n_layers = '&a [*a, *a]': anchors and aliases are not allowed"),
        (["n_layers=!!python/object:os.system x"], "--set n_layers = '!!python/object:os.system x': the tag"),
        (["n_layers=" + "[" * 40], "--set n_layers = '[[[[["),
        (["n_layers=" + "9" * 200], "--set n_layers = '9999"),
        (["\x1b[2J=1"], r"gpt2-small has no size '\x1b[2J' (expected vocab_size, "),
        (["n_kv_heads=4"], "gpt2-small has no size 'n_kv_heads' (expected n_heads, d_head, n_layers, n_positions, "
                           "d_model or 4 others); "
         "did you mean n_heads or d_head?"),
    ],
)  # fmt: skip
def test_an_invalid_setting_is_an_error_of_one_line(typed: list[str], message: str, refuse: Refuse) -> None:
    words = [word for setting in typed for word in ("--set", setting)]
    assert refuse("show", "gpt2-small", *words).startswith(message)


SETTINGS = st.text("[]{},:&*!#|>'\"%@ \t\n019-.nulltrue\x1b\u202e\ud800é", max_size=20) | st.sampled_from(
    ["2147483648", "1e5", "-1", "[]", "{}", "[1, 1]", "null"]
)
NAMES = st.sampled_from(
    ["n_layers", "n_heads", "layer_types", "vision.n_layers", "vision", "dense_layers", "tie_word_embeddings"]
) | st.text(max_size=12)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["gpt2-small", "gpt-oss-20b", "llama-3.2-11b-vision", "qwen3-30b-a3b"]),
    st.lists(st.tuples(NAMES, SETTINGS), max_size=3),
)
def test_any_setting_gives_a_result_or_an_error_of_one_line(id: str, pairs: list[tuple[str, str]]) -> None:
    try:
        model = pc.what_if(id, **parse_settings(f"{name}={value}" for name, value in pairs))
        assert all(line.isprintable() for line in describe_changes(model))
        json.dumps(changes_to_dict(model))
    except pc.ParamcountError as error:
        assert_one_line(str(error))


@pytest.mark.parametrize("by", [[], ["--by", "layer"], ["--by", "part"], ["--by", "tensor"]])
def test_every_table_of_a_changed_model_shows_the_change(run: Runner, by: list[str]) -> None:
    line = ["gpt2-small", "--set", "n_layers=14", *by]
    for format in ("table", "markdown", "html", "latex"):
        assert "changed n" in run(*line, "--format", format).out
    data = json.loads(run(*line, "--json").out)
    assert data["total"] == 124_439_808 + 2 * (12 * 768 * 768 + 13 * 768)
    assert data["set"] == {"n_layers": [12, 14]}
    assert (data["original_total"], data["original_active"]) == (124_439_808, 124_439_808)
    assert data.get("proof", "changed n_layers 12 → 14") == "changed n_layers 12 → 14"
    assert "set" not in json.loads(run("gpt2-small", *by, "--json").out)


def test_keys_shows_which_size_was_set(run: Runner, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TINY_OLMOE), encoding="utf-8")
    lines = run(str(path), "--keys", "--csv", "--set", "n_layers=5").out.splitlines()
    assert {",set,n_layers,,5,", "hidden_size,read,d_model,,64,"} < set(lines)


def test_a_comparison_changes_every_model_and_shows_each_difference(run: Runner) -> None:
    out = run("gpt2-small", "gpt2-medium", "--set", "n_layers=40").out
    assert out.startswith("changed to n_layers = 40\n")
    small, medium = 28 * (12 * 768 * 768 + 13 * 768), 16 * (12 * 1024 * 1024 + 13 * 1024)
    assert f"+{small:,}" in out and f"+{medium:,}" in out
    assert "unverified" not in out
    line = ("compare", "gpt2-*", "--set", "n_layers=40", "--sort", "-difference", "--json")
    models = json.loads(run(*line).out)["models"]
    assert [model["id"] for model in models] == ["gpt2-medium", "gpt2-small", "gpt2-large", "gpt2-xl"]
    assert [model["total"] - model["original_total"] for model in models] == [model["difference"] for model in models]
    assert (models[0]["set"], models[0]["active_difference"]) == ({"n_layers": [24, 40]}, medium)
    assert (models[0]["original_active"], models[0]["verified"]) == (354_823_168, None)


def test_a_comparison_of_changed_moe_models_shows_the_active_difference(run: Runner) -> None:
    out = run("compare", "mixtral-8x7b", "gpt-oss-20b", "--set", "n_active_experts=1").out
    assert f"−{32 * 3 * 14336 * 4096:,}" in out
    assert "act. difference" in out


def test_difference_columns_exist_only_for_changed_models(run: Runner) -> None:
    assert "unknown column 'difference'" in run("compare", "gpt2-small", "--columns", "difference").err
    expected = f"id,difference\ngpt2-small,-{11 * (12 * 768**2 + 13 * 768)}\n"
    assert run("compare", "gpt2-small", "--set", "n_layers=1", "--columns", "difference", "--csv").out == expected


def test_a_data_frame_may_contain_changed_and_unchanged_models(run: Runner) -> None:
    frame = pc.compare(["gpt2-small", pc.what_if("gpt2-small", n_layers=13)])
    assert frame["total"].diff().tolist()[1] == frame["difference"].tolist()[1] == 12 * 768**2 + 13 * 768
    assert frame["difference"].isna().tolist() == [True, False]
    assert "difference" not in pc.compare(["gpt2-small"])


def test_verify_compares_a_changed_model_with_the_numpy_pass_only(run: Runner) -> None:
    done = run("verify", "gpt2-small", "--set", "n_layers=2", "--set", "vocab_size=100")
    assert done.code == 0
    assert "causality violations" in done.out and "reference" not in done.out
    assert "published figures are not checked with --set" in done.out
    done = run("verify", "qwen2.5-32b", "--set", "n_layers=2")  # whose published figures do not all match
    assert done.code == 0
    assert "published figures are not checked with --set" in done.out
    data = json.loads(run("verify", "llama-3.1-8b", "--set", "n_layers=2", "--json").out)
    assert (data["checks"], data["set"]) == ([], {"n_layers": [32, 2]})


def test_the_module_for_changes_is_loaded_only_for_changed_models() -> None:
    for line in (["gpt2-small"], ["compare", "gpt2-small", "gpt2-xl"]):
        assert {"paramcount.zoo.what_if", "paramcount.sizes.values", "paramcount.views.diff"} & set(
            list_loaded_modules(command_code(line))
        ) == set()
    assert "paramcount.zoo.what_if" in list_loaded_modules(command_code(["gpt2-small", "--set", "n_layers=2"]))


# ---- lists in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((), "none"),
        ((7,), "7"),
        ((0, 1, 2), "0–2"),
        ((3, 7, 11, 15, 19, 23, 27), "3, 7, 11, 15, 19, …, 27"),
        ((8, 8, 8, 4), "3 × 8, 4"),
        (("a",) * 5, "5 × a"),
        (("a", "b"), "a, b"),
        (("a", "b", "a"), "a, b, a"),
        (("a", "b") * 6, "6 × (a, b)"),
        (("a", "a", "b") * 4 + ("a",), "4 × (2 × a, b), a"),
        (("a", "b", "a", "a", "b", "b", "a", "b", "b", "a"), "5 × a, 5 × b in mixed order"),
        (("x\x1by",), r"x\x1by"),
    ],
)
def test_a_list_is_summarised_by_its_repeating_pattern(value: tuple[object, ...], text: str) -> None:
    assert format_size(value) == text


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=24))
def test_the_summary_of_a_list_expands_to_the_list_unless_it_says_mixed_order(words: list[str]) -> None:
    text = format_size(tuple(words))
    is_mixed = text.endswith(" in mixed order")
    pattern = re.fullmatch(r"(\d+) × \((.*)\)(?:, (.*))?", text)
    pieces = [(1, text.removesuffix(" in mixed order"))]
    if pattern is not None:
        pieces = [(int(pattern[1]), pattern[2]), (1, pattern[3] or "")]
    expanded: list[str] = []
    for times, piece in pieces:
        runs = [run.rpartition(" × ") for run in piece.split(", ") if run]
        expanded += [word for n, _, word in runs for _ in range(int(n or 1))] * times
    if is_mixed:
        assert sorted(expanded) == sorted(words)
    else:
        assert expanded == words


def test_a_changed_model_keeps_the_settings_of_its_entry() -> None:
    original = pc.load("llama-3.1-8b")
    changed = pc.what_if(original, n_layers=2)
    assert (changed.sizes.settings, original.sizes.settings["rope"].base) == (original.sizes.settings, 500_000)
