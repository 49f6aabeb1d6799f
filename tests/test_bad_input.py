"""Bad sizes, fields and mappings: each is refused in one line that names the place, and nothing is printed or
written.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.zoo.entries import dump_sizes
from tests.batches import in_batches
from tests.refusing import Refuse, model_error
from tests.structures import ROWS, ZOO, keep_every

MOST = 2**31
LISTED = "what `paramcount architectures` lists"
OPTIONAL_PARTS = {"n_dense_layers", "n_shared_experts", "n_mtp_layers"}  # a model may have none of these
PRESENT = {"n_shared_experts": {"deepseek_vl_v2.language", "dots3_note.language", "hunyuan"}}  # by a flag or null
# What the reference builds and runs without: layers, MLPs and experts, unless it says otherwise.
MAY_USUALLY_BE_ZERO = {
    "n_layers", "n_encoder_layers", "n_decoder_layers", "d_ff", "d_encoder_ff", "d_decoder_ff", "d_expert",
    "d_shared_expert", "n_active_experts",
}  # fmt: skip
NEVER_ZERO = {  # the reference refuses it, cannot run it, or takes it for a missing size
    "d_ff": {
        "blt.decoder", "blt.encoder", "blt.large", "blt.patcher", "gpt2", "ibert", "longt5", "mt5",
        "mt5.MT5EncoderModel", "musicgen.text_encoder", "musicgen_melody.text_encoder", "neomme", "pix2struct.text",
        "pix2struct.vision", "rwkv", "switch_transformers", "t5", "t5.T5EncoderModel", "udop", "umt5",
        "umt5.UMT5EncoderModel", "zamba2",
    },
    "n_layers": {
        "blt.decoder", "blt.encoder", "deberta-v2", "fun_asr_nano.audio", "laguna", "longformer", "modernbert",
        "modernbert-decoder", "modernvbert.language", "recurrent_gemma", "udop", "xmod",
    },
    "n_encoder_layers": {
        "led",
    },
    "d_shared_expert": {
        "nemotron_h", "nemotron_h_omni.language", "qwen4_exp.language",
    },
    "n_active_experts": {
        "hunyuan", "minicpm", "qwen4_exp.language",
    },
    "d_expert": {
        "qwen4_exp.language",
    },
}  # fmt: skip
# What else the reference builds without: {size: the architectures, or their blocks, in which it may be 0}.
MAY_BE_ZERO = {
    "n_routed_experts": {
        "afmoe", "axk1", "bailing_hybrid", "deepseek_ocr2", "deepseek_v32", "dots1", "ernie4_5_moe",
        "ernie4_5_vl_moe.language", "gemma4", "glm4_moe", "glm4_moe_lite", "glm4v_moe.language", "glm_moe_dsa",
        "granitemoehybrid", "jamba", "qwen3_next",
    },
    "n_identity_experts": {"longcat_flash"},
    "d_ff_group": {"convbert"},
    "d_connector": {"idefics2"},
    "n_global_layers": {"mllama.vision"},
    "n_least_experts": {"longcat_flash"},
    "d_per_layer": {"gemma3n", "gemma4"},
    "d_nope": {"deepseek_vl_v2.language"},  # without MLA
    "d_v": {"deepseek_vl_v2.language"},
    "d_rope": {  # partial_rotary_factor
        "dots3_note.audio",
        "bamba", "deepseek_vl_v2.language", "fuyu", "glm", "glm4", "glm4_moe", "glm4v.language", "glm4v_moe.language",
        "glm_ocr.language", "glmasr.audio", "gpt_neox", "laguna", "mimo_v2_flash", "minicpmv4_6.language", "minimax_m2",
        "minimax_m3_vl", "nemotron", "persimmon", "phi", "phi3", "phi3_v", "phi4_multimodal", "qwen3_5.language",
        "qwen3_5_moe.language", "qwen3_next", "qwen4_exp.language", "recurrent_gemma", "stablelm", "stablelm_epoch",
        "step3p7", "zaya",
    },
    "d_rope_sliding": {"laguna", "mimo_v2_flash", "step3p7", "zaya"},
    "d_turned": {"musicflamingo"},
    "n_frequencies": {"esm", "evolla.protein"},
    "n_token_types": {"deberta", "deberta-v2", "gte"},
    "d_conv": {"deberta-v2"},
    "window": {
        "gemma3", "gemma3.Gemma3ForCausalLM", "gemma3_text", "modernbert", "modernbert-decoder",
    },  # of Gemma 3 if tokens see later ones
    "window_size": {
        "deepseek_ocr2.sam", "deepseek_vl_hybrid.high_res_vision", "got_ocr2.vision", "pp_chart2table.vision",
        "pp_formulanet.vision", "unlimited_ocr.sam",
    },
    "d_rows": {"florence2.projector"},
    "n_global_tokens": {"pegasus_x"},
    "block_offset": {"pegasus_x"},  # half a block of one token
    "n_adapter_places": {"zamba2"},
    "n_patches": {  # an image smaller than a patch
        "granite_docling.vision", "pi0.vlm.vision",
        "aria.vision", "aya_vision.vision", "blip-2.vision", "blip.vision", "cohere2_vision.vision",
        "cosmos3_edge.vision", "deepseek_vl.vision", "deepseek_vl_hybrid.vision", "deepseek_vl_v2.vision",
        "gemma3.vision", "git.vision", "glm4v.vision", "glm4v_moe.vision", "granite4_vision.vision",
        "h2ovl_chat.vision", "idefics.vision", "idefics2.vision", "idefics3.vision", "instructblip.vision",
        "instructblipvideo.vision", "internvl.vision", "internvl_chat.vision", "janus.vision", "kosmos-2.vision",
        "llava.vision", "llava_next.vision", "llava_next_video.vision", "llava_onevision.vision", "minicpmv.vision",
        "minicpmv4_6.vision", "modernvbert.vision", "molmo2.vision", "ovis2.vision", "paddleocr_vl.vision",
        "paligemma.vision", "phi4_multimodal.vision", "qianfan_ocr.vision", "smolvlm.vision", "step3p7.vision",
        "t5gemma2.vision", "unlimited_ocr.vision", "video_llava.vision", "vipllava.vision",
    },
    "n_layers_before": {"minicpmv4_6.vision"},
    "n_positions": {
        "m2m_100", "nllb-moe", "nemotron_h_omni.vision", "perception_lm.vision", "seamless_m4t", "seamless_m4t_v2",
    },
    "n_class_tokens": {"nemotron_h_omni.vision"},
    "n_registers": {"nemotron_h_omni.vision"},
    "n_summaries": {"nemotron_h_omni.vision"},
    "d_index": {"qwen4_exp.language"},  # no indexer, or no table of n-grams
    "n_index_heads": {"qwen4_exp.language"},
    "index_budget": {"qwen4_exp.language"},
    "index_block": {"qwen4_exp.language"},
    "d_ple": {"qwen4_exp.language"},
    "heads_per_ngram": {"qwen4_exp.language"},
    "n_ngram_heads": {"qwen4_exp.language"},
    "d_ngram": {"qwen4_exp.language"},
    "n_chosen": {"glm5_next.language"},
    "fine": {"granite_docling.vision"},
    "n_indicators": {"ovis2.vision"},
    "n_views": {"granite4_vision"},
    "n_timestamp_layers": {"fun_asr_nano.audio"},
    "n_bands": {"gemma4.audio"},
    "d_vision_expert": {"ernie4_5_vl_moe.language"},
    "n_earlier_frames": {"gemma3n.audio", "gemma4.audio"},
    "n_later_frames": {"gemma3n.audio", "gemma4.audio"},
    "d_index_rope": {"minimax_m3_vl"},
    "n_pairs": {"minimax_m3_vl.vision"},
    "n_additional": {"idefics", "molmo2"},
    "n_bands_left": {"phi4_multimodal.audio"},
    "n_ahead": {"t5gemma2.encoder"},
    "n_behind": {"t5gemma2.encoder"},
    "d_adapter": {"xmod"},
}  # fmt: skip
WITHOUT_FLAGS = {  # of their own
    "cpmant", "exaone4_5", "fun_asr_nano", "glmasr",
    "hyperclovax_vision_v2", "inkling_mm_model", "kimi_k25", "kimi_vl", "moshi",
    "pi0", "qwen2_audio", "qwen3_asr", "vibevoice_asr", "video_llama_3", "voxtral",
}  # fmt: skip
WITHOUT_SIZES = {"encoder-decoder"}  # of their own

LLAMA: dict[str, Any] = {
    "vocab_size": 1000, "d_model": 256, "n_layers": 2, "n_heads": 32, "n_kv_heads": 8, "d_head": 8, "d_ff": 512,
    "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False,
}  # fmt: skip
CHOSEN = ("gpt2-xl", "mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b", "gpt-oss-20b")  # before others of the architecture
IDS = {ROWS[id]["architecture"]: id for id in (*ZOO, *CHOSEN)}
PAPER = {"id": "paper", "kind": "paper", "ref": "arXiv:2302.13971", "accessed": "2026-11-20"}


def make_entry(architecture: str = "llama", /, **changes: Any) -> dict[str, Any]:
    """A mapping with the config of some model of that architecture, and these sizes changed; None leaves one out."""
    config = LLAMA if architecture == "llama" else dump_sizes(zoo.load_entry(IDS[architecture]).sizes)
    config = {name: value for name, value in {**config, **changes}.items() if name not in changes or value is not None}
    return {"architecture": architecture, "config": config}


def make_vision_entry(**changes: Any) -> dict[str, Any]:
    return make_entry("mllama", vision={**dump_sizes(zoo.load_entry(IDS["mllama"]).sizes)["vision"], **changes})


def list_blocks(architecture: str) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The blocks of sizes of a model and where they are; a language model that has an entry of its own is left out."""

    def walk(config: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
        if config.get("architecture") not in IDS:
            yield path, config
        for name, value in config.items():
            if isinstance(value, dict):
                yield from walk(value, (*path, name))

    return walk(make_entry(architecture)["config"], ())


def change_block(architecture: str, path: tuple[str, ...], name: str, value: object) -> dict[str, Any]:
    """An entry with one size of one block changed; None leaves it out."""
    entry = make_entry(architecture)
    block = entry["config"]
    for part in path:
        block[part] = block = dict(block[part])
    block[name] = value
    if value is None:
        del block[name]
    return entry


def tuples_to_lists(document: Any) -> Any:
    """Tuples as lists, as a file has them."""
    if isinstance(document, Mapping):
        return {key: tuples_to_lists(value) for key, value in document.items()}
    return [tuples_to_lists(value) for value in document] if isinstance(document, (list, tuple)) else document


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---- sizes


def test_the_models_that_the_cases_start_from_are_counted() -> None:
    for architecture in IDS:
        assert pc.count(tuples_to_lists(make_entry(architecture))).total > 0


@in_batches("architecture", keep_every(10, IDS))
def test_every_size_of_every_architecture_is_a_whole_number_in_its_range(architecture: str) -> None:
    sizes = {
        (path, name): value
        for path, block in list_blocks(architecture)
        for name, value in block.items()
        if type(value) is int
    }
    assert bool(sizes) == (architecture not in WITHOUT_SIZES)
    for (path, name), size in sizes.items():
        block = ".".join((architecture, *path))
        optional = name in OPTIONAL_PARTS and block not in PRESENT.get(name, ())
        usual = name in MAY_USUALLY_BE_ZERO and block not in NEVER_ZERO.get(name, ())
        least = 0 if optional or usual or block in MAY_BE_ZERO.get(name, ()) else 1
        integer = "a positive integer" if least == 1 else "a non-negative integer"
        wrong = {
            least - 1: f"= {least - 1} (expected {integer})",
            -(10**40): f"= a number of more than 30 digits (expected {integer})",
            MOST + 1: "= 2147483649 (expected an integer of at most 2,147,483,648)",
            10**5000: "= a number of more than 30 digits (expected an integer of at most 2,147,483,648)",
            1.5: "= 1.5 (expected an integer)",
            size * 1.0 + 0.5 - 0.5: f"= {size}.0 (expected an integer)",
            float("nan"): "= nan (expected an integer)",
            float("inf"): "= inf (expected an integer)",
        }
        odd: tuple[tuple[object, str], ...] = (
            (True, "true"),
            (str(size), f"'{size}'"),
            ([size], f"[{size}]"),
            ({}, "{}"),
            (b"1", "a value of type bytes"),
        )
        cases = [*wrong.items(), *((value, f"= {said} (expected an integer)") for value, said in odd)]
        for value, message in cases:
            with pytest.raises(pc.ParamcountError) as caught:
                pc.load(change_block(architecture, path, name, value))
            assert str(caught.value) == f"{'.'.join(('config', *path, name))} {message}"


@in_batches("architecture", keep_every(10, IDS))
def test_every_field_of_every_architecture_is_required_and_no_other_is_known(architecture: str) -> None:
    for path, block in list_blocks(architecture):
        fields = [name for name in block if name != "architecture"]
        for name in fields:
            with pytest.raises(pc.ParamcountError) as caught:
                pc.load(change_block(architecture, path, name, None))
            place = ".".join(("config", *path, name))
            assert str(caught.value) == f"{place} is missing (expected a value for every field)"
        last = fields[-1]
        message = model_error(change_block(architecture, path, f"{last}x", 3))
        assert message.startswith(f"{'.'.join(('config', *path, last))}x: unknown field (expected ")
        assert f"; did you mean {last}" in message
        others = len(type(reduce(getattr, path, zoo.load_entry(IDS[architecture]).sizes)).fields) - 5
        assert (f" or {others} other{'s' * (others > 1)}); " in message) == (others > 0)


@in_batches("architecture", keep_every(10, IDS))
def test_every_flag_of_every_architecture_is_true_or_false(architecture: str) -> None:
    flags = [
        (path, name)
        for path, block in list_blocks(architecture)
        for name, value in block.items()
        if isinstance(value, bool)
    ]
    assert bool(flags) == (architecture not in WITHOUT_FLAGS)
    for path, name in flags:
        for value, said in (
            (0, "0"),
            (1, "1"),
            ("no", "'no'"),
            ("true", "'true'"),
            ([], "[]"),
        ):
            with pytest.raises(pc.ParamcountError) as caught:
                pc.load(change_block(architecture, path, name, value))
            assert str(caught.value) == f"{'.'.join(('config', *path, name))} = {said} (expected true or false)"


def test_the_largest_size_is_counted_and_stays_exact() -> None:
    assert pc.count(make_entry(vocab_size=MOST)).embedding == MOST * 256


def test_a_count_of_optional_parts_may_be_zero() -> None:
    count = pc.count(make_entry("deepseek_v3", n_dense_layers=0, n_shared_experts=0, n_mtp_layers=0))
    assert (count.components["shared_experts"], count.mtp, count.components["mlp"]) == (0, 0, 0)
    assert pc.count(make_entry("qwen3_moe", dense_layers=[])).components["mlp"] == 0


CONTRADICTIONS = [
    (make_entry(n_kv_heads=7), "config.n_kv_heads = 7 does not divide n_heads = 32 (expected 1, 2, 4, 8, 16, …)"),
    (make_entry(n_kv_heads=64), "config.n_kv_heads = 64 does not divide n_heads = 32 (expected 2, 4, 8, 16, 32, …)"),
    (
        make_entry(n_heads=MOST, n_kv_heads=3),
        "config.n_kv_heads = 3 does not divide n_heads = 2147483648 (expected 1, 2, 4, 8, 16, …)",
    ),
    (make_entry("gpt2", d_head=65), "config.n_heads × d_head = 25 × 65 = 1625 is not d_model = 1600 (expected 1600)"),
    (
        make_entry("mixtral", n_active_experts=9),
        "config.n_active_experts = 9 is more than n_routed_experts = 8 (expected at most 8)",
    ),
    (
        make_entry("deepseek_v3", n_dense_layers=62),
        "config.n_dense_layers = 62 is more than n_layers = 61 (expected at most 61)",
    ),
    (
        make_entry("qwen3_moe", dense_layers=[3, 2]),
        "config.dense_layers = [3, 2] for n_layers = 48 (expected ascending, distinct layer indices below 48)",
    ),
    (
        make_entry("qwen3_moe", dense_layers=[2, 2]),
        "config.dense_layers = [2, 2] for n_layers = 48 (expected ascending, distinct layer indices below 48)",
    ),
    (
        make_entry("qwen3_moe", dense_layers=[*range(39, 49)]),
        "config.dense_layers = [39, 40, 41, 42, 43, 44, 45, 46, …] for n_layers = 48 (expected ascending, "
        "distinct layer indices below 48)",
    ),
    (make_entry("qwen3_moe", dense_layers=[-1]), "config.dense_layers.0 = -1 (expected a non-negative integer)"),
    (make_entry("qwen3_moe", dense_layers=[0, True]), "config.dense_layers.1 = true (expected an integer)"),
    (make_entry("qwen3_moe", dense_layers="0"), "config.dense_layers = '0' (expected a list)"),
    (
        make_entry("qwen3_moe", dense_layers=[*range(10_001)]),
        "config.dense_layers = [0, 1, 2, …] (expected a list of at most 10,000 items)",
    ),
    (
        make_entry("qwen3_moe", dense_layers=[0], n_layers=MOST),
        "config.n_layers = 2147483648 with dense_layers (expected at most 10,000 layers if they are "
        "listed by index)",
    ),
    (
        make_entry("mllama", n_layers=MOST),
        "config.n_layers = 2147483648 with cross_attention_layers (expected at most 10,000 layers if they are "
        "listed by index)",
    ),
    (
        make_entry("mllama", cross_attention_layers=[99, 100]),
        "config.cross_attention_layers = [99, 100] for n_layers = 100 (expected ascending, distinct "
        "layer indices below 100)",
    ),
    (make_entry("mllama", vision=3), "config.vision = 3 (expected a mapping)"),
    (make_vision_entry(n_heads=0), "config.vision.n_heads = 0 (expected a positive integer)"),
    (
        make_vision_entry(n_heads=7),
        "config.vision.n_heads × d_head = 7 × 80 = 560 is not d_model = 1280 (expected 1280)",
    ),
    (
        make_vision_entry(intermediate_layers=[3, 32]),
        "config.vision.intermediate_layers = [3, 32] for n_layers = 32 (expected ascending, distinct layer indices "
        "below 32)",
    ),
    (
        make_entry("mllama", tie_word_embeddings=True),
        "config.tie_word_embeddings = true, but the token embedding has 8 more rows than the LM head (expected false)",
    ),
    (
        make_entry(d_head=127),
        "config.d_head = 127 is odd, but rotary embedding rotates pairs (expected an even number)",
    ),
    (make_entry(d_model=3000), "config.n_heads = 32 does not divide d_model = 3000 (expected 20, 24, 25, 30, 40, …)"),
    (make_entry("openai-gpt", d_ff=1000), "config.d_ff = 1000 is not 4 × d_model = 3072 (expected 3072)"),
    (
        make_entry("deepseek", d_head=64),
        "config.n_heads × d_head = 16 × 64 = 1024 is not d_model = 2048 (expected 2048)",
    ),
    (
        make_entry("gpt_oss", n_layers=2, layer_types=["full_attention", "ful_attention"]),
        "config.layer_types.1 = 'ful_attention' (expected "
        "sliding_attention or full_attention); did you mean full_attention or sliding_attention?",
    ),
    (
        make_entry("gpt_oss", n_layers=2, layer_types=["full_attention"]),
        "config.layer_types has 1 entry for n_layers = 2 (expected one per layer)",
    ),
    (make_entry("gpt_oss", layer_types=[""]), "config.layer_types.0 = '' (expected a non-empty string)"),
    (
        make_entry("gpt_oss", layer_types=["x" * 41]),
        f"config.layer_types.0 = '{'x' * 41}' (expected a string of at most 40 characters)",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "message"), CONTRADICTIONS)
def test_sizes_that_contradict_each_other_are_rejected(spec: dict[str, Any], message: str) -> None:
    assert model_error(spec) == message


@pytest.mark.parametrize(("spec", "message"), CONTRADICTIONS)
def test_the_command_line_puts_the_file_before_the_field(spec: dict[str, Any], message: str, refuse: Refuse) -> None:
    path = Path("configs/llama/x.yaml")
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(tuples_to_lists(spec)), encoding="utf-8")
    assert refuse("configs/llama/x.yaml", "-o", "out.csv") == f"configs/llama/x.yaml: {message}"


