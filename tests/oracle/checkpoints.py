"""Tiny models of many architectures as the reference implementation saves them: in one file or several, with experts
one by one or together, with or without their head, and quantised.

`python -m tests.oracle.checkpoints` freezes the headers of some, each with its config.json, into tests/data/headers.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.headers import HEADERS, Tensors, make_header, parse_header
from tests.model_types import MODEL_TYPES, load_configs
from tests.oracle import differential, passes

BLOCK = 16  # outputs and inputs of an FP8 matrix that share a scale
GROUP = 16  # inputs of a GPTQ or AWQ matrix that do
# Besides those of tests.oracle.passes
CONFIGS = load_configs("checkpoint_configs")


@cache
def make_document(name: str) -> dict[str, Any]:
    """A config.json: one of CONFIGS, or as tests.oracle.passes has it."""
    if name not in CONFIGS:
        return passes.make_document(name)
    model_type = name.partition(",")[0]
    return {"model_type": model_type, "architectures": [MODEL_TYPES[model_type].cls], **CONFIGS[name]}


def build_model(name: str) -> Any:
    """The reference's model."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(1)
        return differential.build_model(
            make_document(name),
            make_document(name).get("architectures", [MODEL_TYPES[name.partition(",")[0]].cls])[0],
            "cpu",
        )


def write_model(model: Any, folder: Path, **how: Any) -> Path:
    """The folder, with the model in it as the reference saves it."""
    model.save_pretrained(folder, **how)
    return folder


def read_tensors(folder: Path) -> Tensors:
    """What the files of a folder hold, by their headers alone."""
    found: Tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        data = path.read_bytes()
        found |= parse_header(json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]))
    return found


