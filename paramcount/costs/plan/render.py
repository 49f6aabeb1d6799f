"""A plan as a table: one row per deployment, then the command lines that start it and that check it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paramcount.costs.engines.engine import WITHIN_NODE
from paramcount.costs.fit import Suggestion
from paramcount.costs.plan.records import PlannedDeployment, ServingPlan
from paramcount.costs.render_fit import describe_arguments, describe_minimum, describe_suggestions, describe_verdict
from paramcount.costs.render_flops import format_amount
from paramcount.errors import count_noun, join_words
from paramcount.output.numbers import format_bytes
from paramcount.output.tables import Column, Table, render

WITH_COMMANDS = 3  # deployments; of longer plans only the best one shows its commands
EXPLANATION = (
    "context, users: the most that fit; tokens/s of one user, of all users and of prompts: at most, from bandwidth and "
    "FLOPs at the full context"
)


def build_plan_table(plan: ServingPlan, *, in_python: bool = False) -> Table:
    """One row per deployment, the best first. `in_python`: names arguments, not options."""
    table = make_table(plan, in_python=in_python)
    return table._replace(
        data=plan.to_dict(),
        below=[*table.below, *(line for block in list_commands(plan, in_python=in_python) for line in block)],
        texts={"table": lambda width, colour, shortens: render_text(plan, width, colour)},
    )


def render_text(plan: ServingPlan, width: int, colour: bool) -> str:
    """The table, then the commands, which are broken so that a shell still reads them."""
    text = render(make_table(plan), "table", width, colour=colour)
    blocks = [(title, *(fold_command(line, width) for line in lines)) for title, *lines in list_commands(plan)]
    return "\n".join([text, *("\n".join(block) + "\n" for block in blocks)])


def make_table(plan: ServingPlan, *, in_python: bool = False) -> Table:
    varied = {name: len({getattr(it, name) for it in plan.deployments}) > 1 for name in ("engine", "dtype")}
    shown = {name: "" if is_varied else "csv" for name, is_varied in varied.items()}
    columns = [
        Column("gpus", "GPUs", right=False, only="text"),
        Column("layout", "layout", right=False, only="text"),
        Column("gpu", "", only="csv"),
        *(Column(name, "", only="csv") for name in ("devices", "tp", "pp", "ep")),
        Column("engine", "engine", right=False, only=shown["engine"]),
        Column("dtype", "weights", right=False, only=shown["dtype"]),
        *(Column(name, "", only="csv") for name in ("kv_dtype", "verdict", "memory_bytes", "needed_bytes")),
        Column("free_bytes", "free", show=format_free),
        Column("longest_context", "context", show=format_most),
        Column("largest_batch", "users", show=format_most),
        Column("tokens_per_second_per_user", "tokens/s", show=format_rate),
        Column("tokens_per_second", "all users", show=format_rate),
        Column("prompt_tokens_per_second", "prompts", show=format_rate),
        Column("command", "", only="csv"),
    ]
    rows = [list_cells(it) for it in plan.deployments]
    return Table(columns, rows, None, above=[*describe(plan)], below=[EXPLANATION, *list_remarks(plan, in_python)])


def list_cells(it: PlannedDeployment) -> list[Any]:
    fit, speed = it.fit, it.speed
    rates: list[float | None] = [None, None, None]
    if speed:
        rates = [speed.tokens_per_second_per_user, speed.tokens_per_second, speed.prompt_tokens_per_second]
    return [
        name_gpus(it), describe_layout(it), it.gpu, it.devices, it.tp, it.pp, it.ep, it.engine, it.dtype,
        it.kv_dtype, fit.verdict, fit.memory_bytes, fit.needed_bytes, fit.free_bytes, fit.longest_context,
        fit.largest_batch, *rates, it.command,
    ]  # fmt: skip


def describe_layout(it: PlannedDeployment) -> str:
    """Such as "TP=8" and "TP=8, DP attention"."""
    ranks = ", DP attention" if it.attention_replicas > 1 else ""
    return (it.fit.parallelism or "1 GPU") + ranks


def name_gpus(it: PlannedDeployment) -> str:
    return f"{it.devices:,} × {it.gpu}"


def format_free(count: int) -> str:
    return format_bytes(count) if count >= 0 else f"−{format_bytes(-count)}"


def format_most(most: int | None) -> str:
    return "unlimited" if most is None else f"{most:,}" if most else "–"


def format_rate(rate: float | None) -> str:
    return "–" if rate is None else format_amount(rate)


def describe(plan: ServingPlan) -> Iterator[str]:
    """The answer, then what was asked for and what was chosen."""
    yield f"{plan.name}   {describe_placement(plan.deployments[0])}"
    each = " each" if plan.users > 1 else ""
    need = f"{count_noun(plan.users, 'user')} with {plan.context:,} tokens{each}"
    yield f"{need}; {describe_choices(plan)}"


def describe_placement(it: PlannedDeployment) -> str:
    fit = it.fit
    capacity = format_bytes(fit.memory_bytes)
    if fit.utilization < 1:
        capacity = f"{fit.utilization:.0%} of {capacity}"
    return describe_verdict(fit, name_gpus(it) + (f" ({describe_layout(it)})" if fit.parallelism else ""), capacity)


def describe_choices(plan: ServingPlan) -> str:
    """The engine, the weights and the KV cache, each with the reason for its choice."""
    its = plan.deployments
    engines = dict.fromkeys(f"{it.engine} ({it.engine_reason})" for it in its)
    weights = dict.fromkeys(describe_weights(it) for it in its)
    text = f"engine {', '.join(engines)}; weights {', '.join(weights)}"
    caches = dict.fromkeys(it.kv_dtype for it in its if it.fit.fullest.kv_cache_bytes)
    return f"{text}; KV cache {', '.join(caches)}" if caches else text


def describe_weights(it: PlannedDeployment) -> str:
    if "as stored" in it.dtype:
        return it.dtype
    return f"{it.dtype}, {it.dtype_reason}" if it.dtype.endswith(")") else f"{it.dtype} ({it.dtype_reason})"


def list_remarks(plan: ServingPlan, in_python: bool) -> Iterator[str]:
    """What would fit instead, and where it is too close to call."""
    for i, it in enumerate(plan.deployments):
        fit = it.fit
        if not fit.fits:
            parts = [*filter(None, [describe_remedies(fit.suggestions, in_python), describe_more(it)])]
            verdict = [] if i == 0 else [describe_placement(it)]
            yield " · ".join([*verdict, *(parts or [f"nothing makes it fit {name_gpus(it)}"])])
        elif it.on_one_machine:
            yield f"on one machine with {WITHIN_NODE} × {it.gpu}: {describe_remedies(it.on_one_machine, in_python)}"
    close = [f"{it.too_close_devices:,} × {it.gpu}" for it in plan.deployments if it.too_close_devices]
    if close:
        yield f"too close to call: {join_words(close, 'and')}"


def describe_remedies(suggestions: Sequence[Suggestion], in_python: bool) -> str:
    """What makes it fit, in the options of this command: "fits with --users 6 or --dtype fp8"; "" for nothing."""
    renamed = (
        it._replace(options={"users" if name == "batch" else name: value for name, value in it.options.items()})
        for it in suggestions
    )
    return describe_suggestions([*renamed], in_python=in_python)


def describe_more(it: PlannedDeployment) -> str:
    """How many GPUs it takes; "" if more than one cannot be used."""
    return describe_minimum(it.fit) if any("tp" in suggestion.options for suggestion in it.fit.suggestions) else ""


# ---- command lines


def list_commands(plan: ServingPlan, *, in_python: bool = False) -> list[tuple[str, ...]]:
    """For each deployment that shows them: its GPUs, the command that starts it, and the one that checks it."""
    shown = plan.deployments if len(plan.deployments) <= WITH_COMMANDS else plan.deployments[:1]
    check = write_call if in_python else write_check
    return [
        (f"{name_deployment(it, plan)}:", *filter(None, [it.command]), check(plan.id, it.arguments))
        for it in shown
        if it.fit.fits
    ]


def name_deployment(it: PlannedDeployment, plan: ServingPlan) -> str:
    """Its GPUs, and its weights if there are several on the same ones."""
    is_unique = sum(name_gpus(other) == name_gpus(it) for other in plan.deployments) == 1
    return name_gpus(it) if is_unique else f"{name_gpus(it)}, {it.dtype}"


def write_check(name: str, arguments: Mapping[str, Any]) -> str:
    """The command line of `memory` with these arguments.

    >>> write_check("llama-3.1-8b", {"context": 8192, "engine_options": {"block_size": 32}, "gpu": "8xH100 SXM"})
    'paramcount memory llama-3.1-8b --context 8192 --engine-option block_size=32 --gpu 8xh100-sxm'
    """
    words = ["paramcount", "memory", name]
    for argument, value in arguments.items():
        flag = f"--{argument.replace('_', '-')}"
        if isinstance(value, Mapping):
            for key, inner in value.items():
                words += [
                    flag.removesuffix("s") if argument == "engine_options" else flag,
                    f"{key}={write_value(inner)}",
                ]
        elif argument == "gpu":
            words += [flag, value.lower().replace(" ", "-").replace("+", "")]
        elif argument == "overhead" and value:
            words += [flag, f"{value // 10**9}.{value % 10**9:09}GB"]
        else:
            words += [flag, str(value)]
    return shlex.join(words)


def write_call(name: str, arguments: Mapping[str, Any]) -> str:
    """The same in Python.

    >>> write_call("llama-3.1-8b", {"context": 8192, "gpu": "8xH100 SXM"})
    "paramcount.memory('llama-3.1-8b', context=8192, gpu='8xH100 SXM')"
    """
    return f"paramcount.memory({name!r}, {describe_arguments(arguments)})"


def write_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def fold_command(command: str, width: int) -> str:
    r"""A command line on several lines, each of which but the last ends with a backslash.

    >>> print(fold_command("vllm serve model --max-model-len 32768 --max-num-seqs 16", 40))
      vllm serve model \
        --max-model-len 32768 \
        --max-num-seqs 16
    """
    if len(command) + 2 <= width:
        return f"  {command}"
    start, *options = command.split(" -")
    lines = [f"  {start}"]
    for option in options:
        if len(lines[-1]) + len(option) + 4 <= width:
            lines[-1] += f" -{option}"
        else:
            lines.append(f"    -{option}")
    return " \\\n".join(lines)
