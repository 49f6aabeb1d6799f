"""The meaning of a config.json: which class is counted, what missing keys and nulls mean, which keys are ignored."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import paramcount as pc
from paramcount.architectures import ARCHITECTURES, architecture, split_name
from paramcount.architectures.llama import Llama
from paramcount.huggingface.fields import list_fields
from paramcount.sizes import Positive, find_default, get_key, hf, setting
from tests.batches import in_batches
from tests.refusing import Refuse, error_of, model_error
from tests.running import Runner
from tests.test_config_files import QWEN, TOTAL

DATA = Path(__file__).parent / "data"
HEAD = 151_936 * 4096  # of QWEN


def of_type(model_type: str, **keys: Any) -> dict[str, Any]:
    """A config.json."""
    return {"model_type": model_type, **keys}


Show = Callable[..., tuple[str, str]]


@pytest.fixture
def show(tmp_path: Path, run: Runner) -> Show:
    """A function that writes a config.json and returns what the command prints about it: stdout and stderr."""
    path = tmp_path / "config.json"

    def show_document(document: dict[str, Any], *options: str) -> tuple[str, str]:
        path.write_text(json.dumps(document), encoding="utf-8")
        done = run(str(path), *options)
        assert done.code == 0
        return done.out, done.err

    return show_document


def list_keys(show: Show, document: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of --keys."""
    rows: list[dict[str, Any]] = json.loads(show(document, "--keys", "--json")[0])["keys"]
    return rows


def make_row(key: str, origin: str, size: str, value: object) -> dict[str, Any]:
    return {"key": key, "origin": origin, "size": size, "setting": "", "value": value, "derived_from": []}


def split_table(show: Show, document: dict[str, Any]) -> list[list[str]]:
    """The lines of --keys as CSV."""
    return [line.split(",") for line in show(document, "--keys", "--csv")[0].splitlines()]


# ---- the class


def test_the_first_class_in_architectures_is_counted() -> None:
    body = pc.count(QWEN | {"architectures": ["Qwen3Model"]})
    assert (body.total, body.not_counted, body.reference) == (TOTAL - HEAD, ("lm_head",), "Qwen3Model")
    assert body.to_dict()["not_counted"] == ["lm_head"]
    classifier = pc.count(QWEN | {"architectures": ["Qwen3ForTokenClassification", "Qwen3ForCausalLM"]})
    assert (classifier.total, classifier.not_counted) == (TOTAL - HEAD + 2 * 4096 + 2, ())  # two labels
    assert classifier.reference == "Qwen3ForTokenClassification"


@pytest.mark.parametrize(
    ("classes", "warning"),
    [
        (["Qwen3ForCausalLM"], None),
        ([], None),
        (None, None),
        (
            ["Qwen2ForCausalLM"],
            "architectures names Qwen2ForCausalLM, a class of model_type qwen2, but model_type is qwen3",
        ),
        (["FooForCausalLM"], "architectures names FooForCausalLM, which is unknown, but model_type is qwen3"),
        ("Qwen3ForCausalLM", "ignored architectures (expected a list of class names, found 'Qwen3ForCausalLM')"),
        ([1], "ignored architectures (expected a list of class names, found [1])"),
        ({"a": 1}, "ignored architectures (expected a list of class names, found {…})"),
    ],
)
def test_architectures_that_contradict_the_model_type_are_a_warning(classes: object, warning: str | None) -> None:
    """The reference's AutoModel classes choose by model_type and build Qwen3ForCausalLM with each of these."""
    count = pc.count(QWEN | {"architectures": classes})
    assert (count.total, count.reference) == (TOTAL, "Qwen3ForCausalLM")
    assert count.warnings == ((f"{warning}; counted as Qwen3ForCausalLM",) if warning else ())


# BertForTokenClassification minus its head, transformers 5.23.0, default config; a pooler adds 768 × 768 + 768.
BERT_BODY = 108_891_648