@pytest.mark.parametrize("command", ["show", "compare", "verify"])
def test_every_command_refuses_heads_that_kv_heads_do_not_divide(command: str, refuse: Refuse) -> None:
    path = Path("configs/llama/x.yaml")
    path.parent.mkdir(parents=True)
    path.write_text(yaml.safe_dump(make_entry(n_kv_heads=7)), encoding="utf-8")
    expected = "configs/llama/x.yaml: config.n_kv_heads = 7 does not divide n_heads = 32 (expected 1, 2, 4, 8, 16, …)"
    assert refuse(command, "configs/llama/x.yaml", "-o", "out.csv") == expected
    assert model_error(path) == expected
    assert model_error("./configs/llama/x.yaml") == expected


# ---- entries: everything but the sizes

KINDS = (
    "'config_json', 'mirror', 'paper', 'model_card', 'reference_default', 'safetensors_index', 'publisher' "
    "or 'secondary'"
)
ARCHITECTURE_OR_ESTIMATE = "(expected architecture and config, or estimate: true and claims)"
NEITHER = "model_type is missing (expected a config.json with model_type, or a zoo entry with architecture and config)"
FIGURES = "(expected a number such as 7B, 7.61B or ~1.04T, or an integer)"


def publish_figure(value: object, source: str = "paper") -> dict[str, Any]:
    return {"sources": [PAPER], "published": [{"what": "total", "value": value, "exact": True, "source": source}]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bogus": 1}, "bogus: unknown field (expected sources, notes, config, settings, publisher or 15 others)"),
        (
            {"famly": "llama"},
            "famly: unknown field (expected family, name, claims, aliases, hf or 15 others); did you mean family?",
        ),
        ({"architecture": None}, f"architecture is missing {ARCHITECTURE_OR_ESTIMATE}"),
        ({"config": None}, f"config is missing {ARCHITECTURE_OR_ESTIMATE}"),
        ({"config": []}, "config = [] (expected a mapping of sizes)"),
        ({"config": "llama"}, "config = 'llama' (expected a mapping of sizes)"),
        (
            {"architecture": "openai_gpt"},
            f"architecture: unknown architecture openai_gpt (expected {LISTED}); did you mean openai-gpt?",
        ),
        (
            {"reference": "LlamaModell"},
            "reference = 'LlamaModell' (expected LlamaForCausalLM or LlamaModel); did you mean LlamaModel?",
        ),
        (
            {"reference": "LlamaForTokenClassification"},
            "reference = 'LlamaForTokenClassification' (expected LlamaForCausalLM or LlamaModel)",
        ),
        ({"reference": 3}, "reference = 3 (expected a string)"),
        ({"architecture": 3}, f"architecture: unknown architecture 3 (expected {LISTED})"),
        ({"estimate": True}, "config is set in an estimate (expected claims only)"),
        ({"estimate": "yes"}, "estimate = 'yes' (expected true or false)"),
        ({"estimate": 1}, "estimate = 1 (expected true or false)"),
        ({"id": ""}, "id = '' (expected a non-empty string)"),
        ({"id": 3}, "id = 3 (expected a string)"),
        ({"id": "a\x1b[31mb"}, r"id = 'a\x1b[31mb' (expected a string of printable characters)"),
        ({"name": "a\nb"}, r"name = 'a\nb' (expected a string of printable characters)"),
        ({"name": "a\u202eb"}, r"name = 'a\u202eb' (expected a string of printable characters)"),
        (
            {"name": "n" * 2001},
            f"name = '{'n' * 28}…{'n' * 29}' (expected a string of at most 2000 characters)",
        ),
        ({"released": 5}, "released = 5 (expected a date such as 2024-07-23)"),
        ({"released": "1700000000"}, "released = '1700000000' (expected a date such as 2024-07-23)"),
        ({"released": "2024-02-30"}, "released = '2024-02-30' (expected a date such as 2024-07-23)"),
        ({"context_length": 0}, "context_length = 0 (expected a positive integer)"),
        ({"context_length": "8k"}, "context_length = '8k' (expected an integer)"),
        ({"aliases": "x"}, "aliases = 'x' (expected a list)"),
        ({"aliases": ["x", 3]}, "aliases.1 = 3 (expected a string)"),
        ({"sources": PAPER}, "sources = {…} (expected a list)"),
        ({"sources": "paper"}, "sources = 'paper' (expected a list)"),
        ({"sources": ["paper"]}, "sources.0 = 'paper' (expected a mapping)"),
        ({"sources": [PAPER, dict(PAPER)]}, "sources.1.id = 'paper' is used twice (expected unique ids)"),
        ({"sources": [{**PAPER, "kind": "memory"}]}, f"sources.0.kind = 'memory' (expected {KINDS})"),
        (
            {"sources": [{**PAPER, "accesed": 1}]},
            "sources.0.accesed: unknown field (expected id, kind, ref or accessed); did you mean accessed?",
        ),
        ({"sources": [{"id": "paper"}]}, "sources.0.kind is missing (expected a value for every field)"),
        ({"checked": "yes"}, "checked = 'yes' (expected a mapping or 'unverified')"),
        ({"checked": {"reference": "x", "total": 0}}, "checked.total = 0 (expected a positive integer)"),
        (
            {"checked": {"reference": "x", "totl": 1}},
            "checked.totl: unknown field (expected reference or total); did you mean total?",
        ),
        ({"release": {}}, "release.legacy_buffers is missing (expected a value for every field)"),
        ({"release": []}, "release = [] (expected a mapping)"),
        (publish_figure(1.5), "published.0.value = 1.5 (expected an integer or a string)"),
        (publish_figure(-5), "published.0.value = -5 (expected a positive integer or a string)"),
        (publish_figure("many"), f"published.0.value: 'many' is not a parameter count {FIGURES}"),
        (
            publish_figure("7B", "papre"),
            "published.0.source = 'papre' (expected paper); did you mean paper?",
        ),
        ({"published": [{}]}, "published.0.what is missing (expected a value for every field)"),
        ({"published": 7}, "published = 7 (expected a list)"),
        ({"notes": [None]}, "notes.0 = null (expected a string)"),
    ],
)
def test_a_wrong_field_is_rejected_alike_in_a_mapping_and_in_a_file(
    fields: dict[str, Any], message: str, refuse: Refuse
) -> None:
    spec = make_entry() | fields
    assert model_error(spec) == message
    Path("x.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    assert refuse("./x.yaml", "-o", "out.csv") == f"x.yaml: {message}"


class Unprintable:
    def __repr__(self) -> str:
        raise AssertionError


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, NEITHER),
        ({1: 2}, NEITHER),
        (make_entry() | {1: 2}, "1 is not the name of a field (expected a string)"),
        (make_entry() | {None: 2}, "None is not the name of a field (expected a string)"),
        (
            {"architecture": "llama", "config": LLAMA | {1: 2}},
            "config.1 is not the name of a field (expected a string)",
        ),
        (make_entry(n_heads=Unprintable()), "config.n_heads = a value of type Unprintable (expected an integer)"),
        (make_entry(n_heads={10**5000}), "config.n_heads = a value of type set (expected an integer)"),
        (
            make_entry("qwen3_moe", dense_layers=itertools.count()),
            "config.dense_layers = a value of type count (expected a list of at most 10,000 items)",
        ),
        (
            {"architecture": 10**5000, "config": {}},
            f"architecture: unknown architecture a value of type int (expected {LISTED})",
        ),
        (
            make_entry() | publish_figure(10**5000),
            "published.0.value = a number of more than 30 digits (expected an integer of at most "
            "1,000,000,000,000,000,000,000,000,000,000 or a string)",
        ),
        (
            make_entry() | {"released": datetime.datetime(2024, 7, 23, tzinfo=datetime.UTC)},
            "released = a value of type datetime (expected a date such as 2024-07-23)",
        ),
        (make_entry() | {"released": float("nan")}, "released = nan (expected a date such as 2024-07-23)"),
        (make_entry() | {"id": "\ud800"}, r"id = '\ud800' (expected a Unicode string)"),
        (
            {"architecture": "llama", "config": LLAMA | {"\ud800": 1}},
            r"config = '\ud800' (expected a Unicode string)",
        ),
    ],
)  # fmt: skip
def test_a_mapping_that_no_file_can_contain_is_rejected(spec: object, message: str) -> None:
    assert model_error(spec) == message


