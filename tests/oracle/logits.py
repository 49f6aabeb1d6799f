"""Logits of the declared flow and of the reference: whole texts, and token by token with a cache.

Of a class without a head, the hidden states are compared.

`python -m tests.oracle.logits MODEL_TYPE...` prints how far apart they are.
"""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from paramcount.api import load
from paramcount.counting.sum_weights import list_flows
from paramcount.execution import run_model
from paramcount.execution.run import sees_later_tokens
from paramcount.flow import Input, list_steps
from paramcount.flow.caches import find_attentions
from paramcount.flow.positions import count_positions
from paramcount.parts.conformer import SpeechEncoder
from paramcount.parts.whisper_encoder import WhisperStacks
from paramcount.zoo import Model
from tests.oracle import flaws, images, passes, remote, sounds
from tests.oracle.renamed import STAND_INS, StandIn, rename_weights

TOLERANCE = 2e-4  # relative to the largest logit
TOKENS, SOURCE = 40, 13  # more than the windows, chunks and compressed blocks of the small configs
# {what is looked up besides tokens: (argument of the reference, number of its values)}
OTHERS = {
    "segments": ("token_type_ids", "n_token_types"), "tasks": ("task_type_ids", "n_task_types"),
    "shapes": ("input_shape_ids", "n_shapes"), "sounds": ("input_pronunciation_ids", "n_sounds"),
    "languages": ("langs", "n_langs"), "global tokens": ("global_attention_mask", ""),
}  # fmt: skip


class Difference(NamedTuple):
    """The largest differences, relative to the largest logit."""

    whole: float  # the whole text at once
    decoded: float  # a prompt, then token by token; 0 if tokens see later ones


def build_reference(document: dict[str, Any], cls_name: str) -> Any:
    """A model of the reference whose weights have no structure: no norm is all ones, no bias is zero."""
    model = passes.build_model(document, cls_name)
    flaws.mend(model)
    fill_weights(model)
    text_config = getattr(model.config, "text_config", model.config)
    if getattr(text_config, "use_bidirectional_attention", None) is True and model._supports_sdpa:
        model.set_attn_implementation("sdpa")  # the default; another one reads the mask, which is causal
    if hasattr(model.config, "speech_encoder_left_chunk_num"):
        model.set_attn_implementation("sdpa")  # the default; another one adds true and false to the scores
    return model


def fill_weights(model: Any) -> None:
    import torch

    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(2)
        for name, weight in model.named_parameters():
            weight.normal_(0, 0.1 if weight.ndim > 1 else 0.3)
            if weight.ndim == 1 and "norm" in name and name.endswith("weight"):
                weight.add_(1)
        for name, buffer in model.named_buffers():
            if name.endswith("tid2eid"):
                buffer.random_(0, model.config.n_routed_experts)
            if name.endswith(("put_min", "put_max")):
                buffer.fill_(0.7 if name.endswith("max") else -0.5)
            if name.endswith("codebook.embed"):
                buffer.normal_()
            if name.endswith(("embed_sum", "cluster_usage")):
                buffer.uniform_(0.5, 2.0) if buffer.ndim == 1 else buffer.normal_()
            if ("bias" in name or name.endswith(("std_scale", "rotary_emb.alpha"))) and buffer.dtype == torch.float32:
                buffer.normal_(0, 0.5)


def save_weights(model: Any) -> dict[str, Any]:
    """The weights under the names of the checkpoint that the reference saves."""
    from safetensors.numpy import load_file

    if not hasattr(model, "save_pretrained"):
        return {name: weight.numpy() for name, weight in model.state_dict().items()}

    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, save_original_format=model.config.model_type not in flaws.UNCONVERTED)
        saved = {
            flaws.mend_name(model.config.model_type, name): array.astype("float32")
            for path in Path(folder).glob("*.safetensors")
            for name, array in load_file(path).items()
        }
    return flaws.mend_arrays(model, saved)


def add_unsaved(weights: dict[str, Any], model: Any, cls: type) -> dict[str, Any]:
    """The weights and the tables that the reference does not save, such as fixed positions."""
    unsaved = {
        name: value.detach().numpy()
        for name, value in model.state_dict().items()
        if name.endswith(getattr(cls, "not_saved", ()))
    }
    return {**unsaved, **weights}