@pytest.mark.parametrize(
    ("model_type", "cls", "total", "not_counted"),
    [
        ("bert", "BertLMHeadModel", 109_514_298, ()),
        ("bert", "BertModel", BERT_BODY + 590_592, ("lm_head",)),
        ("bert", "BertForPreTraining", 109_514_298 + 590_592 + 2 * 768 + 2, ()),
        ("bart", "BartForCausalLM", 254_084_096, ()),
        ("t5", "T5EncoderModel", 35_330_816, ()),
    ],
)
def test_an_encoder_has_the_pooler_and_head_of_its_class(
    model_type: str, cls: str, total: int, not_counted: tuple[str, ...]
) -> None:
    count = pc.count(of_type(model_type, architectures=[cls]))
    assert (count.total, count.not_counted, count.reference) == (total, not_counted, cls)


def test_the_table_of_a_model_without_its_head_says_so(show: Show) -> None:
    document = QWEN | {"architectures": ["Qwen3Model"]}
    out, _ = show(document)
    assert "not included in the total: lm_head" in out
    assert "as built by Qwen3Model" in out


# ---- missing keys, nulls, other spellings


@pytest.mark.parametrize(
    ("document", "total"),
    [  # transformers 5.23.0, the class of each type with these keys
        ({"model_type": "llama"}, 6_738_415_616),
        (of_type("llama", num_key_value_heads=None), 6_738_415_616),
        (of_type("llama", num_key_value_heads=8), 5_933_109_248),
        (of_type("qwen2", num_attention_heads=64), 11_512_844_288),
        (of_type("gpt2", n_inner=None), 124_439_808),
        (of_type("gpt2", n_embd=768, n_layer=12), 124_439_808),
        (of_type("gpt2", hidden_size=768, num_hidden_layers=12), 124_439_808),
        (of_type("mllama_text_model", num_hidden_layers=4), 1_923_158_274),
        (of_type("mllama_text_model", num_hidden_layers=4, cross_attention_layers=[3, 0, 9]), 1_923_158_532),
        (of_type("switch_transformers", encoder_sparse_step=1), 515_548_416),
        (of_type("switch_transformers", encoder_sparse_step=0, decoder_sparse_step=6), 229_207_296),
        (of_type("modernbert-decoder", sliding_window=-1), 149_655_232),
    ],
)
def test_missing_keys_and_nulls_mean_the_same_as_in_the_reference(document: dict[str, Any], total: int) -> None:
    assert pc.count(document).total == total


# ---- ignored keys


def test_an_ignored_key_that_looks_like_a_size_is_a_warning() -> None:
    document = QWEN | {
        "num_experts": 64,
        "conv_kernel_size": 4,
        "max_position_embeddings": 40960,
        "bos_token_id": 151643,
        "use_cache": True,
        "num_x": 1,
    }
    warning = "ignored num_experts and conv_kernel_size (look like sizes, but Qwen3ForCausalLM does not use them)"
    count = pc.count(document)
    assert (count.warnings, count.notes, count.remarks) == ((warning,), (), (warning,))
    plain = count.to_dict()
    assert (plain["warnings"], plain["notes"], plain["remarks"]) == ([warning], [], [warning])
    assert pc.count(QWEN).warnings == pc.count(QWEN).notes == ()


LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 100, "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "tie_word_embeddings": False,
    "attention_bias": False,
}  # fmt: skip


def omit_key(key: str) -> dict[str, Any]:
    return {name: value for name, value in LLAMA.items() if name != key}


