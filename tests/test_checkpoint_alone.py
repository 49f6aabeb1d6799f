"""A checkpoint without a model: components, tied copies, the zoo models whose tensors it has, and names folded into
patterns.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import safetensors.numpy

import paramcount as pc
import paramcount.zoo as zoo
from paramcount.checkpoints.checkpoint import Checkpoint, FileTensor
from paramcount.checkpoints.contents import summarize_checkpoint
from paramcount.checkpoints.folding import MOST_INDICES, fold_names
from paramcount.checkpoints.matching import expand_names
from paramcount.checkpoints.name_meanings import find_meaning, read_meanings
from paramcount.checkpoints.render_contents import format_shapes
from paramcount.checkpoints.writers.gguf_names import list_gguf_tensors
from paramcount.counting.components import locate_component
from paramcount.counting.count import Count
from paramcount.flow import TensorRow
from paramcount.zoo import count_model
from tests.batches import in_batches
from tests.comparison import load_reference
from tests.gguf_writing import LAYOUTS, write_gguf
from tests.headers import (
    NAMES,
    Tensors,
    assign_shards,
    load_saved,
    make_checkpoint,
    write_file,
    write_header,
    write_shards,
)
from tests.model_types import MODEL_TYPES
from tests.refusing import command_error, model_error
from tests.running import Runner
from tests.structures import keep_every
from tests.test_package import command_code, list_loaded_packages

MANY = "EXAMPLES" in os.environ  # the largest models, too
SMALL = 2500  # tensors
REMOTE: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "remote_models.json").read_text(encoding="utf-8")
)
SETS = re.compile(r"(?<!\{)\{([0-9,-]+)\}")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---- names folded into patterns


def unfold_pattern(pattern: str) -> set[str]:
    """The names that a pattern matches."""
    parts = SETS.split(pattern)
    sets = []
    for text in parts[1::2]:
        spans = [span.partition("-") for span in text.split(",")]
        sets.append([str(i) for first, _, last in spans for i in range(int(first), int(last or first) + 1)])
    fixed = [part.replace("{{", "{").replace("}}", "}") for part in parts[::2]]
    return {"".join(itertools.chain(*zip(fixed, [*indices, ""]))) for indices in itertools.product(*sets)}


def test_a_layer_without_one_expert_is_a_pattern_of_its_own() -> None:
    names = [f"l.{layer}.e.{expert}" for layer in range(4) for expert in range(3) if (layer, expert) != (2, 1)]
    assert [pattern for pattern, _ in fold_names(names)] == ["l.{0-1,3}.e.{0-2}", "l.2.e.{0,2}"]


@pytest.mark.parametrize("seed", range(12))
def test_patterns_match_exactly_their_names(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311
    words = ["h", "0", "1", "2", "3", "7", "10", "01", "{0-1}", "}", "", "é", "٣", "1" * 12]
    names = list({".".join(draw.choices(words, k=draw.randrange(1, 5))) for _ in range(draw.randrange(1, 400))})
    found = fold_names(names)
    assert sorted(name for _, alike in found for name in alike) == sorted(names)
    for pattern, alike in found:
        assert unfold_pattern(pattern) == set(alike)
        assert len(alike) == len(set(alike))


def test_a_word_that_only_looks_like_an_index_is_not_folded() -> None:
    many = ".".join(["0"] * MOST_INDICES)
    names = [f"h.{word}.w" for word in ("01", "02", "1x", "2x", "1234567890", "1234567891")]
    names += [f"{before}.{i}" for before in (many, "x" * 2000) for i in (0, 1)]
    assert fold_names(names) == [(name, [name]) for name in names]


# ---- which component a name means

# Names that most models give to something else: alone they are read as another model has them.
EXCEPTIONS = {
    "model.layers.#.mlp.expert_bias": "learned in afmoe, a buffer in bailing_hybrid, hy_v3 and lfm2_moe",
    **dict.fromkeys(
        (f"model.layers.#.attention.{name}_proj.weight" for name in "qkvg"), "linear attention of bailing_hybrid"
    ),
    "language.model.layers.#.mlp.gate.e_score_correction_bias": "learned in deepseek_vl_v2, a buffer elsewhere",
    **{
        f"encoder.{name}.{kind}": "of an image in vision-encoder-decoder, of a text in encoder-decoder"
        for name in (
            "encoder.layer.#.attention.output.dense",
            "encoder.layer.#.intermediate.dense",
            "encoder.layer.#.output.dense",
            "pooler.dense",
        )
        for kind in ("weight", "bias")
    },
    "encoder.embeddings.position_embeddings": "a table of vision-encoder-decoder, a module of encoder-decoder",
    "model.audio_tower.proj.weight": "in the encoder of muse_spark, else a projector",
    "model.audio_tower.proj.bias": "likewise",
    "mra.embeddings.position_ids": "stored by mra, no longer stored elsewhere",
}


# Names that stand for other components than these models declare, and that no meaning is written down for: a checkpoint
# alone shows them as other. Most read or write speech or images.
UNREAD = {
    "GLM-ASR-Nano-2512", "GlubLM-36M", "Janus-Pro-7B", "Kimi-K3", "Molmo-7B-D-0924", "Moshi-7B", "OLMo-7B",
    "Phi-4-multimodal-instruct", "Qwen-VL-Chat", "Yuan2-2B-hf", "audio-spectrogram-transformer",
    "chinese-hubert-base", "clap", "clap_audio_model.ClapAudioModelWithProjection", "clap_text_model",
    "clap_text_model.ClapTextModelWithProjection", "clip", "clip-vit-base-patch32", "clip-vit-large-patch14",
    "clip-vit-large-patch14-text", "clip.CLIPForImageClassification", "clip_text_model",
    "clip_text_model.CLIPTextModelWithProjection", "cogvlm2-llama3-chat-19B", "data2vec-audio",
    "data2vec-audio-base-960h", "delta-net-1.3b", "eagle-llama-3-8b-instruct", "eagle3-llama-3.1-8b-instruct",
    "fla-transformer-1.3b", "gated-deltanet-1.3b", "gla-1.3b", "gsa-1.3b", "hgrn2-1.3b", "hubert", "hymba-1.5b",
    "jina-embeddings-v3", "kimi-k3", "layoutlmv2", "layoutlmv2-base-uncased", "layoutlmv3", "layoutlmv3-base",
    "layoutlmv3-large", "layoutxlm-base", "molmo-7b-d", "openmoe-8b", "openmoe-base", "parakeet_ctc",
    "phi-1_5-mixformer", "qwen-vl-chat", "rwkv-7-world-1.5b", "sew", "sew-d", "siglip", "siglip-base-patch16-224",
    "siglip-base-patch16-224-text", "siglip.SiglipForImageClassification", "siglip2",
    "siglip2-base-patch16-naflex", "siglip2.Siglip2ForImageClassification", "siglip2_text_model",
    "siglip_text_model", "speech-encoder-decoder", "speecht5", "speecht5-asr", "speecht5-tts",
    "speecht5.SpeechT5ForSpeechToSpeech", "speecht5.SpeechT5ForTextToSpeech", "stripedhyena-nous-7b", "unispeech",
    "unispeech-1350-en-353-fr", "unispeech-sat", "unispeech-sat-base-100h",
    "unispeech-sat.UniSpeechSatForPreTraining", "w2v-bert-2.0", "wav2vec2", "wav2vec2-bert", "wav2vec2-conformer",
    "wav2vec2-conformer-rope-large-960h", "wav2vec2-large-960h", "wav2vec2-xls-r-300m-en-to-15", "wavlm",
    "wavlm-base-plus", "wavlm-large",
}  # fmt: skip


def list_models() -> Iterator[tuple[str, Count]]:
    """Every zoo model, every supported model type with its defaults, and the classes that other publishers wrote."""
    for id in zoo.list_ids():
        if not zoo.load_entry(id).estimate:
            yield id, count_model(zoo.load_entry(id))
    for name, known in MODEL_TYPES.items():
        yield name, pc.count({"model_type": name, **known.vary.get("=", {})})
    for name, expected in REMOTE.items():
        yield name, pc.count(expected["config"])


def expect_component(tensor: TensorRow) -> str:
    """A declared tensor's component (the first one of a fused tensor), or its role."""
    component = tensor.splits[0][0] if tensor.splits else tensor.component
    return locate_component(tensor.part, component)[0] if tensor.role == "parameter" else tensor.role


