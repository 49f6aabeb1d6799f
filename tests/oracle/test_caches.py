"""The bytes of the reference's own cache objects, in bfloat16, at contexts before, at and after every window's end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from paramcount.api import load
from paramcount.costs.caches import list_cache_groups
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.costs.engines import ENGINES
from paramcount.costs.engines.records import CacheRequest
from paramcount.counting.sum_weights import list_flows
from paramcount.execution.run import sees_later_tokens
from paramcount.parts.conformer import SpeechEncoder
from tests.model_types import list_running
from tests.oracle import differential, images, logits, passes, remote
from tests.oracle.renamed import STAND_INS

RUNNING = list_running()
SHORT, LONG, LARGEST = 3, 12, 60  # tokens; windows beyond the last are not crossed
# {model type, or another name of list_running: why the reference's cache is another one}
DIFFERENT = {
    "blip": "the reference returns no cache",
    "deepseek_v4": "one head is key and value, and kept twice; unfinished blocks of tokens are kept, too",
    "dots3_note": "the keys of its indexer are in float32",
    "dots3_note_text": "the keys of its indexer are in float32",
    "git": "patches stand in front of the text, and the trace of a text has none",
    "glm5_next": "the keys of its indexer are kept with a flag per token, which says whether it is padding",
    "glm5_next_text": "the keys of its indexer are kept with a flag per token, which says whether it is padding",
    "granite4_vision": "the reference makes no cache of its own",
    "granite4_vision_text": "the reference makes no cache of its own",
    "inkling_mm_model": "the inputs of its convolutions are kept in float32",
    "inkling_text": "the inputs of its convolutions are kept in float32",
    "esm, decoder": "the reference keeps nothing: every token sends the whole text through again",
    "openai-gpt": "the reference keeps nothing: every token sends the whole text through again",
    "recurrent_gemma": "its convolutions keep one input less than those of the other types",
    "RefinedWeb": "keys and values are repeated for every head of their group before they are kept",
    "falcon, grouped": "keys and values are repeated for every head of their group before they are kept",
    "xlm, causal": "the reference returns no cache: every token sends the whole text through again",
    "zaya": "two convolutions in a row share the inputs that are kept",
}
UNRUNNABLE = {
    "pi0": "its tokens are actions, all at once, behind a text that is read before them",
    "pi0, other settings": "likewise",
    "mvp, prompted": "its prompts stay in float32, and a product with bfloat16 refuses them",
    "voxtral_realtime": "a sound has frames for every token, and its encoder has a cache of its own",
    "data2vec-audio": "sounds go in, and nothing is kept of them",
    "data2vec-audio, other settings": "likewise",
    "hubert": "sounds go in, and nothing is kept of them",
    "hubert, other settings": "likewise",
    "sew": "sounds go in, and nothing is kept of them",
    "parakeet_ctc": "sounds go in, and nothing is kept of them",
    "parakeet_ctc, other settings": "likewise",
    "sew-d": "sounds go in, and nothing is kept of them",
    "sew-d, other settings": "likewise",
    "audio-spectrogram-transformer": "sounds go in, and nothing is kept of them",
    "audio-spectrogram-transformer, other settings": "likewise",
    "wav2vec2-bert": "sounds go in, and nothing is kept of them",
    "wav2vec2-bert, relative": "likewise",
    "wav2vec2-bert, rotary": "likewise",
    "sew, other settings": "likewise",
    "unispeech": "sounds go in, and nothing is kept of them",
    "unispeech, other settings": "likewise",
    "unispeech-sat": "sounds go in, and nothing is kept of them",
    "unispeech-sat, other settings": "likewise",
    "wavlm": "sounds go in, and nothing is kept of them",
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
    "wav2vec2": "sounds go in, and nothing is kept of them",
    "wav2vec2, other settings": "likewise",
    "trocr, fixed positions": "its positions are in float32, and a matrix in bfloat16 refuses them",
}


def find_reason(name: str) -> str | None:
    return DIFFERENT.get(name) or DIFFERENT.get(name.partition(",")[0])


def list_tensors(model: Any, output: Mapping[str, Any]) -> Iterator[Any]:
    """Everything that the reference keeps for later tokens."""
    import torch

    output = output.get("language_model_outputs", output)
    cache: Any = output.get("past_key_values") or output.get("past_buckets_states")
    if cache is None:
        cache = output.get("cache_params")
    halves = [cache]
    if hasattr(cache, "self_attention_cache"):
        halves = [cache.self_attention_cache, cache.cross_attention_cache]
    for half in halves:
        holders = [vars(half) if half is not None else {}, *map(vars, getattr(half, "layers", ()))]
        for holder in holders:
            # A window's length is kept as a tensor of one value.
            yield from (x for x in list_nested(holder) if x.ndim > 1)
    yield from output.get("mems") or ()
    yield from output.get("state") or ()
    for module in model.modules():
        states = (getattr(module, name, None) for name in ("conv1d_state", "recurrent_states"))
        yield from (x for x in states if isinstance(x, torch.Tensor))


def list_nested(value: Any) -> Iterator[Any]:
    """The tensors in dicts, lists and tuples of them."""
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from list_nested(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from list_nested(each)


def count_seen(encoder: Any) -> int:
    """The vectors of an image that a decoder attends to."""
    if hasattr(encoder, "depths"):
        return int(16 // 4 ** (len(encoder.depths) - 1))
    return int(encoder.n_patches + encoder.n_tokens)


def count_heard(sizes: SpeechEncoder, frames: int) -> int:
    """The vectors of a sound that a decoder attends to. Source: torch.nn.Conv1d."""
    for _ in range(int(sizes.n_adapter_layers) if sizes.has_adapter else 0):
        frames = (frames + 2 * (sizes.adapter_stride // 2) - sizes.d_adapter_conv) // sizes.adapter_stride + 1
    return frames


def run_reference(model: Any, sizes: Any, cls: str, n: int) -> tuple[int, int, int]:
    """(bytes that it keeps, tokens, encoder input length) after n tokens, images included."""
    import torch
    from transformers import DynamicCache

    ids = images.insert_placeholders(passes.make_token_ids(n, 1), cls)
    given, _ = logits.make_inputs(sizes, cls, ids)
    frames = given["input_features"].shape[-1] // 2 if "input_features" in given else logits.SOURCE  # two per row
    if isinstance(sizes, SpeechEncoder):
        frames = count_heard(sizes, given["input_features"].shape[1])
    frames = given["input_ids"].shape[1] if "input_ids" in given else frames
    frames = given["flattened_patches"].shape[1] if "flattened_patches" in given else frames
    frames = 4 if cls.startswith("PPFormulaNet") else frames  # patches that are left of the image
    frames = count_seen(sizes.encoder) if cls.startswith("VisionEncoderDecoder") else frames
    given = {key: narrow(value) for key, value in given.items()}
    is_heard = "input_features" in given and cls not in images.IMAGES
    is_encoded = is_heard or "input_ids" in given or cls.startswith(images.WRITERS)
    if model.config.model_type == "recurrent_gemma":
        given["past_key_values"] = DynamicCache(config=model.config)
    elif not is_encoded or cls.startswith("Pix2Struct"):  # whose config class switches it off
        given["use_mems" if model.config.model_type == "xlnet" else "use_cache"] = True
    with torch.no_grad():
        given.pop("codes", None)
        inputs = differential.repeat_for_codebooks(model, ids)
        output = model(**{"decoder_input_ids" if is_encoded else "input_ids": inputs}, **given)
    kept = list_tensors(model, given | dict(output))
    return sum(x.numel() * x.element_size() for x in kept), ids.shape[1], frames


def narrow(value: Any) -> Any:
    """Numbers in bfloat16; ids as they are."""
    import torch

    if isinstance(value, tuple):
        return tuple(map(narrow, value))
    return value.to(torch.bfloat16) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def compare(name: str) -> dict[int, tuple[int, int]]:
    """{tokens: (bytes of the policy, bytes of the reference)} of those that differ."""
    import torch

    if name in STAND_INS:
        document, reference, cls = STAND_INS[name].document, STAND_INS[name].reference, STAND_INS[name].cls
    else:
        document = reference = passes.make_document(name)
        cls = passes.find_class(name)
    loaded = load(document)
    groups, sizes = list_cache_groups(loaded), loaded.sizes
    if sees_later_tokens(next(iter(list_flows(sizes)))[0], cached=False):
        return {}
    model = logits.build_reference(reference, cls).to(torch.bfloat16)
    ends = {group.longest for group in groups if group.longest and group.longest < LARGEST}
    found = {}
    for n in sorted({SHORT, LONG, *(end + i for end in ends for i in (-1, 0, 1, 2) if end + i > 1)}):
        theirs, tokens, source = run_reference(model, sizes, cls, n)
        request = CacheRequest(tokens, 1, parse_kv_dtype("bf16"), source)
        ours = ENGINES["transformers"].allocate(groups, request).total_bytes
        if ours != theirs:
            found[n] = ours, theirs
    return found


# The code of `remote` has no cache.
COMPARED = [name for name in RUNNING if name not in {*UNRUNNABLE, *remote.MODELS} and find_reason(name) is None]


@pytest.mark.parametrize("name", COMPARED)
def test_the_policy_is_the_size_of_the_references_cache(name: str) -> None:
    assert compare(name) == {}


@pytest.mark.parametrize("name", [name for name in RUNNING if find_reason(name)])
def test_a_cache_that_is_listed_differs(name: str) -> None:
    assert compare(name)
