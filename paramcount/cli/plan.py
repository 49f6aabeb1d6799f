"""paramcount plan MODEL"""

from __future__ import annotations

from typing import Any

import click

from paramcount.cli.memory import ENGINE_OPTION, parse_options
from paramcount.cli.options import (
    MODEL,
    CommandRequest,
    add_changes,
    define_command,
    exit_with_verdict,
    number_option,
)
from paramcount.cli.quantities import OVERHEAD, TOKENS


@define_command("plan", "llama-3.1-70b --users 16 --gpu h100,h200", MODEL)
@number_option("--users", default=1, help="Serve N users at once (default: 1).")
@click.option(
    "--context",
    type=TOKENS,
    metavar="N",
    help="Tokens per user; 8k means 8,192 (default: 8k, or the model's limit).",
)
@click.option(
    "--gpu", "gpus", metavar="A,B,…", help="Compare these GPUs (default: all); 8xH100 means at most 8 of them."
)
@click.option(
    "--dtype", "dtypes", metavar="A,B,…", help="Compare weights stored as these dtypes (default: as released, or bf16)."
)
@click.option("--kv-dtype", metavar="DTYPE", help="Store the KV cache as DTYPE (default: bf16; llama.cpp f16).")
@click.option("--state-dtype", metavar="DTYPE", help="Store recurrent states as DTYPE (default: as the engine does).")
@click.option(
    "--engine", metavar="NAME", help="Serve with this engine (default: vllm; for Apple GPUs and GGUF dtypes llama.cpp)."
)
@ENGINE_OPTION
@click.option("--source", type=TOKENS, metavar="N", help="Encoder input length (default: the context).")
@click.option("--draft", metavar="MODEL", help="Add a model that drafts tokens, with its own cache.")
@click.option("--draft-dtype", metavar="DTYPE", help="Store its weights as DTYPE (default: as released, or bf16).")
@click.option(
    "--overhead",
    type=OVERHEAD,
    metavar="SIZE",
    help="Take SIZE for a runtime on each GPU (default: as the engine does).",
)
@click.option("--utilization", type=float, metavar="X", help="Use this share of a GPU's memory.")
@number_option("--limit", default=10, help="Show at most N deployments without --gpu (default: 10).")
def command(
    request: CommandRequest,
    gpus: str | None,
    dtypes: str | None,
    engine_options: tuple[str, ...],
    limit: int,
    **need: Any,
) -> None:
    """Find GPUs that serve a number of users: how many, how the model is divided, and how fast at most.

    The fewest GPUs on which it fits for certain come first, then those with the least memory in all. Machines have 1,
    2, 4 or 8 GPUs; several machines are pipeline stages. If nothing fits, the changes that make it fit follow. The exit
    code is then 1, or 3 if the best deployment is too close to call."""
    from paramcount.costs.plan.plan import make_plan
    from paramcount.costs.plan.records import Need
    from paramcount.costs.plan.render import build_plan_table
    from paramcount.loading import load

    model = request.load()
    need["engine_options"] = parse_options(engine_options)
    if need["draft"] is not None:
        need["draft"] = load(need["draft"], download=request.download)
    plan = make_plan(model, Need(**need), gpus=gpus, dtypes=dtypes, limit=limit)
    messages = request.collect_messages([model], plan)
    request.emit(add_changes(build_plan_table(plan), model), messages)
    exit_with_verdict(plan.verdict)
