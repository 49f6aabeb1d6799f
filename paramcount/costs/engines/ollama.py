"""What Ollama allocates: it runs llama.cpp with a context for each of its parallel requests.

Source: Ollama, commit fb3076099 (November 2026): startLlamaServer of llm/llama_server.go, the default context of
server/routes.go, the automatic batch of server/sched.go, MinimumMemory of ml/device.go and envconfig/config.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcount.costs.caches import merge_groups
from paramcount.costs.devices import Overhead
from paramcount.costs.dtypes import parse_kv_dtype
from paramcount.costs.engines.command_line import join_command
from paramcount.costs.engines.llama_cpp.cells import VERSIONS, LlamaCppOptions
from paramcount.costs.engines.llama_cpp.engine import LlamaCpp
from paramcount.costs.engines.llama_cpp.overhead import CONTEXT, MIB
from paramcount.costs.engines.llama_cpp.placement import Place, Placement
from paramcount.costs.engines.records import CacheRequest
from paramcount.errors import ParamcountError

if TYPE_CHECKING:
    from paramcount.costs.deployment import Deployment

GIB = 2**30
MINIMUM_MEMORY = 457 * MIB  # that stays free on each GPU; 512 MiB on Metal
# The context of a request if nobody names one: by the memory of all GPUs together.
DEFAULT_CONTEXTS = ((47 * GIB, 262_144), (23 * GIB, 32_768), (0, 4096))
BATCHES = ((32_768, 2048), (4096, 1024), (0, 512))  # (contexts above it, tokens of a micro-batch) if there is room
SURCHARGES = {2048: 2 * GIB, 1024: 768 * MIB, 512: 0}
HEADROOM = {2048: 60, 1024: 75, 512: 100}  # percent of the memory that a larger batch may be predicted to need
MOST_PREDICTED = 80  # percent
FLASH = "OLLAMA_FLASH_ATTENTION"
# Ollama 0.11.0 computed attention with sinks in its own engine, without flash attention: the scores and a copy of them
# with the sinks. Its log prints just these two as memory.graph.full: 9.0 GiB for 36,864 tokens
# (https://github.com/ollama/ollama/issues/11753), 2.0 GiB for 8,192 (https://github.com/ollama/ollama/issues/11711).
OWN_ENGINE, SCORES = "2025-08", 2 * 4  # bytes of a score
CONTEXT_OPTIONS = ("num_ctx", "OLLAMA_CONTEXT_LENGTH", "OLLAMA_NUM_PARALLEL", "OLLAMA_KV_CACHE_TYPE")


class OllamaOptions(NamedTuple):
    """Options of a request or a Modelfile, and variables of the environment, under Ollama's names."""

    num_ctx: int = 0  # of each request; 0: OLLAMA_CONTEXT_LENGTH
    num_batch: int = 0  # tokens of a micro-batch; 0: by context and memory
    num_gpu: int = -1  # layers on GPUs, the LM head included; -1: all
    OLLAMA_CONTEXT_LENGTH: int = 0  # 0: by the memory of the GPUs
    OLLAMA_NUM_PARALLEL: int = 0  # requests at once; 0: the batch
    OLLAMA_KV_CACHE_TYPE: str = ""
    OLLAMA_FLASH_ATTENTION: str = "auto"
    OLLAMA_GPU_OVERHEAD: int = 0  # bytes that stay free on each GPU besides
    version: str = "current"  # of llama.cpp in it: one of VERSIONS; OWN_ENGINE: 0.11, which ran gpt-oss by itself
    mla: str = "latent"  # "expanded": a file whose keys and values are of each head