@pytest.mark.parametrize(
    ("misspelt", "value", "correct"),
    [
        ("hiden_size", 32, "hidden_size"),
        ("hidden_dim", 32, "hidden_size"),
        ("HIDDEN_SIZE", 32, "hidden_size"),
        ("hiddenSize", 32, "hidden_size"),
        ("numLayers", 3, "num_hidden_layers"),
        ("num_layer", "8", "num_hidden_layers"),
        ("n_layer", 8.0, "num_hidden_layers"),
        ("num_heads", [8, 8], "num_attention_heads"),
        ("ffn_dim", 32, "intermediate_size"),
        ("tie_word_embedding", True, "tie_word_embeddings"),
        ("tie-word-embeddings", True, "tie_word_embeddings"),
        ("attention_biass", True, "attention_bias"),
    ],
)
def test_the_warning_about_a_misspelt_key_suggests_the_correct_key(misspelt: str, value: object, correct: str) -> None:
    """LlamaConfig has the correct keys and ignores the misspelt ones."""
    count = pc.count({**omit_key(correct), misspelt: value})
    assert count.total == pc.count(omit_key(correct)).total
    reason = "LlamaForCausalLM does not use it"
    if "bias" not in misspelt and "tie" not in misspelt:
        reason = f"looks like a size, but {reason}"
    assert count.warnings[0] == f"ignored {misspelt} ({reason}); did you mean {correct}?"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_dropout", 0.1),
        ("num_layer", None),
        ("num_layer", "auto"),
        ("n_layer", 2),
        ("num_mtp", 1),
        ("rope_scaling", {"factor": 2.0}),
        ("use_cache", True),
    ],
)
def test_other_ignored_keys_cause_no_warning(key: str, value: object) -> None:
    """`n_layer` repeats num_hidden_layers under an older name."""
    assert pc.count({**LLAMA, key: value}).warnings == ()


def test_missing_sizes_are_one_warning() -> None:
    """LlamaConfig's defaults are those of Llama 7B: 6,738,415,616 parameters."""
    count = pc.count(of_type("llama", rope_theta=500000.0))
    assert count.total == 6_738_415_616
    assert count.warnings == (
        "vocab_size, hidden_size, num_hidden_layers, num_attention_heads and intermediate_size are missing; used the "
        "defaults of LlamaConfig",
    )
    (warning,) = pc.count({"model_type": "qwen3"}).warnings
    assert warning.endswith("num_key_value_heads and 2 more are missing; used the defaults of Qwen3Config")
    assert pc.count(omit_key("hidden_size")).warnings == (
        "hidden_size is missing; used the default of LlamaConfig: 4,096",
    )
    assert pc.count({**LLAMA, "head_dim": None, "num_key_value_heads": None}).warnings == ()


def test_a_missing_section_is_a_warning_but_missing_sizes_in_it_are_not() -> None:
    """The reference saves only keys that differ from the defaults: LLaVA 1.5's text_config has no hidden_size."""
    layers = {"num_hidden_layers": 2}
    assert pc.count(of_type("gemma3", text_config=layers, vision_config=layers)).warnings == ()
    warnings = pc.count(of_type("gemma3", hidden_size=64)).warnings
    assert warnings == (
        "ignored hidden_size (looks like a size, but Gemma3ForConditionalGeneration does not use it); did you mean "
        "text_config.hidden_size?",
        "text_config is missing; used the defaults of Gemma3Config",
    )
    misspelt = of_type("gemma3", text_config={"hiden_size": 64})
    assert pc.count(misspelt).warnings == (
        "ignored text_config.hiden_size (looks like a size, but Gemma3ForConditionalGeneration does not use it); did "
        "you mean text_config.hidden_size?",
    )


def test_missing_sizes_at_the_top_level_of_a_multimodal_config_are_a_warning() -> None:
    """Qwen2VLConfig and Dots3NoteConfig read them there if there is no text_config."""
    (warning,) = pc.count({"model_type": "qwen2_vl"}).warnings
    assert warning.endswith("num_key_value_heads and 1 more are missing; used the defaults of Qwen2VLConfig")
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 1}
    sizes = {"vocab_size": 9, "hidden_size": 256, "intermediate_size": 8}
    assert pc.count(of_type("qwen2_vl", **sizes, **heads)).warnings == ()
    assert pc.count(of_type("qwen2_vl", text_config={"num_hidden_layers": 1})).warnings == ()
    (warning,) = pc.count({"model_type": "dots3_note"}).warnings
    assert warning.endswith("more are missing; used the defaults of Dots3NoteConfig")


LLAVA_NEXT = of_type(
    "llava_next", text_config=of_type("llama", num_hidden_layers=1), vision_config={"model_type": "no such encoder"}
)


