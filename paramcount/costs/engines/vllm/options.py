"""The flags of vLLM that decide how much memory it takes, under their own names, and what they are by default.

Source: vLLM 0.33.0, engine/arg_utils.py (get_batch_defaults), config/cache.py, config/scheduler.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from paramcount.costs.engines.records import CacheRequest

GIB = 2**30
LATEST = 33
FIRST_V1 = 8  # minor version
LAST_WITHOUT_CACHED_STATES = (
    25  # minor version: logs of 0.19 to 0.25 keep one state where prefix caching is not asked for
)
CHUNKED = 32_768  # tokens of a context above which earlier versions divide a prompt
VERSIONS = tuple(f"v0.{n}" for n in range(LATEST, 5, -1))


class VllmOptions(NamedTuple):
    """Options of the engine; 0 means what vLLM chooses itself."""

    version: str = VERSIONS[0]
    block_size: int = 16
    max_num_batched_tokens: int = 0
    max_num_seqs: int = 0
    enable_prefix_caching: bool = (
        True  # a recurrent layer then keeps two states; up to version 0.25 it is off beside them
    )
    disable_hybrid_kv_cache_manager: bool = False  # sliding windows then keep all tokens
    async_scheduling: bool = True  # sliding windows then reserve two batches in flight; not up to version 0.25
    enforce_eager: bool = False  # no CUDA graphs
    max_cudagraph_capture_size: int = 0
    gpu_memory_utilization: float = 0.92  # 0.9 before version 0.20
    kv_cache_memory_bytes: int = 0  # in place of what gpu_memory_utilization leaves
    decode_context_parallel_size: int = 1  # GPUs of the tensor-parallel ones that divide the tokens of the cache
    mamba_cache_mode: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"  # as the config says
    runner: str = "generate"  # pooling: without the LM head and the sampler, as for embeddings
    speculative_method: str = "none"  # mtp: the model's own MTP layers are loaded, too
    num_speculative_tokens: int = 0
    mm_encoder_tp_mode: str = "weights"  # data: whole encoders on every GPU
    language_model_only: bool = False  # encoders are not loaded
    moe_backend: str = "auto"  # of experts in blocks of 4 bits: how their matrices are padded

    @property
    def minor(self) -> int:
        """The version as a number: 33 for v0.33."""
        return int(self.version.removeprefix("v0."))

    @property
    def batches_in_flight(self) -> int:
        return 2 if self.async_scheduling and self.minor > 25 else 1

    @property
    def states_per_request(self) -> int:
        """The states that a recurrent layer keeps, one of each draft token included."""
        mode = self.mamba_cache_mode
        aligned = mode == "align" or (mode == "auto" and self.enable_prefix_caching)
        return (2 if aligned else 1) + self.num_speculative_tokens


CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "version": VERSIONS,
        "mamba_cache_mode": ("auto", "none", "align"),
        "mamba_ssm_cache_dtype": ("auto", "float32", "bfloat16", "float16"),
        "runner": ("generate", "pooling"),
        "speculative_method": ("none", "mtp"),
        "mm_encoder_tp_mode": ("weights", "data"),
        "moe_backend": ("auto", "triton", "marlin", "flashinfer_trtllm", "flashinfer_cutlass"),
    }
)


def complete_options(request: CacheRequest) -> VllmOptions:
    """All options of a request, with what vLLM chooses for the GPU where the user says nothing.

    Without a GPU the choice is that for H100 and the like.
    """
    device = request.device
    gpu = (device.memory_bytes, device.name.lower()) if device else (80 * GIB, "")
    return complete(tuple(request.options.items()), request.context, *gpu)


@lru_cache(maxsize=1024)
def complete(given: tuple[tuple[str, Any], ...], context: int, memory_bytes: int, gpu: str) -> VllmOptions:
    """All options for a context and a GPU, whose name is in lower case."""
    options = VllmOptions(**dict(given))
    named = {name for name, _ in given}
    if options.minor <= LAST_WITHOUT_CACHED_STATES and "enable_prefix_caching" not in named:
        options = options._replace(
            mamba_cache_mode={"auto": "none"}.get(options.mamba_cache_mode, options.mamba_cache_mode)
        )
    tokens, sequences = choose_batch(memory_bytes, gpu)
    if options.minor < FIRST_V1:  # whole prompts, in chunks if they are long
        tokens, sequences = 2048 if context > CHUNKED else max(context, 2048), 256
    sequences = options.max_num_seqs or sequences
    tokens = options.max_num_batched_tokens or min(tokens, sequences * context)
    return options._replace(max_num_batched_tokens=tokens, max_num_seqs=min(sequences, tokens))


def choose_batch(memory: int, name: str) -> tuple[int, int]:
    """(max_num_batched_tokens, max_num_seqs) of `vllm serve` for a GPU."""
    if memory >= 160 * GIB:
        return 16_384, 1024
    if memory >= 70 * GIB and "a100" not in name and "gb10" not in name:
        return 8192, 1024
    return 2048, 256
