"""What an engine is asked for, and what it says that each device holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from paramcount.costs.devices import Device, Overhead
from paramcount.costs.dtypes import KVDtype

Option: TypeAlias = "int | float | bool | str"


class CacheRequest(NamedTuple):
    """What is cached."""

    context: int  # tokens per sequence, prompt and answer
    batch: int  # sequences
    kv_dtype: KVDtype
    source: int | None = None  # encoder input length
    tp: int = 1  # GPUs that share the heads; the allocation is that of one of them
    state_dtype: KVDtype | None = None  # of recurrent states and convolutions; None: the engine's rule
    config_state_dtype: KVDtype | None = None  # of recurrent states, if the config names one
    reference: str = ""  # the class that the config names first, by which engines choose their rules
    options: Mapping[str, Any] = {}  # of the engine, those with a default left out
    device: Device | None = None  # by which an engine may choose its defaults
    has_draft: bool = False  # whether another model drafts tokens


class Allocation(NamedTuple):
    """Bytes of all sequences together, on one GPU."""

    kv_bytes: int
    state_bytes: int
    notes: tuple[str, ...] = ()  # the engine's rules that apply
    unit_bytes: int = 1  # what the engine allocates is a multiple of it
    shared_bytes: int = 0  # what does not belong to a sequence, in `kv_bytes` or `state_bytes`

    @property
    def total_bytes(self) -> int:
        return self.kv_bytes + self.state_bytes


class Share(NamedTuple):
    """What one device holds; of GPUs that share a pipeline stage, each of them."""

    stage: int
    layers: int  # that lie on it; of those whose experts lie elsewhere, the rest
    weights_bytes: int  # as the engine loads them
    kv_cache_bytes: int
    state_bytes: int
    overhead: Overhead  # that the engine takes besides
    device: int | None = 0  # index of the GPU, of several that hold the same the first; None: the CPU and its memory
    devices: int = 1  # GPUs that hold as much
    first_layer: int = 0
    extras: tuple[str, ...] = ()  # what lies there besides the layers, such as "token embedding"
    draft_weights_bytes: int = 0  # of a model that drafts tokens
    draft_cache_bytes: int = 0  # its cache and state

    @property
    def cache_bytes(self) -> int:
        """Bytes of cache and state."""
        return self.kv_cache_bytes + self.state_bytes + self.draft_cache_bytes

    @property
    def fixed_bytes(self) -> int:
        """Bytes of weights."""
        return self.weights_bytes + self.draft_weights_bytes

    @property
    def total_bytes(self) -> int:
        """Bytes without the overhead."""
        return self.fixed_bytes + self.cache_bytes


class Support(NamedTuple):
    """Whether an engine runs a model."""

    is_supported: bool = True
    note: str = ""  # why it does not, or how it does without an implementation of its own