def strip_prefix(weights: Mapping[str, Any], declared: set[str], prefix: str) -> dict[str, Any]:
    """The weights under declared names: some checkpoints have the name of the base model in front.

    `declared`: the names with # for every number.
    """
    return {
        name if re.sub(r"\d+", "#", name) in declared else name.removeprefix(prefix + "."): array
        for name, array in weights.items()
    }


def make_inputs(sizes: Any, cls_name: str, ids: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the model reads besides its tokens: (arguments of the reference, inputs of the flow)."""
    import torch

    steps = list_steps(next(iter(list_flows(sizes)))[0])
    inputs = [(data.operation.what, data.shape) for data, *_ in steps if isinstance(data.operation, Input)]
    shapes = {what: shape for what, shape in inputs if what}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        if books := [what for what in shapes if what.startswith("tokens of codebook")]:
            codes = torch.randint(0, 96, (len(books), ids.shape[1]))
            found = {what.replace(" ", "_"): code.numpy() for what, code in zip(books, codes)}
            if "source tokens" in shapes:
                return make_conditions(sizes, codes, found)
            states = torch.randn(1, SOURCE, int(shapes.get("encoder output", (0, 1))[1]))
            if "encoder output" not in shapes:
                return {"codes": codes}, found
            more = {"encoder_hidden_states": states}
            return {"codes": codes, **more}, {**found, "encoder_output": states[0].numpy()}
        if cls_name in images.IMAGES:
            return images.make_image(sizes, cls_name, ids)
        if "protein tokens" in shapes:
            ids = torch.randint(2, 20, (1, SOURCE))
            given = {"protein_input_ids": ids, "protein_attention_mask": torch.ones_like(ids)}
            return given, {"protein_tokens": ids[0].numpy()}
        if "source tokens" in shapes:
            ids, marks = torch.randint(2, 96, (1, SOURCE)), torch.randint(0, 2, (1, SOURCE))
            if "global tokens" in shapes:
                found = {"source_tokens": ids[0].numpy(), "global_tokens": marks[0].numpy()}
                return {"input_ids": ids, "global_attention_mask": marks}, found
            return {"input_ids": ids}, {"source_tokens": ids[0].numpy()}
        if "image" in shapes:
            states = torch.randn(1, SOURCE, int(shapes["image"][1]))
            return {"cross_attention_states": states}, {"image": states[0].numpy()}
        if "encoder output" in shapes:
            states = torch.randn(1, SOURCE, int(shapes["encoder output"][1]))
            if isinstance(sizes, WhisperStacks):
                return {"encoder_outputs": (states,)}, {"encoder_output": states[0].numpy()}
            return {"encoder_hidden_states": states}, {"encoder_output": states[0].numpy()}
        if "log-mel frames" in shapes and isinstance(sizes, SpeechEncoder):
            frames = torch.randn(1, 23, sizes.n_mels)
            return {"input_features": frames}, {"log_mel_frames": frames[0].numpy()}
        if "log-mel frames" in shapes and hasattr(sizes, "n_mels"):
            frames = torch.randn(1, sizes.n_mels, 2 * sizes.n_frames)
            return {"input_features": frames}, {"log_mel_frames": frames[0].T.numpy()}
        if "entities" in shapes:
            segments = torch.randint(0, sizes.n_token_types, ids.shape)
            kinds = torch.randint(0, sizes.n_token_types, (1, SOURCE))
            entities, places = torch.randint(0, sizes.n_entities, (1, SOURCE)), torch.randint(0, 9, (1, SOURCE, 3))
            named = {"entities": entities, "entity_positions": places, "entity_segments": kinds}
            given = {
                "entity_ids": entities,
                "entity_position_ids": places,
                "entity_token_type_ids": kinds,
                "token_type_ids": segments,
            }
            found = {what: value[0].numpy() for what, value in named.items()}
            return given, {**found, "segments": given["token_type_ids"][0].numpy()}
        if not sees_later_tokens(next(iter(list_flows(sizes)))[0]):
            return {}, {}
        if types := [what for what in shapes if what.startswith("token types")]:
            marks = torch.stack([torch.randint(0, rows, ids.shape) for rows in sizes.n_token_types], dim=-1)
            named = {what.replace(" ", "_"): marks[0, :, int(what.rpartition(" ")[2])].numpy() for what in types}
            return {"token_type_ids": marks}, named
        found = {
            what: torch.randint(0, getattr(sizes, OTHERS[what][1], 2), ids.shape)
            for what in sorted(shapes.keys() & OTHERS)
        }
        return {OTHERS[what][0]: ids for what, ids in found.items()}, {
            what.replace(" ", "_"): ids[0].numpy() for what, ids in found.items()
        }


def make_conditions(sizes: Any, codes: Any, named: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A text beside the codes of MusicGen, the samples of a sound or its codes, and a melody."""
    import torch

    ids, codec = torch.randint(2, 96, (1, SOURCE)), sizes.codec
    given, found = {"codes": codes, "input_ids": ids}, {**named, "source_tokens": ids[0].numpy()}
    if not hasattr(sizes, "n_chroma"):
        return given, {**found, "samples": torch.randn(50, codec.n_channels).numpy()}
    chroma = torch.rand(1, sizes.n_chroma_frames, sizes.n_chroma)
    books = {f"codes_of_codebook_{i + 1}": torch.randint(0, codec.n_codes, (7,)).numpy() for i in codec.codebooks}
    return {**given, "input_features": chroma}, {**found, **books, "chroma": chroma[0].numpy()}


def compare_logits(
    document: dict[str, Any], cls_name: str, stand_in: StandIn | None = None, model: Any = None
) -> Difference:
    """How far the declared flow is from the reference. `stand_in`: what computes the same in the reference. `model`:
    what computes it instead.
    """
    if model is None:
        model = build_reference(stand_in.reference if stand_in else document, cls_name)
    loaded = load(document)
    weights = find_weights(model, loaded.sizes, stand_in)  # first: RWKV rescales its own when it runs
    return measure(loaded, weights, expect_logits(model, document, cls_name, loaded.sizes))


class Expected(NamedTuple):
    """What both read, and what the reference makes of it."""

    tokens: list[int]
    inputs: dict[str, Any]  # of the flow, besides the tokens
    whole: Any
    decoded: Any  # None if tokens see later ones


def find_weights(model: Any, sizes: Any, stand_in: StandIn | None = None) -> dict[str, Any]:
    """The reference's weights under the names that are declared."""
    from paramcount.counting.tensors import list_tensors

    declared = {re.sub(r"\d+|{\w+}", "#", tensor.name) for tensor in list_tensors(sizes)}
    saved = add_unsaved(save_weights(model), model, type(sizes))
    if stand_in:
        saved = rename_weights(saved, stand_in)
    return strip_prefix(saved, declared, model.base_model_prefix)


def count_tokens(document: dict[str, Any], sizes: Any) -> int:
    """How many tokens both read: fewer if there are fewer positions. Nyströmformer reads texts of one length alone."""
    most = count_positions(next(iter(list_flows(sizes)))[0]) or TOKENS
    if document["model_type"] in flaws.ANGLES_IN_A_TABLE:
        most = sizes.n_positions
    n: int = document.get("segment_means_seq_len", min(TOKENS, most))
    return n


def expect_logits(model: Any, document: dict[str, Any], cls_name: str, sizes: Any) -> Expected:
    import torch

    ids = images.insert_placeholders(passes.make_token_ids(count_tokens(document, sizes), 1), cls_name)
    given, inputs = make_inputs(sizes, cls_name, ids)
    if document["model_type"] in flaws.UNMASKED_WITH_A_CACHE:
        given["use_cache"] = False
    codes = given.pop("codes", None)
    is_whole = codes is not None or sees_later_tokens(next(iter(list_flows(sizes)))[0])
    varies = "dynamic" in str(document.get("rope_scaling")) or "is_moe" in document
    varies = varies or forgets_visible(sizes, ids.shape[1])
    with torch.no_grad(), choose_earlier():
        stepwise = decode_reference(model, ids) if varies else None  # first, as longer texts leave their angles behind
        name = (
            "decoder_input_ids"
            if "input_ids" in given
            or cls_name.startswith(images.WRITERS)
            or ("input_features" in given and cls_name not in images.IMAGES)
            else "input_ids"
        )
        output = model(**{name: ids if codes is None else torch.cat((ids, codes))}, **given)
    found = output["logits" if "logits" in output else "last_hidden_state"].float()
    whole = (found[0] if codes is None else torch.cat(found.unbind(), dim=-1)).numpy()
    whole = whole[-ids.shape[1] :]  # without those of an image in front of the text
    decoded = None if is_whole else whole if stepwise is None else stepwise
    return Expected(ids[0].tolist(), inputs, whole, decoded)


def measure(loaded: Model, weights: dict[str, Any], expected: Expected) -> Difference:
    """How far the declared flow is from what the reference computed."""
    import numpy as np

    tokens, head, sizes = expected.tokens, loaded.reading.head, loaded.sizes
    largest = np.abs(expected.whole[expected.whole > np.finfo("float32").min]).max()  # but for tokens that are masked
    whole = float(np.abs(run_model(sizes, weights, tokens, head=head, **expected.inputs).logits - expected.whole).max())
    if expected.decoded is None:
        return Difference(whole / float(largest), 0)
    prompt = count_prompt(len(tokens))
    run = run_model(sizes, weights, tokens[:prompt], head=head, **expected.inputs)
    parts = [run.logits]
    for token in tokens[prompt:]:
        run = run.append([token])
        parts.append(run.logits)
    decoded = float(np.abs(np.concatenate(parts) - expected.decoded).max())
    return Difference(whole / float(largest), decoded / float(largest))


def count_prompt(n: int) -> int:
    """How many of the tokens are read at once before the others follow one by one."""
    return 2 * n // 3


@contextmanager
def choose_earlier() -> Iterator[None]:
    """Let `topk` choose the earlier ones of equal scores, as a token's index scores are if no head sees a similarity:
    PyTorch leaves open which.
    """
    import torch

    def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
        found = x.sort(dim=dim, descending=largest, stable=True)
        return torch.return_types.topk((found.values.narrow(dim, 0, k), found.indices.narrow(dim, 0, k)))

    with patch.object(torch, "topk", topk), patch.object(torch.Tensor, "topk", topk):
        yield


def compare_scores(model_type: str, ending: str) -> float:
    """How far the scores of the head of another task are from the reference, relative to the largest."""
    import numpy as np
    import torch

    from paramcount.architectures.task_heads import list_task_heads

    cls_name = next(cls for cls in list_task_heads(model_type) if cls.endswith(ending))
    document = {**passes.make_document(model_type), "architectures": [cls_name], "pad_token_id": 0, "num_labels": 3}
    model, sizes = build_reference(document, cls_name), load(document).sizes
    ids = passes.make_token_ids(count_tokens(document, sizes), 1)
    with torch.no_grad():
        expected = model(input_ids=ids)["logits"].float().numpy()
    found = run_model(sizes, save_weights(model), ids[0].tolist()).logits
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def forgets_visible(sizes: Any, n: int) -> bool:
    """Whether a cache is shorter than what a mask shows in n tokens, so that a prompt sees more than what follows."""
    attentions = find_attentions(list_steps(next(iter(list_flows(sizes)))[0])).values()
    kept = (attention.trim for attention in attentions if attention.mask.trim is None)
    return any(isinstance(most, int) and most < n for most in kept)


def decode_reference(model: Any, ids: Any) -> Any:
    """The reference's logits with its own cache: dynamic scaling rotates earlier and later keys by other angles, Doge's
    mixture routes a token by the logits of others, and a cache may be shorter than what a mask shows.
    """
    import numpy as np

    parts, past, prompt = [], None, count_prompt(ids.shape[1])
    name, option = ("mems", "use_mems") if model.config.model_type == "xlnet" else ("past_key_values", "use_cache")
    for part in (ids[:, :prompt], *ids[:, prompt:].split(1, dim=1)):
        output = model(input_ids=part, **{name: past, option: True})
        past = output[name]
        parts.append(output.logits[0].float().numpy())
    return np.concatenate(parts)


def compare(name: str) -> Difference:
    """The difference for a model type, or another name of `passes.CONFIGS`, `renamed.STAND_INS` or
    `remote.MODELS`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in remote.MODELS:
            model = remote.build(name)
            fill_weights(model)
            return compare_logits(remote.MODELS[name].document, "", model=model)
        if name in STAND_INS:
            return compare_logits(STAND_INS[name].document, STAND_INS[name].cls, STAND_INS[name])
        return compare_logits(passes.make_document(name), passes.find_class(name))


sounds.listen(globals(), "expect_logits")

if __name__ == "__main__":
    for word in sys.argv[1:]:
        try:
            print(f"{word:40} whole {compare(word).whole:.1e}  decoded {compare(word).decoded:.1e}")
        except Exception as error:  # one line for each
            print(f"{word:40} {type(error).__name__}: {str(error)[:200]}")