def test_a_number_of_too_many_digits_for_a_key_is_rejected() -> None:
    assert model_error(make_entry() | {10**5000: 1}).endswith("is not the name of a field (expected a string)")


def test_the_middle_of_a_message_about_an_endless_name_is_cut() -> None:
    message = model_error({"architecture": "llama", "config": LLAMA | {"n" * 1_000_000: 1}})
    assert message.startswith("config.nnnn")
    assert "…" in message
    assert message.endswith(" or 5 others)")


def test_any_mapping_and_any_date_will_do() -> None:
    spec = MappingProxyType(
        {"architecture": "llama", "config": MappingProxyType(LLAMA), "released": datetime.date(2024, 7, 23)}
    )
    model = pc.load(spec)
    assert (model.released, model.id) == (datetime.date(2024, 7, 23), "unnamed")
    assert pc.load({**spec, "released": "2024-07-23"}) == model
    assert pc.count(spec).total == pc.count(make_entry()).total == pc.count(model).total


@pytest.mark.parametrize(
    "spec", [None, 3, 1.5, True, b"gpt2-small", ["gpt2-small"], ("gpt2-small",), {"gpt2-small"}, object, pc.count]
)
def test_objects_that_are_not_models_are_rejected(spec: object) -> None:
    accepted = (
        "a zoo id, a Hugging Face id or URL, a path, a mapping, a transformers config or a Model from paramcount.load"
    )
    assert model_error(spec) == f"{type(spec).__name__} is not a model (expected {accepted})"