class Ollama(LlamaCpp):
    name = "ollama"
    takes_drafts = False
    options: Mapping[str, int | float | bool | str] = MappingProxyType(OllamaOptions()._asdict())
    choices = MappingProxyType(
        {
            "OLLAMA_KV_CACHE_TYPE": ("", "f16", "q8_0", "q4_0"),
            "OLLAMA_FLASH_ATTENTION": ("auto", "true", "false"),
            "version": (OWN_ENGINE, *VERSIONS),
            "mla": LlamaCpp.choices["mla"],
        }
    )

    def apply_options(
        self, request: CacheRequest, *, has_context: bool, memory_bytes: int = 0, limit: int | None = None
    ) -> CacheRequest:
        """num_ctx is the context of each request, OLLAMA_NUM_PARALLEL their number."""
        options = OllamaOptions(**request.options)
        if options.OLLAMA_NUM_PARALLEL:
            if request.batch not in (1, options.OLLAMA_NUM_PARALLEL):
                raise ParamcountError("cannot be combined with batch", where="OLLAMA_NUM_PARALLEL")
            request = request._replace(batch=options.OLLAMA_NUM_PARALLEL)
        named = options.num_ctx or options.OLLAMA_CONTEXT_LENGTH
        if named and has_context:
            where = "num_ctx" if options.num_ctx else "OLLAMA_CONTEXT_LENGTH"
            raise ParamcountError("cannot be combined with context", where=where)
        if not has_context:
            context = named or next(n for least, n in DEFAULT_CONTEXTS if memory_bytes >= least)
            request = request._replace(context=context if named or limit is None else min(context, limit))
        if options.OLLAMA_KV_CACHE_TYPE:
            request = request._replace(kv_dtype=parse_kv_dtype(options.OLLAMA_KV_CACHE_TYPE))
        left = {name: value for name, value in request.options.items() if name not in CONTEXT_OPTIONS}
        return request._replace(options=left)

    def read_options(self, request: CacheRequest) -> LlamaCppOptions:
        options = OllamaOptions(**request.options)
        flash = {"auto": "auto", "true": "on", "false": "off"}[spell(options.OLLAMA_FLASH_ATTENTION)]
        batch = options.num_batch or 512
        return LlamaCppOptions(
            batch_size=batch,
            ubatch_size=batch,
            n_gpu_layers=options.num_gpu,
            flash_attn=flash,
            embeddings=options.version != VERSIONS[-1],  # which its own runner asked for
            version=VERSIONS[0] if options.version == OWN_ENGINE else options.version,
            mla=options.mla,
        )

    def check_options(self, given: Mapping[str, object]) -> None:
        flash = {FLASH: spell(given[FLASH])} if FLASH in given else {}
        super().check_options({**given, **flash})

    def estimate_overheads(
        self, deployment: Deployment, placement: Placement, options: LlamaCppOptions
    ) -> dict[Place, Overhead]:
        """As llama.cpp, but what Ollama leaves free counts as taken."""
        found = super().estimate_overheads(deployment, placement, options)
        if deployment.device.overhead_bytes is not None:
            return found
        given = OllamaOptions(**deployment.request.options)
        more = given.OLLAMA_GPU_OVERHEAD
        scores = count_scores(deployment, options) if given.version == OWN_ENGINE else 0
        kept = max(0, MINIMUM_MEMORY - CONTEXT) + more
        for place in placement.places[:-1]:
            usual, least, most, items = found[place]
            items = tuple((what, size + (kept - more if what == "GPU context" else 0)) for what, size in items)
            if extra := max(0, scores - next((size for what, size in items if what == "compute buffer"), 0)):
                items = tuple((what, scores if what == "compute buffer" else size) for what, size in items)
                usual, least, most = usual + extra, least + extra, most + extra
            if more:
                items += (("OLLAMA_GPU_OVERHEAD", more),)
            found[place] = Overhead(usual + kept, least + more, most + more, items)
        return found

    def measure(self, deployment: Deployment) -> Any:
        return super().measure(choose_batch(self, deployment))

    def list_offloads(self, deployment: Deployment) -> Iterator[dict[str, object]]:
        return (options for options in super().list_offloads(deployment) if "num_gpu" in options)

    def write_command(self, deployment: Deployment, name: str) -> str:
        """The environment of `ollama serve`, and a request's options as a Modelfile has them."""
        request, options = deployment.request, OllamaOptions(**deployment.request.options)
        keys = request.kv_dtype.keys.name
        variables = {
            "OLLAMA_CONTEXT_LENGTH": request.context,
            "OLLAMA_NUM_PARALLEL": request.batch if request.batch > 1 else None,
            "OLLAMA_KV_CACHE_TYPE": keys if keys in ("q8_0", "q4_0") else None,
            "OLLAMA_GPU_OVERHEAD": options.OLLAMA_GPU_OVERHEAD or None,
        }
        words = [f"{key}={value}" for key, value in variables.items() if value is not None]
        return join_command(" ".join([*words, "ollama run"]), name)


def count_scores(deployment: Deployment, options: LlamaCppOptions) -> int:
    """Bytes of the attention scores of a micro-batch, and of their copy with the sinks; 0 without sinks."""
    if not any("sinks" in row.tensor.name for row in deployment.rows):
        return 0
    request = deployment.request
    return SCORES * deployment.shape.n_heads * request.context * request.batch * options.ubatch_size


def spell(value: object) -> str:
    """A flag of the environment, which may be written as a number.

    >>> spell(1), spell(False), spell("auto")
    ('true', 'false', 'auto')
    """
    return {0: "false", 1: "true"}[value] if value in (0, 1) else str(value)


def choose_batch(engine: Ollama, deployment: Deployment) -> Deployment:
    """With the tokens of a micro-batch that Ollama chooses: more for a longer context, if there is room."""
    options = OllamaOptions(**deployment.request.options)
    if options.num_batch or options.version != VERSIONS[-1]:
        return deployment
    request, memory = deployment.request, deployment.device.memory_bytes * deployment.parallel.pp
    groups = merge_groups(group for _, found in deployment.caches for group in found)
    predicted = sum(row.bytes for row in deployment.rows) + engine.allocate(groups, request).kv_bytes
    most = memory * MOST_PREDICTED // 100
    batch = next(n for above, n in BATCHES if request.context > above)
    while batch > 512 and (
        predicted > min(most, memory * HEADROOM[batch] // 100) or SURCHARGES[batch] > most - predicted
    ):
        batch //= 2
    return deployment._replace(request=request._replace(options={**request.options, "num_batch": batch}))


OLLAMA = Ollama()
