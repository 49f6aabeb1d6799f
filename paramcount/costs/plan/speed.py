"""How fast GPUs can serve a model at most: tokens per second of decoding and of prompts, from their data sheets.

As in `roofline`, a time is the larger of two: that of reading every byte once, and that of the multiply-adds. Tensor
parallelism divides both. Pipeline stages work one after the other on a token, and at the same time on several groups of
users: each stage then reads its weights for every group, and of the cache that of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from paramcount.costs.absorption import absorb_up_projections, count_visible_pairs
from paramcount.costs.caches import CacheGroup
from paramcount.costs.engines.engine import Engine
from paramcount.costs.engines.records import CacheRequest
from paramcount.costs.flops import find_read_share, get_visible, sum_flops
from paramcount.costs.gpus import Gpu
from paramcount.costs.roofline import sum_read
from paramcount.costs.sharding import Parallelism
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.tracing.run import decodes_tokens, has_encoder_input, trace_model
from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Trace
from paramcount.zoo import Model


class Passes(NamedTuple):
    """What a model computes for one user, whatever the dtype and the GPU."""

    context: int
    prompt: Trace  # as long as the context
    prompt_flops: int
    step: Trace | None  # that decodes the last token of the context; None if the model decodes no tokens
    step_flops: int
    read_share: Fraction  # of the cache, by a decoding step


class Speed(NamedTuple):
    """Upper bounds: no program reaches them."""

    step_seconds: float | None  # for one token of every user; None if the model decodes no tokens
    limit: str  # what decides it: "memory", "compute" or, without a step, ""
    tokens_per_second_per_user: float | None
    tokens_per_second: float | None  # of all users together
    prompt_seconds: float | None  # of one prompt as long as the context; None if the data sheet states no rate
    prompt_tokens_per_second: float | None
    rate_dtype: str | None  # in which values are multiplied; None if the data sheet states no rate


@lru_cache(maxsize=4)
def trace_passes(model: Model, context: int, source: int | None) -> Passes:
    """`source`: encoder input length, if it is not the context.

    Raises: ParamcountError for a context that the model cannot process.
    """
    source = (source or context) if has_encoder_input(model) else None
    prompt = trace_model(model, TraceOptions(context, source=source))
    step = None
    if prompt.cache and decodes_tokens(model):
        step = trace_model(model, TraceOptions(1, past=context - 1, source=source))
    return Passes(
        context,
        prompt,
        sum_flops(prompt, get_visible),
        step,
        sum_flops(step, get_visible, absorb_up_projections(step.steps, count_visible_pairs)) if step else 0,
        find_read_share(step) if step else Fraction(0),
    )


class Reads(NamedTuple):
    """Bytes of the weights that a pass reads."""

    prompt: int
    step: int


def sum_reads(rows: Sequence[StoredTensor], passes: Passes) -> Reads:
    return Reads(sum_read(rows, passes.prompt), sum_read(rows, passes.step) if passes.step else 0)


def bound_speed(
    passes: Passes,
    reads: Reads,
    groups: Sequence[CacheGroup],
    request: CacheRequest,
    parallel: Parallelism,
    gpu: Gpu,
    rate: str | None,
    replicas: int = 1,
) -> Speed:
    """What GPUs reach at most. `rate`: the name of the rate at which they multiply; None if it is unknown. `replicas`:
    data-parallel ranks of attention, among which the users are divided."""
    width = parallel.devices // parallel.pp
    flops_per_second = gpu.flops[rate] * width if rate else None  # of one stage
    prompt_seconds = step_seconds = None
    limit = ""
    if flops_per_second:
        # Stages may work on parts of a prompt at once.
        compute = passes.prompt_flops / (flops_per_second * parallel.pp)
        prompt_seconds = max(reads.prompt / (gpu.bandwidth * width), compute)
    if passes.step:
        at_once = min(parallel.pp, request.batch)  # groups of users, each in another stage
        of_rank = request._replace(tp=max(1, width // replicas), batch=-(-request.batch // replicas), options={})
        cached = Engine().allocate(groups, of_rank)
        cache_bytes = float(cached.kv_bytes * passes.read_share + cached.state_bytes)  # on each of the GPUs
        memory = (reads.step / width + cache_bytes / at_once) / gpu.bandwidth
        compute = request.batch * passes.step_flops / at_once / flops_per_second if flops_per_second else 0.0
        step_seconds, limit = max((memory, "memory"), (compute, "compute"))
    return Speed(
        step_seconds=step_seconds,
        limit=limit,
        tokens_per_second_per_user=1 / step_seconds if step_seconds else None,
        tokens_per_second=request.batch / step_seconds if step_seconds else None,
        prompt_seconds=prompt_seconds,
        prompt_tokens_per_second=passes.context / prompt_seconds if prompt_seconds else None,
        rate_dtype=rate.upper() if rate else None,
    )