@pytest.mark.parametrize(
    ("architectures", "head", "warning"),
    [
        (["LlavaNextForConditionalGeneration"], True, ()),
        (["LlavaNextModel"], False, ()),
        (["llavanextmodel"], False, ()),
        (
            ["LlavaForConditionalGeneration"],
            True,
            ("architectures names LlavaForConditionalGeneration, a class of model_type llava, but model_type is "
             "llava_next; "
             "counted as LlavaNextForConditionalGeneration",),
        ),
        (
            "LlavaNextModel",
            True,
            ("ignored architectures (expected a list of class names, found 'LlavaNextModel'); "
             "counted as llava_next, its language model as LlamaForCausalLM",),
        ),
    ],
)  # fmt: skip
def test_the_class_of_a_multimodal_model_decides_whether_there_is_an_lm_head(
    architectures: object, head: bool, warning: tuple[str, ...]
) -> None:
    """LlavaNextForConditionalGeneration has an LM head, LlavaNextModel has none."""
    count = pc.count(LLAVA_NEXT | {"architectures": architectures})
    assert (count.lm_head > 0, "lm_head" not in count.not_counted, count.warnings) == (head, head, warning)


@pytest.mark.parametrize(
    ("config", "used", "keys"),
    [
        # Dots3NoteTextConfig requires the rank of the kinds in layer_types only.
        (
            of_type("dots3_note_text", num_hidden_layers=2, layer_types=["full_attention"] * 2),
            {"layer_types": ["sliding_attention"] * 2},
            ["swa_q_lora_rank"],
        ),
        (
            of_type("dots3_note_text", num_hidden_layers=2, layer_types=["sliding_attention"] * 2),
            {"layer_types": ["full_attention"] * 2},
            ["q_lora_rank"],
        ),
        (
            of_type("kimi_linear", num_hidden_layers=2, mlp_layer_types=["dense", "dense"]),
            {},  # null with experts: in tests/data/refusals
            ["num_experts", "num_experts_per_token", "num_shared_experts"],
        ),
        # BailingHybridConfig declares none of these keys and therefore checks none.
        (
            of_type("bailing_hybrid", num_hidden_layers=2, layer_group_size=1),
            {"layer_group_size": 2},
            ["linear_conv_kernel_dim", "linear_num_heads", "linear_head_dim"],
        ),
        # AXK2Config.validate_architecture divides the number whether a layer has experts or not.
        (
            of_type("axk2", num_hidden_layers=2, mlp_layer_types=["dense", "dense"]),
            {"n_group": 1, "topk_group": 1},
            ["num_local_experts"],
        ),
    ],
)
def test_a_size_may_be_null_if_no_layer_uses_it(config: dict[str, Any], used: dict[str, Any], keys: list[str]) -> None:
    for key in keys:
        assert pc.count({**config, key: None}).total == pc.count(config).total
        if used:
            assert " null" in model_error({**config, **used, key: None})


@pytest.mark.parametrize(
    ("config", "unread"),
    [
        ({"model_type": "cohere2_moe"}, {"rope_scaling": {"rope_type": "nonsense"}}),  # a field that no code reads
        ({"model_type": "olmo_hybrid"}, {"rope_parameters": {"rope_type": "nonsense", "rope_theta": None}}),
        (
            of_type("step3p7", text_config={"sliding_window": 8, "layer_types": ["sliding_attention"] * 45}),
            {"text_config": {"rope_scaling": {"rope_type": "nonsense"}}},
        ),
    ],
)
def test_an_unknown_rope_type_is_no_error_where_the_reference_ignores_it(
    config: dict[str, Any], unread: dict[str, Any]
) -> None:
    merged = {**config, **{key: {**config.get(key, {}), **block} for key, block in unread.items()}}
    assert pc.count(merged).total == pc.count(config).total


