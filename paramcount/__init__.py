"""Exact parameter counts of language models, from the config alone, with the arithmetic."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paramcount.auditing.audit import Audit, audit
    from paramcount.checkpoints.contents import StoredCount, stored_in
    from paramcount.checkpoints.verify import Verification, verify
    from paramcount.counting.count import Count, count
    from paramcount.counting.tensors import Tensor
    from paramcount.drawing.bars import plot
    from paramcount.drawing.pictures import draw
    from paramcount.drawing.report import report
    from paramcount.drawing.shapes import Drawing
    from paramcount.errors import ParamcountError
    from paramcount.explaining.explain import explain
    from paramcount.explaining.explanation import Explanation
    from paramcount.explaining.formulas import formula
    from paramcount.explaining.why import why
    from paramcount.tracing.run import trace
    from paramcount.views.compare import compare
    from paramcount.views.diff import Difference, diff
    from paramcount.zoo.entries import Model
    from paramcount.zoo.names import load
    from paramcount.zoo.what_if import what_if

__version__ = "0.1.0"

# {public name: the module that has it}; loaded on first use, so that importing paramcount costs nothing.
_PUBLIC = {
    "Audit": "auditing.audit",
    "Count": "counting.count",
    "Difference": "views.diff",
    "Drawing": "drawing.shapes",
    "Explanation": "explaining.explanation",
    "Model": "zoo.entries",
    "ParamcountError": "errors",
    "StoredCount": "checkpoints.contents",
    "Tensor": "counting.tensors",
    "Verification": "checkpoints.verify",
    "audit": "auditing.audit",
    "compare": "views.compare",
    "count": "counting.count",
    "diff": "views.diff",
    "draw": "drawing.pictures",
    "explain": "explaining.explain",
    "formula": "explaining.formulas",
    "load": "zoo.names",
    "plot": "drawing.bars",
    "report": "drawing.report",
    "stored_in": "checkpoints.contents",
    "trace": "tracing.run",
    "verify": "checkpoints.verify",
    "what_if": "zoo.what_if",
    "why": "explaining.why",
}
__all__ = [
    "Audit",
    "Count",
    "Difference",
    "Drawing",
    "Explanation",
    "Model",
    "ParamcountError",
    "StoredCount",
    "Tensor",
    "Verification",
    "__version__",
    "audit",
    "compare",
    "count",
    "diff",
    "draw",
    "explain",
    "formula",
    "load",
    "plot",
    "report",
    "stored_in",
    "trace",
    "verify",
    "what_if",
    "why",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
