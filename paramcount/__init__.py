"""Exact parameter counts of language models, from the config alone, with the arithmetic.

The functions are defined in `paramcount.api` and loaded on first use, which keeps `import paramcount` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from paramcount.lazy import PUBLIC_FUNCTIONS
from paramcount.version import __version__

if TYPE_CHECKING:
    from paramcount.api import (
        audit,
        compare,
        count,
        count_frame,
        diff,
        draw,
        draw_map,
        explain,
        explore_page,
        find_adapters,
        flops,
        formula,
        load,
        lora,
        memory,
        plan,
        plot,
        query,
        report,
        run,
        size,
        stored_in,
        sweep,
        trace,
        training,
        verify,
        what_if,
        why,
        zoo,
    )  # fmt: skip
    from paramcount.auditing.audit import Audit
    from paramcount.checkpoints.contents import StoredCount
    from paramcount.checkpoints.verify import Verification
    from paramcount.costs.adapters.adapters import Lora
    from paramcount.costs.adapters.search import AdapterSearch
    from paramcount.costs.flops import Flops
    from paramcount.costs.memory import Memory
    from paramcount.costs.plan.records import ServingPlan
    from paramcount.costs.training.training import Training
    from paramcount.counting.count import Count
    from paramcount.drawing.parameter_map import ParameterMap
    from paramcount.drawing.shapes import Drawing
    from paramcount.errors import ConfigWarning, ParamcountError
    from paramcount.execution.run import Run
    from paramcount.explaining.explanation import Explanation
    from paramcount.explaining.why import Why
    from paramcount.flow import TensorRow
    from paramcount.loading.models import ModelLike
    from paramcount.sweeping.size import Sizing
    from paramcount.sweeping.sweep import Sweep
    from paramcount.symbolic.polynomials import Polynomial
    from paramcount.tracing.trace import Trace
    from paramcount.views.diff import Difference
    from paramcount.zoo.model import Model

# {type that the functions take, return or raise: its module}
_TYPES = {
    "AdapterSearch": "costs.adapters.search",
    "Audit": "auditing.audit",
    "ConfigWarning": "errors",
    "Count": "counting.count",
    "Difference": "views.diff",
    "Drawing": "drawing.shapes",
    "Explanation": "explaining.explanation",
    "Flops": "costs.flops",
    "Lora": "costs.adapters.adapters",
    "Memory": "costs.memory",
    "Model": "zoo.model",
    "ModelLike": "loading.models",
    "ParamcountError": "errors",
    "ParameterMap": "drawing.parameter_map",
    "Polynomial": "symbolic.polynomials",
    "Run": "execution.run",
    "ServingPlan": "costs.plan.records",
    "Sizing": "sweeping.size",
    "StoredCount": "checkpoints.contents",
    "Sweep": "sweeping.sweep",
    "TensorRow": "flow.walk",
    "Trace": "tracing.trace",
    "Training": "costs.training.training",
    "Verification": "checkpoints.verify",
    "Why": "explaining.why",
}
__all__ = [
    "AdapterSearch", "Audit", "ConfigWarning", "Count", "Difference", "Drawing", "Explanation", "Flops", "Lora",
    "Memory", "Model", "ModelLike", "ParamcountError", "ParameterMap", "Polynomial", "Run", "ServingPlan", "Sizing",
    "StoredCount", "Sweep", "TensorRow", "Trace", "Training", "Verification", "Why", "__version__", "audit",
    "compare", "count", "count_frame", "diff", "draw", "draw_map", "explain", "explore_page", "find_adapters",
    "flops", "formula", "load", "lora", "memory", "plan", "plot", "query", "report", "run", "size", "stored_in",
    "sweep", "trace", "training", "verify", "what_if", "why", "zoo",
]  # fmt: skip


PUBLIC_FUNCTIONS["zoo"] = lambda **options: import_module(f"{__name__}.api").zoo(**options)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "zoo":
        return import_module(f"{__name__}.zoo")  # a package that can be called like the function of the API
    value = getattr(import_module(f"{__name__}.{_TYPES.get(name, 'api')}"), name)
    globals()[name] = value  # the next access does not come here
    return value


def __dir__() -> list[str]:
    """The API, for completion."""
    return __all__
