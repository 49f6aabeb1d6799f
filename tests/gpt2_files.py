"""Tiny GPT-2s on disk: weights as NumPy arrays in a safetensors file, tokenizers made with the tokenizers library."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from paramcount.architectures.gpt2 import GPT2
from paramcount.gpt2.forward_pass import Array

FROZEN = json.loads((Path(__file__).parent / "data" / "gpt2_logits.json").read_text(encoding="utf-8"))
SIZES = GPT2(**FROZEN["sizes"], d_head=4, tie_word_embeddings=True)
WORDS = [f"w{i}" for i in range(23)]
TEXT = " ".join(WORDS[id] for id in FROZEN["token_ids"])
CORPUS = ["the capital of France is Paris, the capital of Italy is Rome", "a naïve café on the Rue de la Paix\n"] * 3
TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}


def make_frozen_weights() -> dict[str, Array]:
    """The weights whose logits the reference gave, by the formula in the fixture's header; float64."""
    state, arrays = 1, {}
    for name, shape in FROZEN["arrays"].items():
        numbers = []
        for _ in range(math.prod(shape)):
            state = 48271 * state % 2147483647
            numbers.append(state / 2147483647 - 0.5 + ("ln_" in name and name.endswith(".weight")))
        arrays[name] = np.array(numbers).reshape(shape)
    return arrays


def encode_array(array: Array, dtype: str) -> bytes:
    """Numbers as they are stored; BF16 is a float32 cut in half."""
    if dtype == "BF16":
        return (np.asarray(array, "<f4").view("<u4") >> 16).astype("<u2").tobytes()
    return np.asarray(array, TYPES.get(dtype, "<i1")).tobytes()


def write_weights(
    path: Path,
    arrays: Mapping[str, Array],
    dtype: str = "F32",
    *,
    prefix: str = "",
    types: Mapping[str, str] | None = None,
) -> Path:
    """A safetensors file of these arrays. `types`: of single ones."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in arrays.items():
        of = (types or {}).get(name, dtype)
        values = encode_array(array, of)
        header[prefix + name] = {
            "dtype": of,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(values)],
        }
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def write_words(path: Path, words: list[str] | None = None, **changes: Any) -> Path:
    """A tokenizer that knows words between blanks and no others; what is at none is passed over."""
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words or WORDS)}, unk_token=WORDS[-1]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    path.write_text(json.dumps(json.loads(tokenizer.to_str()) | changes), encoding="utf-8")
    return path


def train_tokenizer(size: int = 300) -> Tokenizer:
    """A tokenizer like GPT-2's: byte pairs, blanks before words, trained on a few lines."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer
