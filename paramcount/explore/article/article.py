"""The article about one model."""

from __future__ import annotations

import json
from collections.abc import Iterator

from paramcount.costs.memory import Memory, measure_memory
from paramcount.costs.render_memory import describe_cache
from paramcount.counting.count import Count
from paramcount.explaining.explain import explain_model
from paramcount.explaining.glossary import describe_size
from paramcount.explore.article.elements import Html, element, join, make_command, make_number, make_section, make_table
from paramcount.explore.article.parameters import render_experts, render_parameters, render_published
from paramcount.explore.article.relatives import render_predecessor, render_siblings
from paramcount.explore.article.sources import render_notes, render_sources
from paramcount.output.numbers import COUNT_UNITS, format_binary_bytes, format_bytes, format_scaled, format_share
from paramcount.sizes.values import format_size
from paramcount.zoo import Model, count_model
from paramcount.zoo.checks import summarize_checks
from paramcount.zoo.what_if import get_size, list_paths

SPOKEN_UNITS = ((" trillion", 10**12), (" billion", 10**9), (" million", 10**6))
ENCODERS = {"vision": "vision encoder", "audio": "audio encoder"}  # {part: its name}


def render_article(model: Model) -> str:
    """The article about a model with known sizes: an element of the class "article"."""
    count, memory, explanation = count_model(model), measure_memory(model), explain_model(model)
    return element(
        "div",
        render_header(model, count, memory),
        render_parameters(model, count, explanation),
        render_experts(model, explanation),
        render_published(model, count),
        render_memory(model, memory),
        render_sizes(model),
        render_predecessor(model),
        render_siblings(model),
        render_notes(model, count),
        render_sources(model, count),
        class_="article",
    )


def render_header(model: Model, count: Count, memory: Memory) -> Html:
    """The name, the answer, and the numbers that people look for."""
    lead = element("p", *describe_model(model, count), class_="lead")
    return element("header", element("h1", model.name), lead, render_figures(model, count, memory))


def describe_model(model: Model, count: Count) -> Iterator[Html | str]:
    """The answer in two sentences that can be read aloud."""
    whole = "parameters in its language model" if count.scope == "language_model" else "parameters"
    yield from (f"{model.name} has ", say_number(count.total), f" {whole}")
    if count.active != count.total:
        most = "at most " if count.active_min != count.active else ""
        yield from (f", of which {most}", say_number(count.active), " are active for each token")
    yield f". It is {describe_kind(count)}"
    by = f" by {model.publisher}" if model.publisher else ""
    on = f", released on {model.released.day} {model.released:%B %Y}" if model.released else ""
    yield f"{by}{on}."


def say_number(n: int) -> Html:
    """The number in words: "671 billion"."""
    return make_number(n, format_scaled(n, (*SPOKEN_UNITS, *COUNT_UNITS[-1:])))


def describe_kind(count: Count) -> str:
    """What a model is, by its parts: "a mixture-of-experts decoder with a vision encoder"."""
    stacks = [name for name in ("encoder", "decoder") if count.parts[name]]
    experts = "mixture-of-experts " if count.components["experts"] else ""
    kind = f"{experts}{'–'.join(stacks) or 'model'}"
    towers = [f"a {name}" if name[0] != "a" else f"an {name}" for part, name in ENCODERS.items() if count.parts[part]]
    article = "an" if kind[0] in "aeiou" else "a"
    return f"{article} {kind}{' with ' if towers else ''}{' and '.join(towers)}"


def render_figures(model: Model, count: Count, memory: Memory) -> Html:
    """The numbers that people look for."""
    figures: list[tuple[str, Html | str, str]] = [("Parameters", make_number(count.total), f"{count.total:,}")]
    if count.active != count.total:
        share = format_share(count.active, count.total)
        figures.append(("Active per token", make_number(count.active), f"{share} · {count.active:,}"))
    weights = next(cost for cost in memory.formats if cost.dtype == "BF16")
    figures.append(("Weights in BF16", format_bytes(weights.weights_bytes), "2 bytes each"))
    if memory.kv_bytes_per_token:
        cache = format_bytes(memory.kv_bytes_per_token)
        figures.append(("KV cache per token", cache, f"{memory.kv_bytes_per_token:,} bytes in {memory.kv_dtype}"))
    if memory.context_limit:
        figures.append(("Context", f"{memory.context_limit:,}", "tokens"))
    cells = (
        element("div", element("dt", name), element("dd", element("b", value), element("small", note)))
        for name, value, note in figures
    )
    evidence = summarize_checks(model, count)
    proof = element("p", evidence[:1].upper() + evidence[1:] + ".", class_="proof") if evidence else Html("")
    return join((element("dl", *cells, class_="figures"), proof))


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


def render_sizes(model: Model) -> Html:
    rows = []
    for path in list_paths(model.sizes):
        meaning, key = describe_size(model.sizes, path)
        value = format_size(get_size(model.sizes, path))
        rows.append([element("code", path), value, meaning, element("code", key) if key else "derived"])
    table = make_table(["size", "value", "meaning", "config.json"], rows, numbers=(1,))
    return make_section("Sizes and settings", [make_command("explain", model.id)], table, render_settings(model))


def render_settings(model: Model) -> Html:
    """The config.json keys of a zoo entry that no size is read from."""
    settings = model.entry.settings if model.entry else None
    if not settings:
        return Html("")
    pairs = (
        element("div", element("dt", element("code", key)), element("dd", json.dumps(value, ensure_ascii=False)))
        for key, value in settings.items()
    )
    return join((element("p", "Settings of the forward pass:"), element("dl", *pairs, class_="settings")))
