"""What inference engines keep in memory: each engine is one file or folder."""

from __future__ import annotations

from collections.abc import Mapping

from paramcount.costs.engines.engine import Engine
from paramcount.costs.engines.llama_cpp.engine import LLAMA_CPP
from paramcount.costs.engines.ollama import OLLAMA
from paramcount.costs.engines.sglang.engine import SGLANG
from paramcount.costs.engines.transformers.engine import TRANSFORMERS
from paramcount.costs.engines.vllm import VLLM

ENGINES: Mapping[str, Engine] = {
    engine.name: engine for engine in (Engine(), TRANSFORMERS, VLLM, SGLANG, LLAMA_CPP, OLLAMA)
}