@pytest.mark.parametrize("model_type", ["gptj", "bert", "kimi_linear", "jamba", "xlstm", "bloom"])
def test_the_keys_of_a_rope_type_have_defaults_only_with_rotary_positions(model_type: str) -> None:
    """PreTrainedConfig standardizes rope_parameters if the class declares them, or with rope_scaling and rope_theta;
    its validate_rope runs for every config class.
    """
    config, yarn = {"model_type": model_type}, {"rope_type": "yarn", "factor": 2.0}
    missing = "is missing for rope_type = yarn (expected a number)"
    assert model_error({**config, "rope_scaling": {"rope_type": "yarn"}}) == f"rope_scaling.factor {missing}"
    original = f"rope_scaling.original_max_position_embeddings {missing}"
    assert model_error({**config, "rope_scaling": yarn}) == original
    total = pc.count(config).total
    assert pc.count({**config, "rope_scaling": {**yarn, "original_max_position_embeddings": 512}}).total == total
    assert pc.count({**config, "rope_scaling": yarn, "rope_theta": 10000.0}).total == total
    assert pc.count({**config, "rope_scaling": {"rope_type": "no such kind"}}).total == total
    assert pc.count(of_type("persimmon", rope_scaling=yarn)).total == pc.count({"model_type": "persimmon"}).total


@pytest.mark.parametrize("key", ["text_config", "decoder", "generator"])
def test_a_section_that_the_reference_mistakes_for_the_language_model_is_an_error(key: str) -> None:
    """transformers 5.23 fails when GenerationConfig.from_model_config calls get_text_config.

    The error is "'dict' object has no attribute 'to_dict'". BertForMaskedLM does not generate text and is built.
    """
    block = {key: {"hidden_size": 1024}}
    text = "is set, but {} has no such section and cannot run with it (expected sizes at the top level)"
    assert model_error({**LLAMA, **block}) == f"{key} {text.format('LlamaForCausalLM')}"
    assert model_error(of_type("t5", **block)) == f"{key} {text.format('T5ForConditionalGeneration')}"
    assert (
        model_error({**LLAMA, **block, "architectures": ["LlamaModel"]}) == f"{key} {text.format('LlamaForCausalLM')}"
    )
    assert pc.count({**LLAMA, key: None}).warnings == ()
    (warning,) = pc.count(of_type("bert", **BERT, **block)).warnings
    assert warning == f"ignored {key} (a block with hidden_size, but BertForMaskedLM reads it at the top level)"


BERT = {
    "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
    "max_position_embeddings": 32, "type_vocab_size": 2,
}  # fmt: skip


def test_warnings_are_short_and_printable() -> None:
    """A config of hundreds of keys that look like sizes, with terminal escapes in them."""
    count = pc.count(
        LLAMA
        | {f"num_\x1b[31m{i}" + "x" * 300: 7 for i in range(300)}
        | {f"n_{i}_config": {"hidden_size": 7} for i in range(200)}
    )
    assert len(count.warnings) <= 8
    assert sum(map(len, count.warnings)) < 2000
    assert all(text.isprintable() for text in count.warnings)
    assert "and 295 more" in count.warnings[0]


COMMANDS = ["show", "compare", "explain", "trace", "why", "verify", "draw", "map", "report", "explore", "diff"]


@pytest.mark.parametrize("command", COMMANDS)
def test_strict_turns_a_warning_into_an_error(command: str, refuse: Refuse) -> None:
    Path("config.json").write_text(json.dumps({**LLAMA, "num_layer": 3}), encoding="utf-8")
    others = {
        "why": ["1"],
        "draw": ["-o", "out.svg"],
        "map": ["-o", "out.svg"],
        "explore": ["-o", "out.html"],
        "report": ["-o", "out.html"],
        "diff": ["gpt2-small"],
    }.get(command, [])
    message = refuse(command, "./config.json", *others, "--strict")
    assert "ignored num_layer (looks like a size, but LlamaForCausalLM does not use it)" in message


def test_strict_in_python_raises() -> None:
    message = "strict: ignored num_layer (looks like a size, but LlamaForCausalLM does not use it)"
    for call in (pc.count, pc.load):
        assert call(LLAMA, strict=True)
        with pytest.raises(pc.ParamcountError) as raised:
            call({**LLAMA, "num_layer": 3}, strict=True)
        assert str(raised.value) == message
    with pytest.raises(pc.ParamcountError, match="and 1 more warning"):
        pc.count({**LLAMA, "num_layer": 3, "llm_config": {"hidden_size": 2}}, strict=True)
    model = pc.load({**LLAMA, "num_layer": 3})
    with pytest.raises(pc.ParamcountError):
        pc.count(model, strict=True)


