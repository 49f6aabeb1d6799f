"""What transformers allocates: what the computation needs, but a convolution keeps as many inputs as it is wide.

Source: version 5.23, cache_utils.py (DynamicCache).
"""

from __future__ import annotations

from collections.abc import Sequence

from paramcount.costs.caches import CacheGroup
from paramcount.costs.dtypes import KVDtype
from paramcount.costs.engines.engine import BF16, F32, Allocation, CacheRequest, Engine


class Transformers(Engine):
    name = "transformers"

    def allocate(self, groups: Sequence[CacheGroup], request: CacheRequest) -> Allocation:
        convolutions = [group for group in groups if group.is_convolution]
        widened = [  # [channels, width - 1] with one more
            group._replace(shapes=tuple((channels, n + 1) for channels, n in group.shapes)) for group in convolutions
        ]
        notes = ("convolutions keep as many inputs as they are wide",) if convolutions else ()
        others = [group for group in groups if not group.is_convolution]
        return super().allocate([*others, *widened], request)._replace(notes=notes)

    def choose_state_dtype(self, state: CacheGroup, request: CacheRequest) -> KVDtype:
        return F32 if state.in_float32 else BF16


TRANSFORMERS = Transformers()