@pytest.mark.parametrize("models", [None, 3, b"gpt2-small", object])
def test_only_lists_of_models_are_compared(models: Any) -> None:
    with pytest.raises(
        pc.ParamcountError,
        match=rf"^{type(models).__name__} is not a list of models \(expected a list of any of these: a zoo id, ",
    ):
        pc.compare(models)


def test_one_model_is_compared_without_a_list_around_it() -> None:
    model = pc.load("gpt2-small")
    for one in ("gpt2-small", model, make_entry() | {"id": "gpt2-small"}):
        models: Any = one
        assert list(pc.compare(models)["id"]) == ["gpt2-small"]
    assert list(pc.compare([])["id"]) == []


def test_a_model_with_a_zoo_id_and_other_sizes_is_compared_as_a_separate_row() -> None:
    assert list(pc.compare(["gpt2-small", make_entry() | {"id": "gpt2-small"}]).total) == [
        124_439_808,
        pc.count(make_entry()).total,
    ]
    assert len(pc.compare(["gpt2-small", "gpt2", "gpt2-small"])) == 1


def test_an_estimate_has_nothing_to_count() -> None:
    claims = [{"what": "total", "value": "1.8T", "by": "somebody", "source": "paper"}]
    spec = {"id": "rumour", "estimate": True, "claims": claims, "sources": [PAPER]}
    expected = "rumour is a third-party estimate; its sizes are unpublished; run `paramcount rumour --estimates`"
    assert pc.load(spec).estimate
    for ask in (pc.count, lambda s: pc.compare([s])):
        with pytest.raises(pc.ParamcountError) as caught:
            ask(spec)
        assert str(caught.value) == expected
    assert model_error(spec | {"config": LLAMA}) == "config is set in an estimate (expected claims only)"
    assert model_error(spec | {"reference": "GPT"}) == "reference is set in an estimate (expected claims only)"
