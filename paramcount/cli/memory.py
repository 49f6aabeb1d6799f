"""paramcount memory MODEL"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from paramcount.cli.commands import Command
from paramcount.cli.options import (
    FilePath,
    Output,
    add_changes,
    collect_messages,
    download_option,
    emit,
    exit_with_verdict,
    load_model,
    model_argument,
    output_options,
    set_option,
)
from paramcount.cli.quantities import parse_bytes, parse_tokens
from paramcount.errors import ParamcountError, describe_value
from paramcount.output.files import write_atomically

DEFAULT_OVERHEAD = "1GB"

if TYPE_CHECKING:
    from paramcount.costs.devices import Device
    from paramcount.costs.sharding import Parallelism


@click.command("memory", cls=Command, epilog="Example: paramcount memory llama-3.1-8b --dtype fp8 --context 128k")
@model_argument
@click.option(
    "--dtype",
    "dtypes",
    metavar="[COMPONENT=]DTYPE",
    multiple=True,
    help="Store the weights as DTYPE (default: as released, or bf16); COMPONENT=DTYPE changes one component.",
)
@click.option("--context", metavar="N", help="Tokens per sequence; 8k means 8,192.")
@click.option("--batch", type=int, default=1, metavar="N", help="Number of sequences (default: 1).")
@click.option(
    "--kv-dtype",
    default="bf16",
    metavar="DTYPE",
    help="Store the KV cache as DTYPE (default: bf16); q8_0,f16 means keys in Q8_0 and values in F16.",
)
@click.option(
    "--state-dtype", metavar="DTYPE", help="Store recurrent states as DTYPE (default: bf16, or as the engine does)."
)
@click.option("--engine", default="minimal", metavar="NAME", help="Allocate as this engine does (default: minimal).")
@click.option(
    "--engine-option",
    "engine_options",
    metavar="NAME=VALUE",
    multiple=True,
    help="Change a setting of the engine, such as block_size=32.",
)
@click.option("--source", metavar="N", help="Encoder input length, images included (default: the context).")
@click.option("--gpu", metavar="[Nx]NAME", help="Check whether the model fits N GPUs, such as 8xH100.")
@click.option("--memory", metavar="SIZE", help="Check whether the model fits a device with SIZE of memory: 24GB.")
@click.option(
    "--overhead",
    metavar="SIZE",
    help="Assume that a runtime takes SIZE on each device (default: 1GB).",
)
@click.option(
    "--utilization", type=float, metavar="X", help="Use this share of a device's memory (default: vllm 0.92, others 1)."
)
@click.option(
    "--tp", type=int, metavar="N", help="Tensor parallelism: split every matrix across N GPUs (default: all)."
)
@click.option("--pp", type=int, metavar="N", help="Pipeline parallelism: split the layers into N stages.")
@click.option("--ep", type=int, metavar="N", help="Expert parallelism: split the experts across N GPUs.")
@click.option("--plot", metavar="FILE", type=FilePath(), help="Plot the memory by context to FILE.svg, .png or .pdf.")
@set_option
@download_option
@output_options
def command(
    name: str,
    dtypes: tuple[str, ...],
    context: str | None,
    batch: int,
    kv_dtype: str,
    state_dtype: str | None,
    engine: str,
    engine_options: tuple[str, ...],
    source: str | None,
    gpu: str | None,
    memory: str | None,
    overhead: str | None,
    utilization: float | None,
    tp: int | None,
    pp: int | None,
    ep: int | None,
    plot: str | None,
    changes: tuple[str, ...],
    download: bool,
    output: Output,
) -> None:
    """Show the memory that a model takes at inference: weights by dtype, KV cache and state by context.

    The sizes are exact for what they count. Runtime overhead, such as the CUDA context, is not included, except in the
    check against a device: there it is assumed (--overhead), so that a margin of less than 10% of the memory is too
    close to call. The exit code is then 3; it is 1 if the model does not fit."""
    from paramcount.costs.memory import measure_memory
    from paramcount.costs.render_memory import build_memory_table

    if plot:
        from paramcount.costs.plot import plot_memory
        from paramcount.drawing.figures import check_plot

        check_plot(plot)  # report a wrong extension before anything is computed
    model = load_model(name, changes, download)
    dtype, overrides = split_dtypes(dtypes)
    device, parallel = choose_device(gpu, memory, overhead, utilization, tp, pp, ep)
    result = measure_memory(
        model,
        dtype=dtype,
        overrides=overrides,
        context=None if context is None else parse_tokens(context, where="--context"),
        batch=batch,
        kv_dtype=kv_dtype,
        state_dtype=state_dtype,
        engine=engine,
        engine_options=parse_options(engine_options),
        source=None if source is None else parse_tokens(source, where="--source"),
        device=device,
        parallel=parallel,
    )
    messages = collect_messages([name], [model], result)
    if plot:
        write_atomically(plot, plot_memory(result, check_plot(plot)), "--plot")
    emit(lambda format: add_changes(build_memory_table(result), model), output, messages)
    exit_with_verdict(result.fit)


def split_dtypes(dtypes: tuple[str, ...]) -> tuple[str | None, dict[str, str]]:
    """The dtype of all weights, and those of single components."""
    whole, overrides = [text for text in dtypes if "=" not in text], {}
    if len(whole) > 1:
        raise ParamcountError(f"{whole[0]} and {whole[1]}", where="--dtype", expected="one dtype, or COMPONENT=DTYPE")
    for text in dtypes:
        component, sign, dtype = text.partition("=")
        if sign:
            overrides[component] = dtype
    return whole[0] if whole else None, overrides


def parse_options(texts: tuple[str, ...]) -> dict[str, object]:
    """The values of --engine-option: numbers, true and false, and words."""
    options: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise ParamcountError(describe_value(text), where="--engine-option", expected="NAME=VALUE")
        words = {"true": True, "false": False}
        options[name] = words.get(value.lower(), int(value) if value.isdecimal() and len(value) < 12 else value)
    return options


def choose_device(
    gpu: str | None,
    memory: str | None,
    overhead: str | None,
    utilization: float | None,
    tp: int | None,
    pp: int | None,
    ep: int | None,
) -> tuple[Device | None, Parallelism | None]:
    """The device that --gpu or --memory names, and how the model is divided among several."""
    from paramcount.costs.devices import make_device
    from paramcount.costs.fit import make_parallelism
    from paramcount.costs.gpus import parse_devices

    if gpu is None and memory is None:
        options: dict[str, object] = {
            "--overhead": overhead,
            "--utilization": utilization,
            "--tp": tp,
            "--pp": pp,
            "--ep": ep,
        }
        for option, value in options.items():
            if value is not None:
                raise ParamcountError(f"{option} requires --gpu or --memory")
        return None, None
    number, size = parse_devices(memory, where="--memory") if memory else (1, "")
    assumed = 0 if overhead == "0" else parse_bytes(overhead or DEFAULT_OVERHEAD, where="--overhead")
    parsed = parse_bytes(size, where="--memory") if size else None
    number_of_gpus, device = make_device(gpu, parsed, assumed, utilization)
    return device, make_parallelism(max(number, number_of_gpus), tp, pp, ep)
