"""How much memory an inference engine allocates for the KV cache and the recurrent state; each engine is one file."""

from __future__ import annotations

from collections.abc import Mapping

from paramcount.costs.engines.engine import Engine
from paramcount.costs.engines.llama_cpp import LLAMA_CPP
from paramcount.costs.engines.ollama import OLLAMA
from paramcount.costs.engines.sglang import SGLANG
from paramcount.costs.engines.transformers import TRANSFORMERS
from paramcount.costs.engines.vllm import VLLM

ENGINES: Mapping[str, Engine] = {
    engine.name: engine for engine in (Engine(), TRANSFORMERS, VLLM, SGLANG, LLAMA_CPP, OLLAMA)
}
