"""paramcount plan MODEL"""

from __future__ import annotations

from typing import Any

from paramcount.cli.memory import engine_option, parse_options
from paramcount.cli.options import MODEL, CommandRequest, add_changes, define_command, exit_with_verdict, option
from paramcount.cli.quantities import OVERHEAD, TOKENS


@define_command("plan", "llama-3.1-70b --users 16 --gpu h100,h200", MODEL)
@option("--users N", "Serve N users at once (default: 1).", default=1)
@option("--context N", "Tokens per user; 8k means 8,192 (default: 8k, or the model's limit).", type=TOKENS)
@option("--gpu A,B,…", "Compare these GPUs (default: all); 8xH100 means at most 8 of them.", dest="gpus")
@option("--dtype A,B,…", "Compare weights stored as these dtypes (default: as released, or bf16).", dest="dtypes")
@option("--kv-dtype DTYPE", "Store the KV cache as DTYPE (default: bf16; llama.cpp f16).")
@option("--state-dtype DTYPE", "Store recurrent states as DTYPE (default: as the engine does).")
@option("--engine NAME", "Serve with this engine (default: vllm; for Apple GPUs and GGUF dtypes llama.cpp).")
@engine_option
@option("--source N", "Encoder input length (default: the context).", type=TOKENS)
@option("--draft MODEL", "Add a model that drafts tokens, with its own cache.")
@option("--draft-dtype DTYPE", "Store its weights as DTYPE (default: as released, or bf16).")
@option("--overhead SIZE", "Take SIZE for a runtime on each GPU (default: as the engine does).", type=OVERHEAD)
@option("--utilization X", "Use this share of a GPU's memory.", type=float)
@option("--limit N", "Show at most N deployments without --gpu (default: 10).", default=10)
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
