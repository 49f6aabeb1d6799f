"""paramcount memory MODEL"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paramcount.cli.options import MODEL, CommandRequest, add_changes, define_command, exit_with_verdict, option
from paramcount.cli.quantities import BYTES, OVERHEAD, TOKENS
from paramcount.errors import ParamcountError, describe_value
from paramcount.output.files import write_atomically
from paramcount.symbolic.quantities import parse_quantity

if TYPE_CHECKING:
    from paramcount.costs.devices import Device
    from paramcount.costs.sharding import Parallelism

DEVICE_OPTIONS = ("overhead", "utilization", "ram", "tp", "pp", "ep")  # which only a device has
engine_option = option(
    "--engine-option NAME=VALUE",
    "Change a setting of the engine, such as block_size=32.",
    dest="engine_options",
    multiple=True,
)


@define_command("memory", "llama-3.1-8b --dtype fp8 --context 128k", MODEL)
@option(
    "--dtype [NAME=]DTYPE",
    "Store the weights as DTYPE (default: as released, or bf16); NAME=DTYPE: those of a component or layers.",
    dest="dtypes",
    multiple=True,
)
@option("--context N", "Tokens per sequence; 8k means 8,192.", type=TOKENS)
@option("--batch N", "Number of sequences (default: 1).", default=1)
@option(
    "--kv-dtype DTYPE",
    "Store the KV cache as DTYPE (default: bf16); q8_0,f16 means keys in Q8_0 and values in F16.",
    default="bf16",
)
@option("--state-dtype DTYPE", "Store recurrent states as DTYPE (default: bf16, or as the engine does).")
@option("--engine NAME", "Allocate as this engine does (default: minimal).", default="minimal")
@engine_option
@option("--source N", "Encoder input length, images included (default: the context).", type=TOKENS)
@option("--draft MODEL", "Add a model that drafts tokens, with its own cache.")
@option("--draft-dtype DTYPE", "Store its weights as DTYPE (default: as released, or bf16).")
@option("--gpu [Nx]NAME", "Check whether the model fits N GPUs, such as 8xH100.")
@option("--memory SIZE", "Check whether the model fits a device with SIZE of memory: 24GB.")
@option("--available-kv SIZE", "Show what a KV cache of SIZE on each device holds, as engines log it.")
@option(
    "--overhead SIZE", "Take SIZE for a runtime on each device (default: as the engine does, or 1GB).", type=OVERHEAD
)
@option("--utilization X", "Use this share of a device's memory (default: vllm 0.92, others 1).", type=float)
@option("--ram SIZE", "Limit what an engine keeps in the CPU's memory to SIZE (default: no limit).")
@option("--tp N", "Tensor parallelism: split every matrix across N GPUs (default: all).")
@option("--pp N", "Pipeline parallelism: split the layers into N stages.")
@option("--ep N", "Expert parallelism: split the experts across N GPUs.")
@option("--plot FILE", "Plot the memory by context to FILE.svg, .png or .pdf.")
def command(
    request: CommandRequest, dtypes: tuple[str, ...], engine_options: tuple[str, ...], plot: str | None, **options: Any
) -> None:
    """Show the memory that a model takes at inference: weights by dtype, KV cache and state by context.

    The sizes are exact for what they count. Runtime overhead, such as the CUDA context, is not included, except in the
    check against a device: there the engine states it, with a spread, or it is assumed (--overhead). If the answer
    depends on it, it is too close to call. The exit code is then 3; it is 1 if the model does not fit."""
    from paramcount.costs.devices import DOES_NOT_FIT
    from paramcount.costs.memory import measure_memory
    from paramcount.costs.render_memory import build_memory_table
    from paramcount.loading import load

    if plot:
        from paramcount.cli.plot_memory import plot_memory
        from paramcount.drawing.figures import check_plot

        check_plot(plot)  # report a wrong extension before anything is computed
    model = request.load()
    dtype, overrides = split_dtypes(dtypes)
    named = {name: options.pop(name) for name in ("gpu", "memory", *DEVICE_OPTIONS)}
    size = options.pop("available_kv")
    draft = options.pop("draft")
    available = None if size is None else BYTES.parse(size, "--available-kv")
    device, parallel = choose_device(options["engine"], **named, has_cache=available is not None)
    result = measure_memory(
        model,
        dtype=dtype,
        overrides=overrides,
        engine_options=parse_options(engine_options),
        device=device,
        parallel=parallel,
        available_kv=available,
        draft=None if draft is None else load(draft, download=request.download),
        **options,
    )
    messages = request.collect_messages([model], result)
    if plot:
        write_atomically(plot, plot_memory(result, check_plot(plot)), "--plot")
    request.emit(add_changes(build_memory_table(result), model), messages)
    verdict = result.fit.verdict if result.fit else ""
    exit_with_verdict(DOES_NOT_FIT if result.available and not result.available.fits else verdict)


def split_dtypes(dtypes: tuple[str, ...]) -> tuple[str | None, dict[str, str]]:
    """The dtype of all weights, and those of components, layers and modules."""
    whole, overrides = [text for text in dtypes if "=" not in text], {}
    if len(whole) > 1:
        raise ParamcountError(f"{whole[0]} and {whole[1]}", where="--dtype", expected="one dtype, or NAME=DTYPE")
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
        quantity = None if "," in value else parse_quantity(value, name)
        options[name] = parse_option(value) if quantity is None else quantity
    return options


def parse_option(text: str) -> object:
    """A number, true or false; otherwise the word itself.

    >>> parse_option("0.88"), parse_option("-1"), parse_option("true"), parse_option("latent")
    (0.88, -1, True, 'latent')
    """
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    digits, point, decimals = text.removeprefix("-").partition(".")
    if not digits.isdecimal() or len(text) > 12 or (point and not decimals.isdecimal()):
        return text
    return float(text) if point else int(text)


def choose_device(
    engine: str, gpu: str | None, memory: str | None, *, has_cache: bool = False, **options: Any
) -> tuple[Device | None, Parallelism | None]:
    """The device that --gpu or --memory names, and how the model is divided among several, by DEVICE_OPTIONS.

    `has_cache`: the bytes of the cache on each device are given, so that there may be several without a name.
    """
    from paramcount.costs.devices import make_device
    from paramcount.costs.fit import make_parallelism
    from paramcount.costs.gpus import parse_devices

    overhead, utilization, ram, tp, pp, ep = options.values()
    if gpu is None and memory is None:
        for name, value in options.items():
            if value is not None and not (has_cache and name in ("tp", "pp", "ep")):
                raise ParamcountError(f"--{name} requires --gpu or --memory")
        return None, make_parallelism(tp or 1, tp, pp, ep, engine) if has_cache else None
    number, size = parse_devices(memory, where="--memory") if memory else (1, "")
    parsed = BYTES.parse(size, "--memory") if size else None
    number_of_gpus, device = make_device(gpu, parsed, overhead, utilization, BYTES.parse(ram, "--ram") if ram else None)
    return device, make_parallelism(max(number, number_of_gpus), tp, pp, ep, engine)
