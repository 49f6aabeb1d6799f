"""The trace is the real one: what the modules of the reference read and give, its attention patterns and masks, the
rows its experts get, its logits, and what its caches hold, over a whole text, several at once, and token by token
behind a cache.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

import pytest

from paramcount.api import load
from paramcount.counting.sum_weights import list_flows
from paramcount.errors import ParamcountError
from paramcount.execution.run import sees_later_tokens
from paramcount.flow.operation import Form
from paramcount.tracing.run import trace_model
from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Shape, Step, Trace
from tests.model_types import MODEL_TYPES
from tests.oracle.passes import (
    CONFIGS,
    EVERY_WAY,
    PAST,
    SOURCE,
    TEXTS,
    TOKENS,
    ComparedRun,
    find_class,
    load_model,
    make_document,
    run_both,
)

ASKED = [
    TraceOptions(TOKENS),
    TraceOptions(TOKENS, batch=TEXTS),
    TraceOptions(1, past=PAST),
    TraceOptions(1, past=PAST, batch=TEXTS),
    TraceOptions(3, past=PAST),
]  # fmt: skip

TOWERS = ("vision", "audio", "projector")  # no picture and no sound goes in
# Whose reference takes or shows something else than tokens that go through layers, and what.
DIFFERENT = {
    "kosmos-2": "an image goes in",
    "kosmos-2.5": "without an image, one row of an embedding is added to all tokens",
    "blip": "an image goes in",
    "clip": "an image goes in",
    "clip.CLIPForImageClassification": "likewise",
    "clip_vision_model": "likewise",
    "clip_vision_model.CLIPVisionModelWithProjection": "likewise",
    "siglip": "likewise",
    "siglip.SiglipForImageClassification": "likewise",
    "siglip2": "likewise",
    "siglip2.Siglip2ForImageClassification": "likewise",
    "siglip2_vision_model": "likewise",
    "siglip_vision_model": "likewise",
    "layoutlmv2": "an image goes in besides the text",
    "layoutlmv3": "an image goes in besides the text",
    "idefics": "an image goes in",
    "pp_formulanet": "an image goes in",
    "vision-encoder-decoder": "an image goes in",
    "evolla": "a protein goes in",
    "pi0": "images, a state and actions always go in",
    "pix2struct": "an image goes in",
    "blip-2": "an image always goes in; its language model is among CONFIGS",
    "instructblip": "likewise",
    "instructblipvideo": "likewise",
    "udop": "boxes always go in",
    "kyutai_speech_to_text": "a sound always goes in",
    "voxtral_realtime": "a sound always goes in",
    "reformer": "of earlier tokens it keeps vectors, and reads one token at a time behind them",
    "blt": "bytes go in, and patches that another model cuts",
    "musicgen": "the text's encoding is projected again for every token",
    "musicgen_melody": "tokens stand behind a text and a melody",
    "cpmant": "tokens stand behind a prompt that the reference puts there",
    "deberta": "the reference leaves out vectors of distances that the text is too short for",
    "deepseek_v4": "blocks of tokens, which the trace leaves as a word",
    "diffusion_gemma": "the reference shows the decoder's attention alone, which reads the prompt too",
    "fsmt": "with a cache, the reference masks no later tokens of a whole text",
    "glm5_next": "the keys of its indexer are kept with a flag per token, which says whether it is padding",
    "glm5_next_text": "the keys of its indexer are kept with a flag per token, which says whether it is padding",
    "granite4_vision": "the reference makes no cache of its own",
    "granite4_vision_text": "the reference makes no cache of its own",
    "hyperclovax_vision_v2": "its modules have other names than the tensors of a checkpoint",
    "kimi_k25": "likewise",
    "qianfan_ocr": "likewise",
    "hrm_text": "the reference's cache has no room for the layers that run several times",
    "luke": "words and entities, whose number the trace leaves as a word",
    "qwen4_exp": "blocks of tokens, which the trace leaves as a word",
    "qwen4_exp.Qwen4ExpForCausalLM": "likewise",
    "qwen4_exp_text": "likewise",
    "led": "the reference pads its texts, and has no global tokens unless some are marked",
    "longformer": "the same",
    "longt5": "blocks of tokens",
    "funnel": "pooled tokens, whose number the trace leaves as a word",
    "inkling2": "the inputs of the convolutions whose weights depend on tokens are a state",
    "inkling_mm_model": "its router gives the scores of routed experts alone, without those of shared ones",
    "longt5.LongT5EncoderModel": "blocks of tokens",
    "minimax": "its reference shows patterns of attention without a softmax too",
    "mllama": "without a picture the reference leaves layers out; its language model is among CONFIGS",
    "mllama_text_model": (
        "its first layer may look at a picture, and the reference asks that one how much is kept; MllamaForCausalLM "
        "is among CONFIGS"
    ),
    "mra": "without a GPU the reference computes no attention",
    "openai-gpt": "the reference keeps nothing: every token sends the whole text through again",
    "pegasus_x": "blocks of tokens, with global ones in front",
    "squeezebert": "its modules take channels before tokens",
    "perceiver": "it answers queries for all positions, whatever the text is",
    "prophetnet": "streams, which the trace leaves as a word",
    "prophetnet.ProphetNetForCausalLM": "streams",
    "mvp": "prompts stand before keys and values",
    "t5gemma2": "one matrix reads the text, then the encoder's output",
    "seamless_m4t.SeamlessM4TForSpeechToText": "sounds go in",
    "seamless_m4t_v2.SeamlessM4Tv2ForSpeechToText": "likewise",
    "data2vec-audio": "sounds go in",
    "hubert": "sounds go in",
    "sew": "sounds go in",
    "parakeet_ctc": "sounds go in",
    "sew-d": "sounds go in",
    "audio-spectrogram-transformer": "sounds go in",
    "wav2vec2-bert": "sounds go in",
    "unispeech": "sounds go in",
    "unispeech-sat": "sounds go in",
    "wavlm": "sounds go in",
    "unispeech-sat.UniSpeechSatForPreTraining": "likewise",
    "speecht5": "sounds go in or come out",
    "speecht5.SpeechT5ForTextToSpeech": "sounds go in or come out",
    "speecht5.SpeechT5ForSpeechToSpeech": "sounds go in or come out",
    "speech-encoder-decoder": "sounds go in",
    "clap": "sounds go in",
    "clap_audio_model": "likewise",
    "clap_audio_model.ClapAudioModelWithProjection": "likewise",
    "wav2vec2-conformer": "sounds go in",
    "wav2vec2": "sounds go in",
    "whisper": "sounds go in",
    "whisper.WhisperForCausalLM": "its encoder's output is that of sounds",
    "unlimited_ocr": "the reference keeps the prompt apart from what is written after it",
    "xlstm": "the reference takes none of the cases' sizes with a state",
    "zaya": "modules that run twice for one text",
    "yoso": "the reference shows outputs of attention in the place of its weights",
    "xmod": "an adapter for each language, of which only the text's runs",
}
UNSEEN = ("big_bird",)  # of which the reference shows no pattern
CHOOSING = ("top-k tokens", "top-k blocks")  # after these a token sees only some of those that the mask leaves
CHUNKED = ("llama4", "doge", "reformer")  # where a chunk, or the keys themselves, decide what it sees

# Keys and values that the reference copies for every head that shares them before it keeps them.
KEPT_TIMES = {"falcon, grouped": 2}

# The layers of its second use call modules that are listed under the layer of the first.
SHARING = ("zamba2, rotated",)

# Weights that the reference reads without calling their module: a state-space mixer's own products, a convolution of
# one token. ERNIE's router calls a module of its own, which is watched in its place; modules of OLMo Hybrid have other
# names than the tensors of a checkpoint.
UNCALLED = re.compile(
    r"\.(dt_proj|([qkv]_)?conv1d|conv_1d|conv|mlp\.gate|router\.classifier|attention_layer_norm|"
    r"feedforward_layer_norm)$"
)


def list_copies(step: Step) -> Iterator[tuple[tuple[int, ...], str]]:
    """(indices, name) of a step in every layer that it stands in."""
    around = [scope for scope in step.scopes if scope.axis != "expert"]
    for indices in itertools.product(*([first + i for first, n in scope.runs for i in range(n)] for scope in around)):
        name = step.name
        for scope, index in zip(around, indices):
            name = name.replace("{" + scope.axis + "}", str(index), 1)
        yield indices, name


def steps_by_module(run: ComparedRun, name: str) -> dict[str, Step]:
    prefix = load_model(name).base_model_prefix + "."
    return {
        module.removeprefix(prefix): step for step in run.trace.steps if step.name for _, module in list_copies(step)
    }


def replace_words(shape: Shape) -> tuple[int, ...]:
    return tuple(SOURCE if n in ("source", "patches") else int(n) for n in shape)


def list_layouts(shape: Shape, asked: TraceOptions, *, places: bool = False) -> set[tuple[int, ...]]:
    """The ways in which the reference may hold the same numbers: heads before tokens or put together, texts put
    together, axes of 1 left out or put in. `places`: what is looked up for places, it may look up for one text
    alone.
    """
    texts, widths = (
        (replace_words(shape)[:2], replace_words(shape)[2:])
        if asked.batch
        else (replace_words(shape)[:1], replace_words(shape)[1:])
    )
    ways = [(texts, widths)]
    if len(widths) == 2:
        ways.append(((*texts[:-1], widths[0], texts[-1]), widths[1:]))
    found = {way for texts, widths in ways for way in ((*a, *b) for a in merge_axes(texts) for b in merge_axes(widths))}
    if places and asked.batch:
        found |= list_layouts(shape[1:], asked._replace(batch=None))
    return {tuple(n for n in way if n != 1) for way in found}


def merge_axes(axes: tuple[int, ...]) -> set[tuple[int, ...]]:
    """These axes, and with neighbours put together."""
    if len(axes) < 2:
        return {axes}
    return {(axes[0], *rest) for rest in merge_axes(axes[1:])} | merge_axes((axes[0] * axes[1], *axes[2:]))


def shape_fits(shape: Shape, real: tuple[int, ...] | None, asked: TraceOptions, step: Step) -> bool:
    if real is None:
        return True
    if (
        step.component == "lm_head"
        and step.op == "linear"
        and len(replace_words(shape)) == len(real) - (1 if asked.batch else 2)
    ):
        real = (*real[:-2], real[-1])  # the trace goes on with the last row
    if step.component == "position" and asked.past is not None and shape[-1] != real[-1] == asked.past + asked.tokens:
        real = (*real[:-1], asked.tokens)  # all places so far, of which the module takes the last
    ways = {real, (*real[:-2], *real[:-3:-1])} if step.op == "convolution" else {real}  # channels before tokens
    return any(
        tuple(n for n in way if n != 1) in list_layouts(shape, asked, places=step.component == "position")
        for way in ways
    )


COMPARED = tuple(name for name in EVERY_WAY if name.partition(",")[0] not in DIFFERENT)


def list_ways(names: Iterable[str] = COMPARED, asked: Sequence[TraceOptions] = ASKED) -> list[Any]:
    """Every config in every way. What reads a text at once has no later tokens."""
    found = []
    for name in names:
        for each in asked:
            try:
                trace_model(load(make_document(name)), each)
            except ParamcountError as error:
                assert "is not autoregressive" in str(error)  # noqa: PT017
                continue
            said = (
                f"{each.tokens}"
                + (f" after {each.past}" if each.past else "")
                + (f", {each.batch} texts" if each.batch else "")
            )
            found.append(pytest.param(name, each, id=f"{name}-{said}"))
    return found


def check_modules(name: str, asked: TraceOptions) -> int:
    """How many modules read and give what the trace says; the test fails where one does not."""
    run = run_both(name, asked)
    steps = steps_by_module(run, name)
    routed = {module for module, step in steps.items() if any(scope.axis == "expert" for scope in step.scopes)}
    outside = {module: call for module, call in run.calls.items() if ".experts" not in module and module not in routed}
    wrong = {
        module: (steps[module].inputs, steps[module].out, call)
        for module, call in outside.items()
        if module in steps
        and not (
            shape_fits(steps[module].inputs[0], call.reads, asked, steps[module])
            and shape_fits(steps[module].out, call.gives, asked, steps[module])
        )
    }
    assert wrong == {}
    assert [module for module in outside if module not in steps] == []
    tables = {held.tied_to for step in run.trace.steps for held in step.weights}
    expected = [
        module
        for module, step in steps.items()
        if module not in routed
        and step.part not in TOWERS
        and not step.weights[0].tied_to
        and step.weights[0].name.endswith(".weight")
        and step.weights[0].name not in tables
        and not UNCALLED.search(module)
    ]
    if name in EVERY_WAY and name not in SHARING:
        assert [module for module in expected if module not in outside] == []
    return len(outside)


@pytest.mark.parametrize(("name", "asked"), list_ways())
def test_modules_read_and_give_what_the_trace_says(name: str, asked: TraceOptions) -> None:
    assert check_modules(name, asked) > 8


def list_attention(trace: Trace, *parts: str) -> list[tuple[Step, Step]]:
    """(softmax, what it reads) of every attention in the order of the layers."""
    soft = [step for step in trace.steps if step.form is Form.ATTENTION_WEIGHTS and step.part in parts]
    found = [(indices, step) for step in soft for indices, _ in list_copies(step)]
    return [(step, trace.steps[step.reads[0]]) for _, step in sorted(found, key=lambda pair: pair[0])]


def visible_tokens(step: Step, rows: int, columns: int) -> list[list[bool]]:
    """Which tokens each one sees, by what the trace says of it."""
    if step.mask is None:
        return [[True] * columns] * rows
    causal, window = step.mask
    reach, behind = columns if window is None else window if causal else window + 1, columns - rows
    return [
        [(not causal or j <= i + behind) and abs(i + behind - j) < reach for j in range(columns)] for i in range(rows)
    ]


# Eager attention, which alone returns its weights, reads a causal mask; the logits are compared with the default one.
CAUSAL_IF_EAGER = ("paligemma",)


def check_masks(name: str, asked: TraceOptions) -> int:
    """How many attention patterns have the shape and the mask that the trace says."""
    import torch

    run = run_both(name, asked)
    keys = {
        "decoder_attentions": ("decoder",),
        "cross_attentions": ("cross_attention",),
        "encoder_attentions": ("encoder",),
    }
    if not any(step.op == "QKᵀ" for step in run.trace.steps):
        return 0
    if "decoder_attentions" not in run.output:
        together = () if run.output.get("cross_attentions") else ("cross_attention",)
        keys = {"attentions": ("decoder", "encoder", *together)} | (
            {} if together else {"cross_attentions": ("cross_attention",)}
        )
    elif asked.past is not None:
        keys.pop("encoder_attentions")
    choosing = name.startswith(CHUNKED) or any(step.op in CHOOSING for step in run.trace.steps)
    found = 0
    for key, parts in keys.items():
        real = [pattern for pattern in run.output.get(key) or () if pattern is not None]
        expected = list_attention(run.trace, *parts) if real or name not in UNSEEN else []
        assert [tuple(pattern.shape) for pattern in real] == [
            replace_words(step.out) if asked.batch else (1, *replace_words(step.out)) for step, _ in expected
        ]
        for pattern, (_, mask) in zip(real, expected):
            may, does = torch.tensor(visible_tokens(mask, *pattern.shape[-2:])), pattern[-1].sum(0) > 0
            if (
                not name.startswith("falcon") and pattern.isfinite().all()
            ):  # of a Falcon the reference gives the scores instead
                assert not (does & ~may).any()
                if not choosing and name not in CAUSAL_IF_EAGER:
                    assert (does == may).all()
        found += len(real)
    return found


@pytest.mark.parametrize(("name", "asked"), list_ways())
def test_attention_weights_and_masks_match_the_trace(name: str, asked: TraceOptions) -> None:
    found = check_masks(name, asked)
    if any(step.op == "QKᵀ" for step in run_both(name, asked).trace.steps):
        assert found > 0


@pytest.mark.parametrize(("name", "asked"), list_ways())
def test_the_last_step_gives_the_logits_of_the_last_token(name: str, asked: TraceOptions) -> None:
    run = run_both(name, asked)
    texts, rows, width = run.output.logits.shape
    flow = next(iter(list_flows(load(make_document(name)).sizes)))[0]
    expected = (rows, width) if sees_later_tokens(flow) else (width,)  # an encoder gives logits of every token
    assert run.trace.steps[-1].out == ((texts, *expected) if asked.batch else expected)


# Llama 4's reference computes every expert for every token and multiplies those that are not chosen by zero.
ROUTED = tuple(name for name in COMPARED if "num_experts_per_tok" in CONFIGS[name] and "llama4" not in name)


@pytest.mark.parametrize(("name", "asked"), list_ways(ROUTED))
def test_experts_get_the_rows_of_the_tokens_that_chose_them(name: str, asked: TraceOptions) -> None:
    run = run_both(name, asked)
    found: dict[int, dict[int, int]] = {}  # {layer: {width in: widths out}}
    for weight, products in run.products.items():
        widths = found.setdefault(int(re.findall(r"\.(\d+)\.", weight)[0]), {})
        ((_, d_in, d_out),) = {(0, *shape[1:]) for shape in products}
        widths[d_in] = widths.get(d_in, 0) + d_out
        active = {scope.active for step in run.trace.steps for scope in step.scopes if scope.axis == "expert"}
        assert {sum(rows for rows, *_ in products)} == {n * asked.tokens * (asked.batch or 1) for n in active}
    expected: dict[int, dict[int, int]] = {}
    for step in run.trace.steps:
        if step.product and step.op == "linear" and any(scope.axis == "expert" for scope in step.scopes):
            assert step.product.left[0] == "routed"
            width_in, width_out = map(int, step.product.right)
            for (layer,), _ in list_copies(step):
                widths = expected.setdefault(layer, {})
                widths[width_in] = widths.get(width_in, 0) + width_out
    assert found == expected != {}


def check_caches(name: str, asked: TraceOptions) -> None:
    """The caches hold what the trace says is cached."""
    run = run_both(name, asked)
    if not run.kept and find_class(name).endswith("MaskedLM"):
        return  # which shows no cache, even as a decoder
    times = KEPT_TIMES.get(name, 1)
    expected, found = Counter[Any](), Counter[Any]()
    behind, really_behind = Counter[int](), Counter[int]()  # {earlier inputs of a convolution: channels}
    for kept in run.trace.cache:
        if kept.what == "last inputs":
            channels, n = replace_words(kept.shapes[0])
            behind[n] += channels * kept.layers
        else:
            expected[tuple(repeat_heads(replace_words(shape), times) for shape in kept.shapes)] += kept.layers
    for each in run.kept:
        if each.what == "last inputs":
            channels, n = each.shapes[0]
            really_behind[n] += channels
        else:
            found[each.shapes] += 1
    assert found == expected
    assert really_behind in (
        behind,
        {n + 1: channels for n, channels in behind.items()},
    )  # one more than a later token looks at
    sizes = [n * prod(shape) for shapes, n in found.items() for shape in shapes]
    assert run.trace.cached_elements in (
        None,
        sum(sizes) // times + sum(n * channels for n, channels in behind.items()),
    )


def repeat_heads(shape: tuple[int, ...], times: int) -> tuple[int, ...]:
    """With so many copies of each head; one head for all has no axis of its own."""
    if len(shape) != 3:
        return shape
    tokens, heads, width = shape
    return (tokens, width) if heads == 1 else (tokens, times * heads, width)


@pytest.mark.parametrize(("name", "asked"), list_ways())
def test_the_caches_contain_what_the_trace_lists(name: str, asked: TraceOptions) -> None:
    check_caches(name, asked)


@pytest.mark.parametrize("name", sorted(set(MODEL_TYPES) - set(EVERY_WAY) - set(DIFFERENT)))
def test_every_other_architecture_is_traced_as_it_runs(name: str) -> None:
    for asked in (TraceOptions(TOKENS), TraceOptions(1, past=PAST)):
        if asked.past is None or run_both(name, TraceOptions(TOKENS)).kept:
            check_modules(name, asked)
            check_masks(name, asked)
            check_caches(name, asked)
    for each in (run_both, load_model, make_document):
        each.cache_clear()
