"""What a model takes to run: weights, KV cache, context."""

from __future__ import annotations

from paramcount.costs.memory import Memory
from paramcount.costs.render_memory import describe_cache
from paramcount.explore.article.elements import Html, element, make_command, make_section, make_table
from paramcount.output.numbers import format_binary_bytes, format_bytes
from paramcount.zoo import Model


def render_memory(model: Model, memory: Memory) -> Html:
    formats = [
        [cost.dtype, format_bytes(cost.weights_bytes), format_binary_bytes(cost.weights_bytes), cost.note]
        for cost in memory.formats
    ]
    weights = make_table(["weights", "decimal", "binary", "in a higher precision"], formats, numbers=(1, 2))
    state = ["state"] if memory.state_bytes else []
    rows = [
        [
            cost.context,
            format_bytes(cost.kv_cache_bytes),
            *([format_bytes(cost.state_bytes)] if state else []),
            format_bytes(cost.total_bytes),
        ]
        for cost in memory.contexts
    ]
    headings = ["context", "KV cache", *state, "total"]
    caches = make_table(headings, rows, numbers=range(len(headings)))
    return make_section(
        "Memory to run it", [make_command("memory", model.id)], weights, element("p", describe_cache(memory)), caches
    )
