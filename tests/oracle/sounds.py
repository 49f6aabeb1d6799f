"""Models that read a sound and no text: what the reference is given in the place of tokens.

`listen` puts it into the functions that give every other model its tokens. They are not changed themselves, because
the proofs of all model types depend on their source.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import wraps
from types import SimpleNamespace
from typing import Any

FRAMES = 60  # that the layers of a model get, more than the kernels of the small configs reach
SAMPLES, MELS = "samples", "log-mel frames"
# {model type: what its encoder reads}
READS = {
    "data2vec-audio": SAMPLES, "hubert": SAMPLES, "sew": SAMPLES, "unispeech": SAMPLES, "unispeech-sat": SAMPLES,
    "wav2vec2": SAMPLES, "wavlm": SAMPLES,
}  # fmt: skip


def reads_sound(model: Any) -> bool:
    return model.config.model_type in READS


def count_samples(config: Any, n: int) -> int:
    """How many samples become n frames."""
    for width, stride in reversed([*zip(config.conv_kernel, config.conv_stride)]):
        n = (n - 1) * stride + width
    return n


def make_sound(model: Any, n: int = FRAMES) -> dict[str, Any]:
    """Random samples that become n frames."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(3)
        return {model.main_input_name: torch.randn(1, count_samples(model.config, n))}


def find_no_table() -> Any:
    """In the place of a token embedding: a kernel, as that of a vision encoder."""
    import torch

    return SimpleNamespace(weight=torch.empty(1, 1, 1))


def run_sound(model: Any, dead: Collection[str]) -> Exception | None:
    """What goes wrong if the reference runs a sound through a model; None if nothing does."""
    import torch

    try:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.normal_(0, 0.1)
                if name.removeprefix(f"{model.base_model_prefix}.") in dead:
                    parameter.fill_(torch.nan)
            out = model.eval()(**make_sound(model))
        read = [value for value in out.values() if isinstance(value, torch.Tensor) and value.is_floating_point()]
        assert read, "nothing comes out"
        assert not dead or all(value.isfinite().all() for value in read), f"{', '.join(dead)} is read"
    except Exception as error:
        return error
    return None


def with_sounds(find_table: Any, module: dict[str, Any]) -> Any:
    @wraps(find_table)
    def find(model: Any) -> Any:
        return find_no_table() if reads_sound(model) else find_table(model)

    return find


def run_with_sounds(run_tokens: Any, module: dict[str, Any]) -> Any:
    @wraps(run_tokens)
    def run(document: dict[str, Any], cls_name: str, dead: Collection[str] = (), **options: Any) -> Exception | None:
        if document["model_type"] not in READS:
            found: Exception | None = run_tokens(document, cls_name, dead, **options)
            return found
        try:
            model = module["build_model"](document, cls_name, "cpu")
        except Exception as error:
            return error
        return run_sound(model, dead)

    return run


def make_documents(make_document: Any, module: dict[str, Any]) -> Any:
    """Of a type without a config of its own, the first one that is counted: no text can be tried with it."""

    @wraps(make_document)
    def make(name: str) -> dict[str, Any]:
        if name not in READS:
            found: dict[str, Any] = make_document(name)
            return found
        known = [case["config"] for case in module["cases"].load_cases()[name] if "refused" not in case]
        return {"architectures": [module["MODEL_TYPES"][name].cls], **known[0]}

    return make


def expect_of_sounds(expect_logits: Any, module: dict[str, Any]) -> Any:
    @wraps(expect_logits)
    def expect(model: Any, document: dict[str, Any], cls_name: str, sizes: Any) -> Any:
        if document["model_type"] not in READS:
            return expect_logits(model, document, cls_name, sizes)
        return module["Expected"]([0] * FRAMES, *hear(model, make_sound(model)), None)

    return expect


def hear(model: Any, given: dict[str, Any], **options: Any) -> tuple[dict[str, Any], Any]:
    """(inputs of the flow, the reference's output) of a sound."""
    import torch

    with torch.no_grad():
        output = model(**given, **options)
    found = output["logits" if "logits" in output else "last_hidden_state"][0].float().numpy()
    (sound,) = given.values()
    inputs = {"samples": sound[0][:, None].numpy()}
    if hasattr(model.base_model, "masked_spec_embed"):
        masked = options.get("mask_time_indices", torch.zeros(1, FRAMES, dtype=torch.bool))
        inputs["masked_frames"] = masked[0].long().numpy()
    return inputs, found


REPLACED = {
    "find_table": with_sounds,
    "run_tokens": run_with_sounds,
    "make_document": make_documents,
    "expect_logits": expect_of_sounds,
}


def listen(module: dict[str, Any], *names: str) -> None:
    """Replace functions of a module that need a text by ones that know of sounds, too."""
    for name in names:
        module[name] = REPLACED[name](module[name], module)
