"""The largest checkpoints, for tests."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np

from tests.gguf_writing import finish_file
from tests.headers import Tensors, write_shards
from tests.released import make_release

TRUTH = Path(__file__).parent / "data" / "truth"
SHARDS = 163  # as the release of DeepSeek-V3 has


def write_deepseek(folder: Path) -> Tensors:
    """DeepSeek-V3 as released, in FP8 with its scales and its MTP layer, as sparse files."""
    facts = [json.loads(path.read_text(encoding="utf-8")) for path in TRUTH.glob("*.json")]
    (config,) = [fact["config"] for fact in facts if fact["zoo_id"] == "deepseek-v3"]
    tensors = make_release(config)
    write_shards(folder, tensors, SHARDS)
    return tensors


LLAMA = {
    "model_type": "llama", "vocab_size": 150_000, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48, "tie_word_embeddings": True,
}  # fmt: skip


def write_llama(folder: Path) -> Path:
    """A small Llama with 150,000 tokens and as many merges, written by the gguf package, with its config.json."""
    (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    n, d, ff = 150_000, 32, 48
    writer = gguf.GGUFWriter(folder / "model.gguf", "llama")
    tokens = [f"▁token{i * 7919 % n}" for i in range(n)]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_scores([-float(i) for i in range(n)])
    writer.add_token_types([1] * n)
    writer.add_token_merges([f"{token[:3]} {token[3:]}" for token in tokens])
    shapes = {"token_embd.weight": (n, d), "output_norm.weight": (d,)}
    for i in range(2):
        shapes |= {f"blk.{i}.attn_norm.weight": (d,), f"blk.{i}.ffn_norm.weight": (d,)}
        shapes |= {
            f"blk.{i}.attn_{x}.weight": (out, d) for x, out in (("q", d), ("k", d // 2), ("v", d // 2), ("output", d))
        }
        shapes |= {
            f"blk.{i}.ffn_gate.weight": (ff, d),
            f"blk.{i}.ffn_up.weight": (ff, d),
            f"blk.{i}.ffn_down.weight": (d, ff),
        }
    for name, shape in shapes.items():
        writer.add_tensor(name, np.zeros(shape, dtype=np.float16))
    finish_file(writer)
    return folder / "model.gguf"