def read_config(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return found


# ---- quantised


def save_fp8(name: str, folder: Path, *, together: bool = False, scales: str = "weight_scale_inv") -> Path:
    """With the reference's own FP8 modules, saved by the conversions that it would have loaded them by.

    `together`: without these, so that experts stay in one tensor. `scales`: what they are called; the reference itself
    saves them as qscale_weight, the last of the names that it reads.
    """
    import torch
    from transformers import FineGrainedFP8Config
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import WeightRenaming
    from transformers.integrations.finegrained_fp8 import replace_with_fp8_linear
    from transformers.quantizers.quantizer_finegrained_fp8 import FineGrainedFP8HfQuantizer

    config = FineGrainedFP8Config(weight_block_size=(BLOCK, BLOCK))
    model = build_model(name).to(torch.bfloat16)
    replace_with_fp8_linear(model, ["lm_head"], config)
    for place, weight in list(model.named_parameters()):
        if weight.is_meta:
            module, _, own = place.rpartition(".")
            setattr(
                model.get_submodule(module),
                own,
                torch.nn.Parameter(torch.zeros(weight.shape, dtype=weight.dtype), requires_grad=False),
            )
    model.hf_quantizer, model.config.quantization_config = FineGrainedFP8HfQuantizer(config), config
    conversions = get_model_conversion_mapping(model, hf_quantizer=model.hf_quantizer, add_legacy=False)
    renamed = [
        each
        for each in conversions
        if isinstance(each, WeightRenaming) and any("scale" in name for name in each.source_patterns)
    ]
    model._weight_conversions = [each for each in conversions if scales == "qscale_weight" or each not in renamed]
    return write_model(model, folder, save_original_format=not together)


def save_packed(
    name: str,
    folder: Path,
    pack: Callable[[str, Any], dict[str, Any]],
    said: Mapping[str, Any],
    transposed: bool = False,
) -> Path:
    """With every matrix of the layers packed into words, as GPTQ and AWQ leave them.

    `transposed`: matrices stand [inputs, outputs].
    """
    from safetensors.torch import load_file, save_file

    write_model(build_model(name).half(), folder)
    found: dict[str, Any] = {}
    for key, weight in load_file(folder / "model.safetensors").items():
        if weight.dim() == 2 and (key.endswith("_proj.weight") or (transposed and ".c_" in key)):
            found |= pack(key.removesuffix("weight"), weight.t() if transposed else weight)
        else:
            found[key] = weight
    save_file(found, folder / "model.safetensors", {"format": "pt"})
    config = read_config(folder) | {"quantization_config": dict(said)}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def pack_gptq(module: str, weight: Any) -> dict[str, Any]:
    """A matrix [outputs, inputs] in 4 bits: eight inputs in a word, the group of each input beside.

    Source: QuantLinear of AutoGPTQ and GPTQModel.
    """
    import torch

    outputs, inputs = weight.shape
    return {
        f"{module}qweight": torch.zeros((inputs // 32 * 4, outputs), dtype=torch.int32),
        f"{module}qzeros": torch.zeros((inputs // GROUP, outputs // 32 * 4), dtype=torch.int32),
        f"{module}scales": torch.zeros((inputs // GROUP, outputs), dtype=torch.float16),
        f"{module}g_idx": torch.tensor([i // GROUP for i in range(inputs)], dtype=torch.int32),
    }


def pack_awq(module: str, weight: Any) -> dict[str, Any]:
    """A matrix [outputs, inputs] in 4 bits: eight outputs in a word. Source: WQLinear_GEMM of AutoAWQ."""
    import torch

    outputs, inputs = weight.shape
    return {
        f"{module}qweight": torch.zeros((inputs, outputs // 8), dtype=torch.int32),
        f"{module}qzeros": torch.zeros((inputs // GROUP, outputs // 8), dtype=torch.int32),
        f"{module}scales": torch.zeros((inputs // GROUP, outputs), dtype=torch.float16),
    }


GPTQ_SAID = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": True}
AWQ_SAID = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}


def save_mxfp4(folder: Path) -> Path:
    """gpt-oss with its experts in blocks of 32 inputs.

    Source: github openai/gpt-oss, gpt_oss/torch/weights.py, and the reference's convert_moe_packed_tensors, which takes
    [experts, outputs, blocks, 16 bytes] and gives [experts, inputs, outputs].
    """
    import torch
    from safetensors.torch import load_file, save_file

    write_model(build_model("gpt_oss, round").to(torch.bfloat16), folder)
    found: dict[str, Any] = {}
    for key, weight in load_file(folder / "model.safetensors").items():
        if key.endswith(("experts.gate_up_proj", "experts.down_proj")):
            n, inputs, outputs = weight.shape
            found[f"{key}_blocks"] = torch.zeros((n, outputs, inputs // 32, 16), dtype=torch.uint8)
            found[f"{key}_scales"] = torch.zeros((n, outputs, inputs // 32), dtype=torch.uint8)
        else:
            found[key] = weight
    save_file(found, folder / "model.safetensors", {"format": "pt"})
    config = read_config(folder) | {
        "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.embed_tokens", "lm_head"]}
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


QUANTISED: dict[str, Callable[[Path], Path]] = {
    "llama, FP8": lambda folder: save_fp8("llama, round", folder),
    "deepseek_v3, FP8": lambda folder: save_fp8("deepseek_v3, round", folder),
    "deepseek_v3, FP8 resaved": lambda folder: save_fp8("deepseek_v3, round", folder, scales="qscale_weight"),
    "qwen3_moe, FP8": lambda folder: save_fp8("qwen3_moe, round", folder),
    "qwen3_moe, FP8 together": lambda folder: save_fp8("qwen3_moe, round", folder, together=True),
    "llama, GPTQ": lambda folder: save_packed("llama, round", folder, pack_gptq, GPTQ_SAID),
    "deepseek_v3, GPTQ": lambda folder: save_packed("deepseek_v3, round", folder, pack_gptq, GPTQ_SAID),
    "gpt2, GPTQ": lambda folder: save_packed("gpt2, round", folder, pack_gptq, GPTQ_SAID, transposed=True),
    "llama, AWQ": lambda folder: save_packed("llama, round", folder, pack_awq, AWQ_SAID),
    "qwen3_moe, AWQ": lambda folder: save_packed("qwen3_moe, round", folder, pack_awq, AWQ_SAID),
    "gpt_oss, MXFP4": save_mxfp4,
}


# ---- frozen


def save_plain(name: str) -> Callable[[Path], Path]:
    return lambda folder: write_model(build_model(name), folder)


def save_fused(name: str) -> Callable[[Path], Path]:
    return lambda folder: write_model(build_model(name), folder, save_original_format=False)


PLAIN = (
    "gpt2", "llama, tied", "llama, biases", "qwen2", "qwen3", "qwen2_moe", "deepseek_v2", "deepseek_v3", "mistral",
    "mixtral", "gpt_oss", "t5",
    "gemma2", "gemma3_text", "mamba", "mamba2", "jamba", "falcon", "gpt_neox", "phi", "phi3", "bert", "glm4_moe",
    "cohere2", "llava", "qwen2_5_vl", "mllama",
)  # fmt: skip
FROZEN: dict[str, Callable[[Path], Path]] = {
    **{name: save_plain(name) for name in PLAIN},
    "mixtral, together": save_fused("mixtral"),
    "qwen3_moe, together": save_fused("qwen3_moe, sparse"),
    "gpt_neox, new names": save_fused("gpt_neox"),
    **{
        name: QUANTISED[name]
        for name in (
            "deepseek_v3, FP8",
            "qwen3_moe, FP8 together",
            "llama, GPTQ",
            "gpt2, GPTQ",
            "llama, AWQ",
            "gpt_oss, MXFP4",
        )
    },
}


def header_path(name: str) -> Path:
    """Where the header of a model is frozen."""
    return HEADERS / f"{name.replace(', ', '-').replace(' ', '_')}.json"


def freeze_header(name: str) -> dict[str, Any]:
    """The header of a model as the reference writes it, with its config.json."""
    with tempfile.TemporaryDirectory() as folder:
        where = FROZEN[name](Path(folder))
        source = f"transformers 5.23.0, {read_config(where)['architectures'][0]}.save_pretrained"
        if name in QUANTISED and "FP8" not in name:
            source += f", its matrices packed by hand as {name.partition(', ')[2]} lays them out"
        return {"source": source, "config": read_config(where), "header": make_header(read_tensors(where))}


def freeze() -> None:
    differential.silence()
    for name in FROZEN:
        found = freeze_header(name)
        tensors = ",\n".join(f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in found["header"].items())
        parts = [
            f'"source": {json.dumps(found["source"])}',
            f'"config": {json.dumps(found["config"])}',
            f'"header": {{\n{tensors}\n}}',
        ]
        header_path(name).write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
        print(name, len(found["header"]))


if __name__ == "__main__":
    freeze()