def test_python_warns_once_for_each_call_and_the_command_line_only_prints(show: Show) -> None:
    document = {**LLAMA, "num_layer": 3}
    text = "ignored num_layer (looks like a size, but LlamaForCausalLM does not use it)"
    for call in (pc.count, pc.load, pc.explain, pc.trace):
        with pytest.warns(pc.ConfigWarning) as shown:
            call(document)
        assert [(str(warning.message), warning.filename) for warning in shown] == [(text, __file__)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert show(document)[1] == f"warning: {text}\n"


REAL = sorted([*DATA.glob("truth/*.json"), *DATA.glob("config_truth/*.json")])
KNOWN_WARNINGS = {
    # sizes of sliding layers that the reference does not read
    "MiMo-V2-Flash": "ignored swa_num_key_value_heads (looks like a size, but MiMoV2FlashForCausalLM does not use it)"
}


@in_batches("path", REAL, ids=lambda path: path.stem, size=80)
def test_a_released_config_has_no_warnings(path: Path) -> None:
    config = json.loads(path.read_text(encoding="utf-8"))["config"]
    assert pc.load(config).reading.warnings == tuple(text for name, text in KNOWN_WARNINGS.items() if name == path.stem)


@pytest.mark.parametrize("command", ["show", "compare", "explain", "trace", "why", "verify"])
def test_every_command_prints_warnings_on_stderr_or_in_its_json(command: str, tmp_path: Path, run: Runner) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(QWEN | {"conv_kernel_size": 4}), encoding="utf-8")
    warning = "ignored conv_kernel_size (looks like a size, but Qwen3ForCausalLM does not use it)"
    start = f"{path}: " if command in ("compare", "why") else ""  # the model that the warning is about
    figure = ["8190735360"] if command == "why" else []
    printed = run(command, str(path), *figure).err.splitlines()
    assert [line for line in printed if not line.startswith("note: to read more")] == [f"warning: {start}{warning}"]
    done = run(command, str(path), *figure, "--json")
    assert (done.code, done.err) == (0, "")
    assert [json.loads(done.out)[kind] for kind in ("warnings", "notes")] == [[f"{start}{warning}"], []]


def test_keys_shows_where_every_size_comes_from(show: Show) -> None:
    document = of_type("llama", hidden_size=2048, num_key_value_heads=None, rope_theta=1e4)
    out, _ = show(document, "--keys", "--json")
    rows = {row["size"] or row["setting"] or row["key"]: row for row in json.loads(out)["keys"]}
    assert rows["d_model"] == make_row("hidden_size", "read", "d_model", 2048)
    assert rows["vocab_size"] == make_row("", "default", "vocab_size", 32000)
    assert rows["d_head"]["origin"] == "derived"
    assert rows["rope_theta"] == make_row("rope_theta", "used", "", 10000.0)
    assert rows["num_key_value_heads"] == make_row("num_key_value_heads", "used", "", None)
    settings = {"is_causal", "activation", "norm_eps", "rope"}
    assert set(rows) == {*type(pc.load(document).sizes).fields, *settings, "num_key_value_heads", "rope_theta"}
    out, _ = show(document, "--keys")
    assert "read as LlamaForCausalLM, architecture llama" in out


def test_keys_lists_config_values_and_derived_sizes_separately(show: Show) -> None:
    """SigLIP splits an image of 896 × 896 into 64 × 64 patches of 14 × 14 (arXiv:2503.19786, section 2)."""
    document = of_type(
        "gemma3", text_config={"num_hidden_layers": 2}, vision_config={"image_size": 896, "patch_size": 14}
    )
    rows = list_keys(show, document)
    assert make_row("vision_config.image_size", "used", "", 896) in rows
    patches = make_row("", "derived", "vision.n_patches", 4096) | {"derived_from": ["vision_config.image_size"]}
    assert [row for row in rows if row["size"] == "vision.n_patches"] == [patches]
    lines = [line.split() for line in show(document, "--keys")[0].splitlines()]
    # At 80 columns the values are in a second table below.
    assert ["vision_config.image_size", "used"] in lines
    assert ["vision_config.image_size", "896"] in lines
    table = split_table(show, document)
    assert ["vision_config.image_size", "used", "", "", "896", ""] in table
    assert ["", "derived", "vision.n_patches", "", "4096", "vision_config.image_size"] in table