def name_kind(name: str) -> str:
    return ".".join("#" if word.isdigit() or word.startswith("{") else word for word in name.split("."))


def test_a_name_has_the_component_that_most_declarations_give_it_with_few_exceptions() -> None:
    declared: dict[str, Counter[str]] = defaultdict(Counter)
    for model, count in list_models():
        for tensor in count.tensors if model not in UNREAD else ():
            declared[name_kind(tensor.name)][expect_component(tensor)] += 1
    assert {name for name, found in declared.items() if found[str(find_meaning(name))] < max(found.values())} == set(
        EXCEPTIONS
    )


@pytest.mark.parametrize("name", NAMES)
def test_components_read_from_the_reference_s_names_match_the_config(name: str) -> None:
    saved = load_saved(name)
    found, count = pc.stored_in(write_header(Path("header.json"), saved.tensors)), pc.count(saved.config)
    assert (found.by, found.total, found.untold) == ("names", count.total, 0)
    assert found.components == count.components
    assert found.beside.get("buffer", 0) == count.buffers


@pytest.mark.parametrize(
    ("id", "architecture"),
    [
        ("llama-3.1-8b", "llama"), ("qwen2.5-7b", "qwen2"), ("qwen3-30b-a3b", "qwen3moe"),
        ("deepseek-v3", "deepseek2"), ("mixtral-8x7b", "llama"),
        ("gemma-3-1b", "gemma3"), ("phi-4", "phi3"), ("gpt2-small", "gpt2"), ("gpt-oss-20b", "gpt-oss"),
        ("deepseek-v2-lite", "deepseek2"),
    ],
)  # fmt: skip
def test_gguf_names_have_the_same_components(id: str, architecture: str) -> None:
    count = pc.count(id)
    tensors = list_gguf_tensors([tensor for tensor in count.tensors if tensor.part != "mtp"], (), architecture, count)
    assert {tensor.name: find_meaning(name_kind(tensor.name)) for tensor in tensors} == {
        tensor.name: expect_component(tensor) for tensor in tensors
    }


