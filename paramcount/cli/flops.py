"""paramcount flops MODEL"""

from __future__ import annotations

from typing import Any

from paramcount.cli.options import MODEL, CommandRequest, define_command, option
from paramcount.cli.quantities import TOKENS, TRAINING_TOKENS
from paramcount.errors import ParamcountError


@define_command("flops", "gpt-oss-120b --context 8k --gpu H100", MODEL)
@option("--context N", "Tokens per sequence; 8k means 8,192 (default: 8k, or the model's limit).", type=TOKENS)
@option("--source N", "Encoder input length (default: the context).", type=TOKENS)
@option("--train-tokens N", "Show the FLOPs of training on N tokens, such as 15T.", type=TRAINING_TOKENS)
@option("--gpu [Nx]NAME", "Show the minimum time on N GPUs, such as 8xH100.")
@option("--mfu X", "Assume this share of the peak in training (default: 0.4).", type=float)
@option("--batch N", "Decode N sequences at once; requires --gpu (default: 1).")
@option("--dtype DTYPE", "Store the weights as DTYPE; requires --gpu (default: as released).")
@option("--kv-dtype DTYPE", "Store the KV cache as DTYPE; requires --gpu (default: bf16).")
def command(request: CommandRequest, **options: Any) -> None:
    """Show the FLOPs of a forward pass: per decoded token and per prompt, by component.

    For a model that decodes no tokens, such as an encoder, the FLOPs are those of a pass over the whole context.

    Matmuls count 2 FLOPs per multiply-add. The usual estimates, 2N and 6N, are shown next to the counts. With --gpu,
    the minimum times of a decoding step and of a prompt follow from the data sheet."""
    from paramcount.costs.flops import measure_flops
    from paramcount.costs.render_flops import build_flops_table

    if options["mfu"] is not None and (options["gpu"] is None or options["train_tokens"] is None):
        raise ParamcountError("--mfu requires --gpu and --train-tokens")
    for name in ("batch", "dtype", "kv_dtype"):
        if options[name] is not None and options["gpu"] is None:
            raise ParamcountError(f"--{name.replace('_', '-')} requires --gpu")
    model = request.load()
    flops = measure_flops(model, **options)
    request.emit_model(build_flops_table(flops), model, flops)