def test_keys_shows_the_settings_of_each_part_with_their_section(show: Show) -> None:
    sections = {"text_config": {"rms_norm_eps": 0.001, "rope_theta": 5e5}, "vision_config": {"layer_norm_eps": 0.5}}
    document = of_type("llava", **sections)
    table = split_table(show, document)
    assert table[0] == ["key", "origin", "size", "setting", "value", "derived_from"]
    assert ["text_config.rms_norm_eps", "read", "", "language.norm_eps", "0.001", ""] in table
    assert ["text_config.rope_theta", "used", "", "", "500000.0", ""] in table
    assert ["vision_config.layer_norm_eps", "read", "", "vision.norm_eps", "0.5", ""] in table
    assert not [row for row in table if row[1] == "ignored"]


@pytest.mark.parametrize(  # the init_kwargs of the language model in sub_configs_defaults of each config class
    ("model_type", "eps", "base"),
    [
        ("glmasr", 1e-5, 10000),
        ("got_ocr2", 1e-6, 1e6),
        ("idefics2", 1e-5, 10000),
        ("idefics3", 1e-5, 10000),
        ("lighton_ocr", 1e-6, 1e6),
        ("mistral3", 1e-5, 1e9),
        ("moss_transcribe_diarize", 1e-6, 1e6),
        ("smolvlm", 1e-5, 10000),
        ("voxtral", 1e-5, 1e8),
    ],
)
def test_a_missing_section_has_the_settings_that_the_config_class_gives_it(
    model_type: str, eps: float, base: float
) -> None:
    """VoxtralConfig.__post_init__ and GlmAsrConfig.__post_init__ put them under the keys of a partial section, too."""
    documents = [of_type(model_type, rms_norm_eps=0.5, rope_theta=7.0)]  # at the top level, nothing reads them
    if model_type in ("glmasr", "voxtral"):
        documents.append(of_type(model_type, text_config=of_type("llama", num_hidden_layers=2)))
    for document in documents:
        settings = pc.load(document).sizes.language.settings  # type: ignore[attr-defined]
        assert (settings["norm_eps"], settings["rope"].base) == (eps, base)


