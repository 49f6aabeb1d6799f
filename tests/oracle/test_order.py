"""A trace is in the order of the reference: each of its modules runs after those that the trace says it depends on,
layer by layer, and gives the shape of its step.

The trace may list modules that do not depend on each other in another order, such as queries before keys.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Step
from tests.model_types import list_running
from tests.oracle import remote
from tests.oracle.passes import TOKENS, ComparedRun, load_model, run_both
from tests.oracle.renamed import STAND_INS
from tests.oracle.test_trace import list_copies, shape_fits

# {config: why its modules cannot be compared}
DIFFERENT = {
    "hyperclovax_vision_v2": "its modules have other names than the tensors of a checkpoint",
    "kimi_k25": "likewise",
    "qianfan_ocr": "likewise",
    "kosmos-2": "an image goes in",
    "blip": "an image goes in",
    "clip": "an image goes in",
    "clip, other activations": "likewise",
    "clip.CLIPForImageClassification": "likewise",
    "clip_vision_model": "likewise",
    "clip_vision_model.CLIPVisionModelWithProjection": "likewise",
    "siglip": "likewise",
    "siglip.SiglipForImageClassification": "likewise",
    "siglip2": "likewise",
    "siglip2.Siglip2ForImageClassification": "likewise",
    "siglip2_vision_model": "likewise",
    "siglip2_vision_model, without a head": "likewise",
    "siglip_vision_model": "likewise",
    "siglip_vision_model, without a head": "likewise",
    "idefics": "an image goes in",
    "idefics, other settings": "an image goes in",
    "pp_formulanet": "an image goes in",
    "pp_formulanet, other settings": "likewise",
    "vision-encoder-decoder": "an image goes in",
    "vision-encoder-decoder, beit": "likewise",
    "vision-encoder-decoder, beit, shared": "likewise",
    "vision-encoder-decoder, donut": "likewise",
    "vision-encoder-decoder, gpt2": "likewise",
    "vision-encoder-decoder, other settings": "likewise",
    "vision-encoder-decoder, swin": "likewise",
    "evolla": "a protein goes in",
    "evolla, no masks": "likewise",
    "evolla, other settings": "likewise",
    "pi0": "images, a state and actions always go in",
    "pi0, other settings": "likewise",
    "pix2struct": "an image goes in",
    "blip-2, t5": "an image stands among the tokens of its encoder",
    "deepseek_v4": "blocks of tokens, whose number the trace leaves as a word",
    "deepseek_v4, compressed": "likewise",
    "luke": "words and entities, whose number the trace leaves as a word",
    "luke, other settings": "likewise",
    "led": "the reference pads its texts",
    "led, windows": "likewise",
    "longformer": "likewise",
    "longformer, windows": "likewise",
    "longt5": "blocks of tokens",
    "longt5, blocks": "likewise",
    "nystromformer, landmarks": "it reads texts of one length alone",
    "perceiver": "it answers queries for all positions, whatever the text is",
    "kyutai_speech_to_text": "a sound always goes in",
    "kyutai_speech_to_text, other settings": "likewise",
    "voxtral_realtime": "a sound always goes in",
    "seamless_m4t.SeamlessM4TForSpeechToText": "sounds go in",
    "seamless_m4t.SeamlessM4TForSpeechToText, rotary": "likewise",
    "seamless_m4t.SeamlessM4TForSpeechToText, without positions": "likewise",
    "seamless_m4t_v2.SeamlessM4Tv2ForSpeechToText": "likewise",
    "seamless_m4t_v2.SeamlessM4Tv2ForSpeechToText, chunks": "likewise",
    "seamless_m4t_v2.SeamlessM4Tv2ForSpeechToText, chunks to the left": "likewise",
    "data2vec-audio": "sounds go in",
    "data2vec-audio, other settings": "likewise",
    "hubert": "sounds go in",
    "hubert, other settings": "likewise",
    "sew": "sounds go in",
    "parakeet_ctc": "sounds go in",
    "parakeet_ctc, other settings": "likewise",
    "sew-d": "sounds go in",
    "sew-d, other settings": "likewise",
    "audio-spectrogram-transformer": "sounds go in",
    "audio-spectrogram-transformer, other settings": "likewise",
    "wav2vec2-bert": "sounds go in",
    "wav2vec2-bert, relative": "likewise",
    "wav2vec2-bert, rotary": "likewise",
    "sew, other settings": "likewise",
    "unispeech": "sounds go in",
    "unispeech, other settings": "likewise",
    "unispeech-sat": "sounds go in",
    "unispeech-sat, other settings": "likewise",
    "wavlm": "sounds go in",
    "wavlm, other settings": "likewise",
    "unispeech-sat.UniSpeechSatForPreTraining": "likewise",
    "speecht5": "sounds go in or come out",
    "speecht5, other settings": "likewise",
    "speecht5.SpeechT5ForTextToSpeech": "sounds go in or come out",
    "speecht5.SpeechT5ForTextToSpeech, other settings": "likewise",
    "speecht5.SpeechT5ForSpeechToSpeech": "sounds go in or come out",
    "speecht5.SpeechT5ForSpeechToSpeech, other settings": "likewise",
    "speech-encoder-decoder": "sounds go in",
    "speech-encoder-decoder, hubert, mbart": "likewise",
    "speech-encoder-decoder, adapter": "likewise",
    "wav2vec2-conformer": "sounds go in",
    "wav2vec2-conformer, rotary": "likewise",
    "wav2vec2": "sounds go in",
    "wav2vec2, other settings": "likewise",
    "whisper, scaled": "sounds go in",
    "whisper, small": "sounds go in",
    "whisper.WhisperForCausalLM, small": "its encoder's output is that of sounds",
    "xlstm": "its cache is of a kind that cannot be listed",
    "xlstm, other settings": "likewise",
}
# {config: why its modules run out of order}; their first run is what counts.
REPEATED = {
    "albert": "all layers call the same modules",
    "albert, other settings": "likewise",
    "fsmt, tied": "the encoder looks up its tokens in the decoder's table",
    "gemma3n_text": "the router norm of a layer runs before its block and after it",
    "gemma3n_text, other settings": "likewise",
    "hrm_text": "every cycle calls the same modules",
    "hrm_text, biases": "likewise",
    "xmod": "a layer norm runs before the adapter and after it",
    "xmod, pre-norm": "likewise",
    "xmod, two languages": "likewise",
}
# {config: why a module gives another shape}
OTHER_SHAPES = {
    "kosmos-2.5": "without an image, one row of an embedding is added to all tokens",
    "musicgen_melody": "its layers read a text and a melody in front of the tokens",
    "cpmant": "the prompt, which the module gets as ids in front of the text, is looked up on its own",
    "cpmant, other settings": "likewise",
    "fsmt, tied": "the encoder looks up its tokens in the decoder's table",
    "deberta": "the reference leaves out vectors of distances that the text is too short for",
    "deberta-v2": "vectors of distances go through the modules of queries and keys, too",
    "inkling_mm_model": "the module gives the scores of routed experts alone, without those of shared ones",
    "inkling_text, varied": "the module gives the scores of routed experts alone, without those of shared ones",
    "longt5.LongT5EncoderModel": "biases are those of blocks",
    "longt5, nearby": "likewise",
    "longt5, tied": "likewise",
    "perceiver, one layer again": "it answers queries for all positions, whatever the text is",
    "pegasus_x": "blocks of tokens, with global ones in front",
    "pegasus_x, other settings": "likewise",
    "t5gemma2": "one matrix reads the text, then the encoder's output",
    "t5gemma2, other settings": "likewise",
    "squeezebert": "modules take channels before tokens",
    "squeezebert, other settings": "likewise",
    "xmod, two languages": "an adapter gets the tokens of its language",
    "zaya": "a convolution gets the last inputs in front",
    "zaya, sliding": "likewise",
}
STREAMS = "tokens and stream"  # the length of a relation in ProphetNet that no input names
RUNNING = list_running()
Times = dict[tuple[int, ...], int]  # {layer indices: when a module first ran}


NAMES = [name for name in RUNNING if not (name in STAND_INS or name in remote.MODELS or name in DIFFERENT)]


def list_times(run: ComparedRun, prefix: str) -> list[Times]:
    """When the modules of each step ran."""
    order = {module: i for i, module in enumerate(run.calls)}
    return [
        {
            indices: order[module.removeprefix(prefix)]
            for indices, module in list_copies(step)
            if step.name and module.removeprefix(prefix) in order
        }
        for step in run.trace.steps
    ]


def list_dependencies(steps: tuple[Step, ...], times: list[Times]) -> Iterator[tuple[int, int]]:
    """(step, an earlier one that it depends on) of steps whose modules ran, without those that lie between two."""
    sources: list[set[int]] = []
    for i, step in enumerate(steps):
        found: set[int] = set()
        for j in step.reads:
            found |= {j} if times[j] else sources[j]
        sources.append(found)
        yield from ((i, j) for j in sorted(found) if times[i])


def is_related(step: Step, source: Step, indices: tuple[int, ...], others: tuple[int, ...]) -> bool:
    """Whether a module depends on another, by their layers. A layer of one kind may precede one of the other."""
    if step.layers == source.layers:
        return indices == others
    return not step.layers or not source.layers


@pytest.mark.parametrize("name", NAMES)
def test_modules_run_after_those_that_they_depend_on(name: str) -> None:
    run = run_both(name, TraceOptions(TOKENS))
    steps, times = run.trace.steps, list_times(run, load_model(name).base_model_prefix + ".")
    pairs = [
        (steps[j].name, others, steps[i].name, indices, before < time)
        for i, j in list_dependencies(steps, times)
        for indices, time in times[i].items()
        for others, before in times[j].items()
        if is_related(steps[i], steps[j], indices, others)
    ]
    assert len(pairs) > 5
    assert all(in_order for *_, in_order in pairs) == (name not in REPEATED), [pair for pair in pairs if not pair[-1]]


@pytest.mark.parametrize("name", NAMES)
def test_layers_run_in_order(name: str) -> None:
    run = run_both(name, TraceOptions(TOKENS))
    starts: dict[str, Times] = {}
    for step, times in zip(run.trace.steps, list_times(run, load_model(name).base_model_prefix + ".")):
        if step.layers:
            stack = starts.setdefault(step.layers[-1].name, {})
            for indices, time in times.items():
                stack[indices] = min(time, stack.get(indices, time))
    assert starts or name in REPEATED
    for stack in starts.values():
        assert sorted(stack, key=lambda indices: stack[indices]) == sorted(stack)


@pytest.mark.parametrize("name", NAMES)
def test_modules_give_the_shapes_of_their_steps(name: str) -> None:
    options = TraceOptions(TOKENS)
    run, prefix = run_both(name, options), load_model(name).base_model_prefix + "."
    wrong = [
        (module, step.out, call.gives)
        for step in run.trace.steps
        if step.name and not any(scope.axis == "expert" for scope in step.scopes) and STREAMS not in step.out
        for _, module in list_copies(step)
        if (call := run.calls.get(module.removeprefix(prefix))) and not shape_fits(step.out, call.gives, options, step)
    ]
    assert (wrong == []) == (name not in OTHER_SHAPES), wrong
