"""What vLLM's profile run takes at its peak, read off the declared flow.

The run is one forward pass of max_num_batched_tokens tokens, then the sampler with the logits of max_num_seqs
sequences. A value lives from the step that makes it to the last one that reads it. Attention keeps no scores. Without
enforce_eager, the graph is cut at each attention: what goes into a piece, the output of attention and the residual
stream, lives to its end. Beside the sampler, the hidden states of all tokens live. profile_run keeps the patches that
the encoder reads, and the encoder the positions that it looks up (qwen3_vl.py, pos_embeds).

The sampler makes its copies of the logits in FP32. Up to version 0.16, it sorts them: 9.57 times the logits in FP32,
which five logged runs with vocabularies from 128,256 to 201,088 give to within 0.3% (llm-d-incubation/llm-d-planner,
docs of vLLM 0.11). Later versions make 3.5: the logits in BF16 and FP32, the probabilities, and the noise of the
exponential distribution.

Sources: vLLM 0.33.0, v1/worker/gpu_model_runner.py (profile_run, _dummy_sampler_run), v1/sample/sampler.py,
v1/sample/ops/topk_topp_sampler.py; https://github.com/vllm-project/vllm/pull/33538 replaced the sort.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from paramcount.costs.activations import ActivationWalk, find_layer
from paramcount.costs.training.setup import Setup
from paramcount.counting.sum_weights import list_flows
from paramcount.flow import Data, Linear, Repeat, WeightedSum, list_steps
from paramcount.flow.operation import Form
from paramcount.flow.walk import Step
from paramcount.zoo import Model

BF16, F32 = 2, 4  # bytes of a value
SORTING, SAMPLING = 9.57, 3.5  # bytes of the sampler over those of the logits in FP32
LAST_SORTING = 16  # minor version
SCORES = (Form.SCORES, Form.MASK, Form.ATTENTION_WEIGHTS)
ENCODERS = ("vision", "audio")
TOWERS = (*ENCODERS, "projector")


class ForwardPeak(NamedTuple):
    """Bytes of one forward pass on one GPU."""

    decoder: int
    encoder: int  # whose images become as many tokens
    read: int  # by the encoder: its patches
    features: int  # that the encoder hands on
    merges: bool  # whether the encoder merges patches, so that images may have any size
    outputs: int  # of the decoder, without logits
    vocabulary: int  # logits of a token


class ForwardWalk(ActivationWalk):
    """The values of one forward pass. `whole`: encoders are not divided among tensor-parallel GPUs."""

    def __init__(self, steps: list[Step], setup: Setup, *, whole: bool) -> None:
        super().__init__(steps, setup)
        self.patches_per_token = find_merging(steps)
        self.whole = whole

    def find_division(self, data: Data) -> bool:
        place = self.place.get(id(data), ((), ""))[1]
        if self.whole or place not in ENCODERS or not isinstance(data.operation, Linear):
            return super().find_division(data)
        return not is_embedding(data) and not any(map(self.is_divided, data.inputs))

    def resolve(self, size: int | str) -> int | None:
        """The size as a number; what an encoder reads becomes as many tokens as the text has."""
        if not isinstance(size, str) or size in ("tokens", "source", "text"):
            return super().resolve(size)
        return self.setup.context * (self.patches_per_token if size == "patches" else 1)

    def find_peaks(self, *, eager: bool) -> dict[tuple[Repeat | None, str], int]:
        """{(layers, part): the most bytes that live at once in one of them}."""
        bodies: dict[tuple[int, str], list[Step]] = {}
        layers: dict[tuple[int, str], Repeat | None] = {}
        for step in self.steps:
            layer = find_layer(step[2])
            key = (id(layer), step[3])
            layers[key] = layer
            bodies.setdefault(key, []).append(step)
        return {(layers[key], key[1]): self.find_peak(steps, eager=eager) for key, steps in bodies.items()}

    def find_peak(self, steps: list[Step], *, eager: bool) -> int:
        first, last, sizes = {}, {}, {}
        attention: list[int] = []
        for i, (data, *_) in enumerate(steps):
            root = self.find_root(data)
            key = id(root)
            if key not in first:
                first[key] = last[key] = i
                sizes[key] = self.count_bytes(root)
            for value in data.inputs:
                read = id(self.find_root(value))
                if read in last:
                    last[read] = i
            if isinstance(data.operation, WeightedSum):
                attention.append(i)
        if attention and not eager:
            output = id(self.find_root(steps[attention[-1]][0]))
            for key in (output, *list(first)[:1]):
                last[key] = len(steps) - 1
        changes = [0] * (len(steps) + 1)
        for key, size in sizes.items():
            changes[first[key]] += size
            changes[last[key] + 1] -= size
        peak = now = 0
        for change in changes:
            now += change
            peak = max(peak, now)
        return peak

    def count_bytes(self, data: Data) -> int:
        """Bytes of a value; none for parts of another, scores, logits, which few tokens have, and images in RAM."""
        is_logits = data.weights and data.weights[0].component == "lm_head"
        if data.operation.form in (*SCORES, Form.SPLIT) or is_logits or "height" in data.shape:
            return 0
        return BF16 * self.count_elements(data)


@lru_cache(maxsize=256)
def measure_forward(model: Model, tokens: int, tp: int, eager: bool, whole: bool = False) -> ForwardPeak:
    """The peak of one forward pass of so many tokens, and of an encoder, maybe `whole`, whose images become as many."""
    out, part = next(iter(list_flows(model.sizes, model.reading.head)))
    walk = ForwardWalk(list_steps(out, part), Setup(context=tokens, tp=tp), whole=whole)
    peaks = walk.find_peaks(eager=eager)
    towers = [data for data, _, _, place in walk.steps if place in TOWERS]
    read = sum(walk.count_bytes(walk.find_root(data.inputs[0])) for data in towers if is_embedding(data))
    kept = read + sum(walk.count_bytes(data) for data in towers if data.operation.form is Form.LOOKUP)
    encoders = [size + kept * (layer is not None) for (layer, place), size in peaks.items() if place in TOWERS]
    decoder = [size for (layer, place), size in peaks.items() if place in ("decoder", "encoder") and layer is not None]
    head = find_head(walk.steps)
    projected = [data for data, _, _, place in walk.steps if place == "projector"]
    return ForwardPeak(
        max(decoder, default=0),
        max(encoders, default=0),
        read,
        walk.count_bytes(projected[-1]) if projected else 0,
        walk.patches_per_token > 1,
        0 if head is None else walk.count_bytes(walk.find_root(head.inputs[0])),
        0 if head is None else int(head.shape[-1]),
    )


def is_embedding(data: Data) -> bool:
    """Whether it makes the first hidden states, of patches."""
    return bool(data.weights) and data.weights[0].component == "embedding" and bool(data.inputs)


def find_merging(steps: Iterable[Step]) -> int:
    """The patches that an encoder merges to one row."""
    found = 1
    for data, *_ in steps:
        if data.operation.form is Form.RESHAPE and data.inputs and len(data.shape) == len(data.inputs[0].shape) == 2:
            (before, width), (after, merged) = data.inputs[0].shape, data.shape
            if isinstance(before, str) and isinstance(after, str) and before != after:
                found = max(found, int(merged) // int(width))
    return found


def find_head(steps: Iterable[Step]) -> Data | None:
    """The logits."""
    found = None
    for data, *_ in steps:
        if data.weights and data.weights[0].component == "lm_head" and data.operation.form is Form.LINEAR:
            found = data
    return found


def count_sampler(peak: ForwardPeak, sequences: int, minor: int) -> int:
    """Bytes beside the sampler's rows: its copies of the logits, and the hidden states."""
    factor = SORTING if minor <= LAST_SORTING else SAMPLING
    return peak.outputs + round(factor * sequences * peak.vocabulary * F32)