def test_a_narrow_terminal_names_every_row_of_keys_in_every_panel(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    document = of_type("llama", hidden_size=2048)
    monkeypatch.setenv("COLUMNS", "40")
    lines = show(document, "--keys")[0].splitlines()
    assert [line.split() for line in lines if line.startswith("d_head ")] == [["d_head", "derived"], ["d_head", "64"]]


# ---- models whose number of active experts varies


@pytest.mark.parametrize(
    ("document", "unused"),
    [  # A token uses 12 of 512 experts and 256 identity experts, so perhaps none with weights: 28 layers × 12 × 3 × …
        ({"model_type": "longcat_flash"}, 28 * 12 * 3 * 2048 * 6144),
        (of_type("longcat_flash", zero_expert_num=10), 28 * 10 * 3 * 2048 * 6144),
        ({"model_type": "mixtral"}, 0),
    ],
)
def test_active_min_is_lower_if_the_number_of_active_experts_varies(document: dict[str, Any], unused: int) -> None:
    for _ in range(4):  # first over the weights, then from the cached polynomials
        count = pc.count(document)
        assert count.active - count.active_min == unused
        assert count.to_dict()["active_min"] == count.active_min


# ---- configs that cannot be built


def test_ovis2_may_have_an_lm_head_of_its_own() -> None:
    """Its sizes are outside text_config (modeling_ovis2.py, Ovis2ForConditionalGeneration)."""
    text = {
        "vocab_size": 96,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 40,
    }
    own = of_type("ovis2", tie_word_embeddings=False, vocab_size=96, hidden_size=32, text_config=text)
    assert pc.count(own).total - pc.count(own | {"tie_word_embeddings": True}).total == 96 * 32
    assert pc.count(own).scope == "model"
    assert "same vocab_size and hidden_size" in error_of(pc.count, own | {"vocab_size": 64})


def test_no_error_about_a_config_names_a_size_that_is_not_a_key() -> None:
    """Over all model types, with sizes that do not fit together. "rotary" and "rotates" are words, too, and "depths" is
    a key of CLAP.
    """
    types = [name for name in ARCHITECTURES if not split_name(name)[1]]
    spellings = [
        (field.name, field.spellings)
        for name in types
        for field in list_fields(architecture(name))
        if field.inner is None
    ]
    keys = {key.name.split(".")[-1] for _, names in spellings for key in names}
    fields = {field for field, _ in spellings} - keys - {"rotary", "rotates", "depths"}
    sizes = [("hidden_size", 1), ("hidden_size", 33), ("num_attention_heads", 7), ("head_dim", 7), ("num_experts", 1)]
    messages = []
    for name in types:
        for key, value in sizes:
            try:
                pc.count({"model_type": name, key: value})
            except pc.ParamcountError as error:
                messages.append(str(error))
    assert len(messages) > 300
    assert [message for message in messages if fields & set(re.findall(r"\w+", message))] == []


def test_defaults_are_inherited_until_a_nearer_class_states_another() -> None:
    class Middle(Llama):
        defaults: ClassVar = {"d_ff": 5, "n_heads": 6, "norm_eps": 0.5}

    class Last(Middle):
        n_heads: Positive = hf("heads", absent=7)

        norm_eps: ClassVar = setting("eps", default=0.25)

    assert [get_key(Last, name).absent for name in ("d_model", "d_ff", "n_heads")] == [4096, 5, 7]
    assert find_default(Middle, "norm_eps", 1.0) == 0.5
    assert find_default(Last, "norm_eps", 0.25) == 0.25


def test_unlimited_ocr_reads_the_section_of_its_release() -> None:
    text = {"hidden_size": 20, "num_hidden_layers": 2}
    now = pc.count(of_type("unlimited_ocr", text_config=text))
    released = of_type("unlimited_ocr", language_config=text)
    assert pc.count(released).total == now.total
    assert now.total < 600_000_000 < pc.count({"model_type": "unlimited_ocr"}).total
    ignored = pc.count(of_type("unlimited_ocr", text_config=text, language_config={"hidden_size": 64}))
    assert ignored.total == now.total


@pytest.mark.parametrize(
    ("config", "usable"),
    [
        (of_type("roberta", max_position_embeddings=514), 512),
        (of_type("xlm-roberta", max_position_embeddings=514, pad_token_id=0), 513),
        (of_type("longformer", max_position_embeddings=4098), 4096),
        (of_type("mpnet", max_position_embeddings=514, pad_token_id=5), 512),  # the class sets 1
        (of_type("esm", max_position_embeddings=1026, vocab_size=33, pad_token_id=1), 1024),
        (of_type("esm", max_position_embeddings=1026, vocab_size=33, pad_token_id=1, position_embedding_type="rotary"),
         1026),
        (of_type("bert", max_position_embeddings=512), 512),
        (of_type("opt", max_position_embeddings=2048), 2048),  # its table has two more rows
    ],
)  # fmt: skip
def test_positions_begin_behind_that_of_padding(config: dict[str, Any], usable: int) -> None:
    """create_position_ids_from_input_ids of modeling_roberta.py: the first token has the position pad_token_id + 1."""
    assert pc.load(config).context_length == usable


def test_a_causal_window_of_gemma_3_holds_the_token_itself() -> None:
    """One on either side may hold no other: configuration_gemma3.py halves it, rounded down."""
    config = of_type("gemma3_text", sliding_window=1)
    causal, both = pc.load(config).sizes, pc.load({**config, "use_bidirectional_attention": True}).sizes
    assert (causal.window, both.window) == (1, 0)  # type: ignore[attr-defined]
    with pytest.raises(pc.ParamcountError, match=r"window = 0 \(expected a positive integer\)"):
        pc.what_if("gemma-3-1b", window=0)