def test_every_decoder_name_of_the_gguf_package_has_a_meaning() -> None:
    """Names without a meaning: of embedding models, vision experts and latent experts."""
    names = [
        name.replace("{bid}", "#")
        for name in gguf.TENSOR_NAMES.values()
        if name.startswith(("blk.", "token", "output", "position"))
    ]
    untold = {name for name in names if find_meaning(f"{name}.weight") is None}
    assert {re.sub(r"vis_.*|ffn_latent_.*", "…", name) for name in untold} == {"blk.#.…"}


def test_an_invented_name_has_no_meaning() -> None:
    assert [find_meaning(name) for name in ("", ".", "#", "weight", "a.b", "q_projx.weight", "norm" * 500)] == [
        None
    ] * 6 + ["norm"]


def test_a_bias_is_not_a_mask() -> None:
    found = read_meanings({"h.0.attn.bias": (1, 1, 8, 8), "h.1.attn.bias": (24,)})
    assert (list(found.components.values()), found.unrecognized) == (["legacy buffer", "other"], ("h.1.attn.bias",))


# ---- what is stored

GPT2 = {
    "embedding": 50_257 * 768, "position": 1024 * 768, "qkv": 12 * (768 * 2304 + 2304),
    "output_projection": 12 * (768 * 768 + 768),
    "mlp": 12 * (2 * 768 * 3072 + 3072 + 768), "norm": 12 * 4 * 768 + 2 * 768,
}  # fmt: skip
MASKS = {f"h.{layer}.attn.bias": ("F32", (1, 1, 1024, 1024)) for layer in range(12)}


