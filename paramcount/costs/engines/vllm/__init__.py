"""vLLM: what it loads, the pool of blocks of its cache, and what it takes besides."""

from paramcount.costs.engines.vllm.engine import VLLM, Vllm
from paramcount.costs.engines.vllm.options import VllmOptions
from paramcount.costs.engines.vllm.pool import PACKED_LATENT, CachePool, count_token_bytes

__all__ = ["PACKED_LATENT", "VLLM", "CachePool", "Vllm", "VllmOptions", "count_token_bytes"]
