"""GGUF files in tests, written by the gguf package: small models as llama.cpp's converter lays them out, today and in
older versions.

`LAYOUTS` holds what the converter wrote (tests/gguf_layouts.py) and what older ones wrote, by hand from their code.
`write` makes a file of one:

    write(tmp_path / "m.gguf", LAYOUTS["mixtral-llama"], types="Q8_0")
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gguf
import numpy as np

from tests.gguf_layouts import load_entries
from tests.headers import Shapes, read_shapes


class Layout(NamedTuple):
    """A model as a GGUF file holds it."""

    config: dict[str, Any]
    architecture: str  # general.architecture
    tensors: Shapes  # outermost axis first


def split_experts(tensors: Shapes) -> Shapes:
    """Experts as files before April 2024 have them: blk.0.ffn_gate.3.weight."""
    found: Shapes = {}
    for name, shape in tensors.items():
        if "_exps" in name:
            found |= {name.replace("_exps", f".{i}"): shape[1:] for i in range(shape[0])}
        else:
            found[name] = shape
    return found


def join_latent(tensors: Shapes) -> Shapes:
    """The up-projection of latent attention as files before April 2025 have it: heads × (keys, then values) over the
    latent.
    """
    found: Shapes = {}
    for name, shape in tensors.items():
        if name.endswith("attn_k_b.weight"):
            n_heads, d_latent, d_nope = shape
            d_v = tensors[name.replace("k_b", "v_b")][1]
            found[name.replace("k_b", "kv_b")] = (n_heads * (d_nope + d_v), d_latent)
        elif not name.endswith("attn_v_b.weight"):
            found[name] = shape
    return found


def join_linear_attention(tensors: Shapes) -> Shapes:
    """Qwen 3 Next as the first files have it: queries, keys, values and gate of linear attention in one ssm_in."""
    found = dict(tensors)
    for name in tensors:
        if name.endswith("attn_gate.weight"):
            rows, width = found.pop(name)
            more, _ = found.pop(name.replace("gate", "qkv"))
            found[name.replace("attn_gate", "ssm_in")] = (rows + more, width)
    return found


def join_qkv(tensors: Shapes) -> Shapes:
    """Queries, keys and values in one, with their biases: Phi-2 as it was published first."""
    found: Shapes = {}
    for name, shape in tensors.items():
        if re.search(r"attn_[qkv]\.", name):
            whole = re.sub(r"attn_[qkv]\.", "attn_qkv.", name)
            found[whole] = (found.get(whole, (0,))[0] + shape[0], *shape[1:])
        else:
            found[name] = shape
    return found


def drop_unit_axes(tensors: Shapes) -> Shapes:
    """As llama-quantize writes them: without outermost axes of 1."""
    found: Shapes = {}
    for name, shape in tensors.items():
        while len(shape) > 1 and shape[0] == 1:
            shape = shape[1:]
        found[name] = shape
    return found


# Rows of 256, so that k-quants have whole blocks. By hand: q and k are permuted, which changes no shape.
WIDE = Layout(
    {
        "model_type": "llama", "vocab_size": 64, "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 512, "tie_word_embeddings": True,
    },
    "llama",
    read_shapes("token_embd.weight 64 256, output_norm.weight 256, rope_freqs.weight 32")
    | {
        f"blk.{i}.{name}.weight": shape
        for i in range(2)
        for name, shape in read_shapes(
            "attn_norm 256, attn_q 256 256, attn_k 128 256, attn_v 128 256, attn_output 256 256, ffn_norm 256, "
            "ffn_gate 512 256, ffn_up 512 256, ffn_down 256 512"
        ).items()
    },
)  # fmt: skip
TINY = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 48,
}  # fmt: skip
TINY_FILE = read_shapes(
    "token_embd.weight 96 32, output_norm.weight 32, output.weight 96 32, blk.0.attn_norm.weight 32, "
    "blk.0.attn_q.weight 32 32, blk.0.attn_output.weight 32 32, "
    "blk.0.ffn_gate.weight 48 32, blk.0.ffn_up.weight 48 32, blk.0.ffn_down.weight 32 48"
)
# Baichuan: W_pack [3 · 32, 32] is cut into three (BaichuanModel.modify_tensors). The converter of today runs into its
# own recursion there.
BAICHUAN = Layout(
    {"model_type": "baichuan", **TINY},
    "baichuan",
    TINY_FILE | read_shapes("blk.0.ffn_norm.weight 32, blk.0.attn_k.weight 32 32, blk.0.attn_v.weight 32 32"),
)
# StableLM 2 12B: norms of each head, one under the other (StableLMModel._stack_qk_norm, whose result the converter of
# today drops).
STABLELM = Layout(
    {
        "model_type": "stablelm", **TINY, "num_key_value_heads": 2, "qk_layernorm": True,
        "use_parallel_residual": True,
    },
    "stablelm",
    TINY_FILE
    | read_shapes(
        "output_norm.bias 32, blk.0.attn_norm.bias 32, blk.0.attn_q_norm.weight 4 8, blk.0.attn_k_norm.weight 2 8, "
        "blk.0.attn_k.weight 16 32, blk.0.attn_v.weight 16 32"
    ),
)  # fmt: skip


def list_layouts() -> dict[str, Layout]:
    found: dict[str, Layout] = {}
    for entry in load_entries():
        name = next(name for i in range(9) if (name := f"{entry.id}{f'-{i}' if i else ''}") not in found)
        found[name] = Layout(entry.config, entry.architecture, entry.tensors)
    older = {
        "mixtral, experts one by one": ("mixtral-llama", split_experts),
        "olmoe, experts one by one": ("olmoe-olmoe", split_experts),
        "deepseek-v2-lite, latent whole": ("deepseek_v2-deepseek2", join_latent),
        "deepseek-v3, latent whole": ("deepseek_v3-deepseek2", join_latent),
        "qwen3-next, linear attention whole": ("qwen3_next-qwen3next-no_mtp", join_linear_attention),
        "phi-2, qkv whole": ("phi-phi2", join_qkv),
        "qwen2-moe, quantised": ("qwen2_moe-qwen2moe", drop_unit_axes),
        "mamba2, quantised": ("mamba2-mamba2", drop_unit_axes),
        "kimi-linear, quantised": ("kimi_linear-kimi-linear", drop_unit_axes),
    }
    for name, (source, change) in older.items():
        found[name] = found[source]._replace(tensors=change(found[source].tensors))
    return found | {"llama, wide": WIDE, "baichuan": BAICHUAN, "stablelm, norms of heads": STABLELM}


LAYOUTS = list_layouts()
# One of each way to lay out a model.
VARIED = (
    "llama-llama", "mixtral-llama", "mixtral, experts one by one", "qwen2-qwen2", "qwen3_moe-qwen3moe",
    "deepseek_v2-deepseek2", "glm4_moe-glm4moe",
    "deepseek-v3, latent whole", "gemma2-gemma2", "gemma3_text-gemma3", "gemma3n_text-gemma3n", "phi-phi2",
    "phi3-phi3", "gpt2-gpt2", "gpt_oss-gpt-oss",
    "llama4_text-llama4", "qwen3_next-qwen3next-no_mtp", "mamba-mamba", "mamba2-mamba2", "jamba-jamba", "t5-t5",
    "bert-bert", "granitemoe-granitemoe",
    "internlm2-internlm2", "bloom-bloom", "llama-llama-fuse_qkv", "qwen3_next-qwen3next-no_mtp-fuse_gate_up_exps",
    "stablelm, norms of heads",
)  # fmt: skip
ROBERTA = ("roberta", "xlm-roberta", "camembert")  # whose position embedding has two padding rows, which are dropped


def write_gguf(
    path: Path,
    layout: Layout,
    *,
    types: str | Mapping[str, str] = "F32",
    copies: Mapping[str, str] | None = None,
    metadata: Mapping[str, str | int | float] | None = None,
    per_file: int = 0,
) -> Path:
    """A GGUF file, or with `per_file` the first of several, of random values.

    `types`: of all matrices, or by name; what is no matrix, and what has no whole blocks, stays F32. `copies`: {name:
    whose values it has}.
    """
    writer = gguf.GGUFWriter(path, layout.architecture, split_max_tensors=per_file)
    for key, value in (metadata or {}).items():
        if isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        else:
            writer.add_float32(key, value)
    for name, shape in layout.tensors.items():
        kind = gguf.GGMLQuantizationType[types if isinstance(types, str) else types.get(name, "F32")]
        block, size = gguf.GGML_QUANT_SIZES[kind]
        if len(shape) < 2 or name.endswith("_norm.weight") or shape[-1] % block:
            kind, block, size = gguf.GGMLQuantizationType.F32, 1, 4
        random = np.random.default_rng(zlib.crc32((copies or {}).get(name, name).encode()))
        values = random.integers(0, 120, (*shape[:-1], shape[-1] // block * size), dtype=np.uint8)
        if kind.name in ("F32", "F16"):
            writer.add_tensor(name, values.view(np.float32 if kind.name == "F32" else np.float16))
        else:
            writer.add_tensor(name, values, raw_dtype=kind)
    finish_file(writer)
    return path if not per_file else next(iter(sorted(path.parent.glob(f"{path.stem}-00001-of-*.gguf"))))


def finish_file(writer: gguf.GGUFWriter) -> None:
    """Write the file of all that was added."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
