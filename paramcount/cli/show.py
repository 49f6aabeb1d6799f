"""paramcount show MODEL"""

from __future__ import annotations

import sys

from paramcount.cli.checkpoints import is_checkpoint_path, read_checkpoint
from paramcount.cli.options import MODEL, Choice, CommandRequest, Messages, define_command, option
from paramcount.errors import ParamcountError
from paramcount.output.tables import Table
from paramcount.views.model import build_estimates_table, build_model_table
from paramcount.zoo import count_model


@define_command("show", "gpt2-small", MODEL)
@option("--estimates", "Show third-party estimates for a model whose sizes are unpublished.")
@option("--by", "Show one row per layer, part or tensor.", type=Choice(["layer", "part", "tensor"]))
@option("--keys", "Show where each size and setting comes from: key, default or derivation.")
@option(
    "--expect [COUNT=]NUMBER",
    "Check the total, or another COUNT, against NUMBER, such as 4B or active=37B; repeatable.",
    dest="expected",
    multiple=True,
)
def command(request: CommandRequest, estimates: bool, by: str | None, keys: bool, expected: tuple[str, ...]) -> None:
    """Show one model: total, components and arithmetic.

    MODEL is a name, a Hugging Face id, or the path of a config.json, its directory or a YAML file; - reads standard
    input. For an adapter_config.json, show its base and what the adapter adds. For a checkpoint (.safetensors, .gguf,
    an index, a directory of shards or a saved header), show what it contains, by component.

    With --expect, say in one line whether a count matches: exactly, or rounded or truncated if NUMBER is short. The
    exit code is 1 if one does not."""
    if by and keys:
        raise ParamcountError("--by cannot be combined with --keys")
    if expected and (by or keys):
        raise ParamcountError(f"--expect cannot be combined with {'--by' if by else '--keys'}")
    if is_checkpoint_path(str(request.names)):
        unsupported = {
            "--keys": keys,
            f"--by {by}": by not in (None, "tensor"),
            "--set": bool(request.changes),
            "--estimates": estimates,
            "--expect": bool(expected),
        }
        for option, is_given in unsupported.items():
            if is_given:
                problem = f"{option} cannot be combined with a checkpoint"
                raise ParamcountError(problem, expected="a model or a config.json")
        show_checkpoint(request, by)
        return
    model = request.load()
    if model.estimate and estimates:
        request.emit(build_estimates_table(model), request.collect_messages([model]))
        return
    count = count_model(model)
    if expected:
        from paramcount.cli.expect import build_expectation_table, check_expectation

        expectations = [check_expectation(model, count, text) for text in expected]
        request.emit_model(build_expectation_table(model, expectations), model)
        sys.exit(not all(expectation.ok for expectation in expectations))
    if by or keys:
        from paramcount.views.breakdown import BREAKDOWNS, build_key_table

        above = [f"{model.name}   {count.total:,} parameters"]
        result = build_key_table(model) if by is None else BREAKDOWNS[by](count)._replace(above=above)
    else:
        from paramcount.costs.summary import summarize_resources

        result = build_model_table(model, count, has_data=request.table_format == "json")
        result = result._replace(below=[*result.below, summarize_resources(model, count)])
        if model.adapter is not None:
            from paramcount.costs.adapters.saved import describe_saved_adapter

            line, data = describe_saved_adapter(model)
            result = result._replace(below=[*result.below, line], data=result.data | data)
    request.emit_model(result, model)


def show_checkpoint(request: CommandRequest, by: str | None) -> None:
    """Show what a checkpoint contains, by component or by tensor."""
    from paramcount.checkpoints import render_contents
    from paramcount.checkpoints.contents import summarize_checkpoint

    contents = summarize_checkpoint(read_checkpoint(str(request.names)))

    def make_table(format: str) -> Table:
        if by is None:
            return render_contents.build_table(contents)
        return render_contents.build_tensor_table(contents, full=format in ("csv", "json"))

    request.emit(make_table, Messages(notes=contents.notes))