def reference_tensors(id: str, dtype: str = "BF16") -> Tensors:
    """The tensors of a model, as the reference names and shapes them."""
    tensors = store_tensors(pc.count(id)).tensors
    return {name: (dtype, tensor.shape or ()) for name, tensor in tensors.items()}


def write_model(tensors: Tensors) -> Path:
    return write_file(Path("model.safetensors"), tensors)


def write_small_gpt2(**more: Any) -> Path:
    """A real GPT-2 with two layers and random values."""
    draw = np.random.default_rng(0)
    shapes = {"wte.weight": (20, 8), "wpe.weight": (6, 8), "ln_f.weight": (8,), "ln_f.bias": (8,)}
    shapes |= {f"h.{layer}.attn.c_attn.weight": (8, 24) for layer in range(2)}
    arrays = {name: draw.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    safetensors.numpy.save_file(arrays | {name: make(arrays) for name, make in more.items()}, "model.safetensors")
    return Path("model.safetensors")


def store_tensors(count: Count) -> Checkpoint:
    """A checkpoint with the tensors of a declaration, of which only the header exists."""
    tensors = expand_names(
        t for t in count.tensors if t.tied_to is None and t.part != "mtp" and t.role != "legacy_buffer"
    )
    return make_checkpoint({name: ("BF16", tensor.shape) for name, tensor in tensors.items()}, Path("x.json"))


@in_batches(
    "id",
    keep_every(18, [id for id, found in load_reference().items() if MANY or sum(found["shapes"].values()) < SMALL]),
    size=20,
)
def test_every_zoo_model_is_identified_by_its_own_tensors(id: str) -> None:
    count = pc.count(id)
    found = summarize_checkpoint(store_tensors(count))
    assert id in found.zoo
    assert (found.total, found.components, found.scheme) == (count.total, count.components, None)


@pytest.mark.parametrize(
    ("id", "listed"),
    [
        ("qwen2.5-7b", ("deepseek-r1-distill-qwen-7b", "qwen2-7b", "qwen2.5-7b")),
        # Llama 3.2 1B with an LM head of its own, which comes before a copy; without values, both have this header.
        ("llama-guard-3-1b", ("llama-guard-3-1b", "llama-3.2-1b")),
        ("llama-3.2-1b", ("llama-3.2-1b",)),
        ("e5-mistral-7b-instruct", ("e5-mistral-7b-instruct",)),  # a class without an LM head
        ("mistral-7b-v0.1", ("mistral-7b-v0.1",)),
        ("chinese-hubert-base", ("chinese-hubert-base",)),  # no tensor has its vocabulary size
    ],
)
def test_all_models_with_the_stored_shapes_are_listed_and_no_others(id: str, listed: tuple[str, ...]) -> None:
    found = summarize_checkpoint(store_tensors(pc.count(id)))
    assert (found.zoo, found.total) == (listed, pc.count(id).total)


def test_a_model_with_the_same_total_and_other_shapes_is_not_listed() -> None:
    tensors = reference_tensors("gpt2-small")
    name = "h.5.mlp.c_fc.weight"
    found = pc.stored_in(write_model(tensors | {name: ("BF16", (1536, 1536))}))
    assert (found.total, found.zoo, found.by, found.nearest) == (124_439_808, (), "names", ("gpt2-small", 1))


def test_a_file_with_a_missing_and_an_unexpected_tensor_has_its_model_as_the_nearest() -> None:
    tensors = reference_tensors("gpt2-small")
    del tensors["h.3.mlp.c_fc.weight"]
    found = pc.stored_in(write_model(tensors | {"strange": ("F32", (3, 4))}))
    assert (found.zoo, found.nearest, found.untold, found.components["other"]) == ((), ("gpt2-small", 2), 1, 12)
    assert found.components["mlp"] == GPT2["mlp"] - 768 * 3072


def test_a_missing_file_is_a_fault_and_its_tensors_are_not_counted() -> None:
    tensors, lost = reference_tensors("gpt2-small"), "model-00002-of-00003.safetensors"
    index, shards = write_shards(Path(), tensors), assign_shards(tensors, 3)
    Path(lost).unlink()
    found = pc.stored_in(index)
    assert sum(found.components.values()) == found.total
    assert found.total == sum(prod(shape) for name, (_, shape) in tensors.items() if shards[name] != lost)
    assert (found.whole, found.zoo) == (False, ("gpt2-small",))
    assert any(lost in fault for fault in found.faults)
    assert any("shapes unknown" in remark for remark in found.remarks)


def test_an_index_alone_gives_names_and_bytes() -> None:
    index = write_shards(Path(), reference_tensors("gpt2-small"))
    for path in Path().glob("*.safetensors"):
        path.unlink()
    found = pc.stored_in(index)
    assert (found.total, found.components, found.bytes, found.tensors) == (None, {}, 2 * 124_439_808, 148)
    assert found.zoo == ("gpt2-small",)
    held = {name: FileTensor("x.bin") for name in reference_tensors("gpt2-small")}
    found = summarize_checkpoint(Checkpoint(Path("x"), "pytorch", held, (), total_size=2 * 124_439_809))
    assert (found.zoo, found.nearest) == ((), None)


def test_the_mtp_layer_of_deepseek_v3_is_not_in_the_total() -> None:
    own = ("enorm.weight", "hnorm.weight", "eh_proj.weight", "mlp.gate.weight", "shared_head.norm.weight")
    tensors: Tensors = {
        "model.embed_tokens.weight": ("F32", (16, 4)),
        "model.layers.0.mlp.gate_proj.weight": ("F32", (6, 4)),
    }
    found = pc.stored_in(
        write_file(Path("a.safetensors"), tensors | {f"model.layers.1.{name}": ("F32", (2, 4)) for name in own})
    )
    assert (found.total, found.beside) == (16 * 4 + 6 * 4, {"MTP layer": len(own) * 8})
    assert found.stacks == {"model.layers": 1}


def test_experts_are_counted_whether_separate_or_stacked() -> None:
    apart = read_meanings(
        {f"model.layers.{layer}.mlp.experts.{i}.up_proj.weight": (6, 4) for layer in range(2) for i in range(5 - layer)}
    )
    together = read_meanings({f"blk.{layer}.ffn_up_exps.weight": (7, 6, 4) for layer in range(2)})
    assert (apart.experts, apart.stacks, together.experts, together.stacks) == (5, {"model.layers": 2}, 7, {"blk": 2})


def test_a_gguf_file_is_counted() -> None:
    found = pc.stored_in(write_gguf(Path("model.gguf"), LAYOUTS["llama, wide"], types="Q8_0"))
    expected = {"embedding": 64 * 256, "qkv": 2 * 512 * 256, "output_projection": 2 * 256 * 256, "norm": 5 * 256}
    assert {name: n for name, n in found.components.items() if n} == expected | {"mlp": 2 * 3 * 512 * 256}
    assert (found.format, [(type.dtype, type.tensors) for type in found.types]) == ("gguf", [("Q8_0", 15), ("F32", 6)])
    matrices = sum(found.components.values()) - 5 * 256
    assert found.bytes == matrices // 32 * 34 + 4 * (5 * 256 + 32)


# ---- tied copies


@pytest.mark.parametrize(
    ("make", "same"),
    [(np.ndarray.copy, True), (lambda wte: wte + 1, False), (lambda wte: wte.astype(np.float16), None)],
)
def test_a_head_counts_unless_it_has_the_values_of_the_embedding(make: Callable[[Any], Any], same: bool | None) -> None:
    """Of another type, it is not compared."""
    found = pc.stored_in(write_small_gpt2(**{"lm_head.weight": lambda arrays: make(arrays["wte.weight"])}))
    counted, beside = (0, {"tied duplicate": 160}) if same else (160, {})
    assert found.copies == (("lm_head.weight", "wte.weight", same, 160),)
    assert (found.components["lm_head"], found.beside) == (counted, beside)
    assert found.total == 160 + 48 + 16 + 2 * 192 + counted


def test_a_head_with_another_shape_is_not_a_copy() -> None:
    path = write_small_gpt2(**{"lm_head.weight": lambda arrays: arrays["wte.weight"][:19].copy()})
    assert pc.stored_in(path).copies == ()


# ---- on the command line


def test_shapes_are_shown_if_they_add_up_to_the_component() -> None:
    shapes: dict[tuple[int, ...], int] = {(2, n): 3 for n in range(1, 9)}
    assert format_shapes({(4, 2): 1, (3,): 2}, 14) == "[4, 2] + 2 × [3]"
    assert format_shapes({(4, 2): 1, (3,): 2}, 13) == ""
    assert format_shapes(shapes, 6 * 36).endswith(" + 3 × [2, 3] + 2 more shapes")


def test_a_file_without_tensors_has_no_parameters(run: Runner) -> None:
    write_model({})
    assert run("./model.safetensors").out.startswith("model.safetensors   0 parameters (0)\n")


def test_problems_of_a_file_and_its_head_are_shown(run: Runner) -> None:
    write_small_gpt2(**{"lm_head.weight": lambda own: own["wte.weight"].copy(), "z.#": lambda own: own["ln_f.bias"]})
    out = run("./model.safetensors").out
    assert "lm_head.weight is a copy of wte.weight (sampled values are equal)\n" in out
    assert "components inferred from tensor names; 1 unrecognised tensor counted as other\n" in out


def test_every_format_has_the_same_figures(run: Runner) -> None:
    write_model(reference_tensors("gpt2-small"))
    found = json.loads(run("./model.safetensors", "--json").out)
    assert (found["schema_version"], found["total"], found["bits_per_value"]) == (2, 124_439_808, 16.0)
    assert found["zoo"] == ["gpt2-small"]
    assert sum(found["components"].values()) == sum(row["parameters"] for row in found["patterns"]) == found["total"]
    rows = list(csv.DictReader(io.StringIO(run("./model.safetensors", "--csv").out)))
    assert {row["component"]: int(row["parameters"]) for row in rows} == GPT2


def test_by_tensor_shows_patterns_of_names(run: Runner) -> None:
    write_model(reference_tensors("gpt2-small") | MASKS)
    rows = list(csv.DictReader(io.StringIO(run("./model.safetensors", "--by", "tensor", "--csv").out)))
    assert len(rows) == 4 + 12 + 1
    assert {tuple(row.values()) for row in rows} >= {
        ("h.{0-11}.attn.c_attn.weight", "BF16", "[768, 2304]", "12", str(12 * 768 * 2304), "qkv"),
        ("h.{0-11}.attn.bias", "F32", "[1, 1, 1024, 1024]", "12", "0", "legacy buffer"),
    }


def test_many_patterns_are_truncated_in_text_only(run: Runner) -> None:
    write_header(Path("header.json"), {f"x{i}.weight": ("F32", (2,)) for i in range(410)})
    shown = run("./header.json", "--by", "tensor").out
    assert shown.endswith("… and 10 more; --csv and --json list them all\n")
    assert "x399.weight" in shown and "x400.weight" not in shown
    assert len(run("./header.json", "--by", "tensor", "--csv").out.splitlines()) == 411
    assert len(json.loads(run("./header.json", "--json").out)["patterns"]) == 410


def test_an_index_alone_is_shown_with_numbers_of_tensors(run: Runner) -> None:
    write_shards(Path(), reference_tensors("gpt2-small"))
    for path in Path().glob("*.safetensors"):
        path.unlink()
    shown = run("./model.safetensors.index.json")
    assert shown.out.startswith(
        "model.safetensors.index.json   148 tensors, shapes unknown\n  lists the tensors of gpt2-small\n"
    )
    assert "\nqkv                     24\n" in shown.out
    assert "shapes unknown" in shown.err


@pytest.mark.parametrize(
    "options", [["--keys"], ["--by", "layer"], ["--by", "part"], ["--set", "n_layers=2"], ["--estimates"]]
)
def test_options_that_need_a_model_are_rejected_for_a_checkpoint(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_small_gpt2()
    asked = " ".join(options[:2] if options[0] == "--by" else options[:1])
    expected = f"{asked} cannot be combined with a checkpoint (expected a model or a config.json)"
    assert command_error(capsys, "./model.safetensors", *options) == expected


@pytest.mark.parametrize(
    "line",
    [["compare", "x", "gpt2-small"], ["explain", "x"], ["trace", "x"], ["verify", "x"], ["diff", "gpt2-small", "x"]],
)
def test_commands_for_models_say_which_command_takes_a_checkpoint(
    line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write_small_gpt2()
    message = command_error(capsys, *[word if word != "x" else "./model.safetensors" for word in line])
    assert message == model_error("./model.safetensors")
    assert message.endswith("(expected the config.json in the same directory; `paramcount PATH` counts a checkpoint)")


def test_a_folder_with_a_config_is_read_as_a_config(run: Runner) -> None:
    Path("m").mkdir()
    write_file(Path("m/model.safetensors"), reference_tensors("gpt2-small"))
    assert run("./m/").out.startswith("m   124,439,808 parameters")
    Path("m/config.json").write_text('{"model_type": "gpt2", "n_layer": 2}')
    assert "as built by GPT2LMHeadModel" in run("./m/").out


def test_an_adapter_is_called_an_adapter(run: Runner) -> None:
    """LoRA of rank 8 on queries and values, as saved by peft 0.21."""
    layer = "base_model.model.model.layers.0.self_attn"
    tensors: Tensors = {f"{layer}.{name}.lora_A.weight": ("F32", (8, 512)) for name in ("q_proj", "v_proj")}
    tensors |= {f"{layer}.q_proj.lora_B.weight": ("F32", (512, 8)), f"{layer}.v_proj.lora_B.weight": ("F32", (256, 8))}
    write_file(Path("adapter_model.safetensors"), tensors)
    shown = run("./adapter_model.safetensors")
    assert shown.out.startswith("adapter_model.safetensors   14,336 parameters (14.3K)\n")
    assert shown.err == "note: 4 tensors belong to an adapter; its base model is not in this checkpoint\n"
    assert run("./adapter_model.safetensors", "--json").err == ""
    write_small_gpt2()
    assert run("./model.safetensors").err == ""


def test_a_checkpoint_is_shown_without_numpy_pandas_and_the_libraries_of_its_format() -> None:
    paths = (write_model(reference_tensors("gpt2-small")), write_gguf(Path("model.gguf"), LAYOUTS["llama, wide"]))
    heavy = {"numpy", "pandas", "sympy", "torch", "transformers", "matplotlib", "gguf", "safetensors"}
    code = "\n".join(command_code([str(path.absolute())]) for path in paths)
    assert not list_loaded_packages(code) & heavy


def test_a_checkpoint_with_only_empty_tensors_has_zero_parameters(tmp_path: Path, run: Runner) -> None:
    path = write_header(tmp_path / "empty.json", {"a": ("F32", (0,)), "b": ("BOOL", (0, 7))})
    done = run(str(path))
    assert (done.code, done.err) == (0, "")
    assert "2 tensors · 0 elements · 0 bytes (0 B) · BOOL 0.0%, F32 0.0%" in done.out
