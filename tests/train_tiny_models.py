"""Trains the three tiny models of `paramcount/tiny` to sort letters: "dbca|" is continued with "abcd.".

    .oracle/bin/python -m tests.train_tiny_models [NAME…]    # trains all, or these
    .oracle/bin/python -m tests.train_tiny_models --freeze   # only writes tests/data/tiny_models.json

It needs torch and transformers, takes some minutes per model on one core, and prints the accuracy on inputs that
training never saw. The models are transformers' own classes, so that the names of their tensors are the reference's.
Afterwards it freezes the reference's logits and some of the inputs that were left out for the tests.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zlib import crc32

import torch
import transformers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    MambaConfig,
    MambaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    PretrainedConfig,
    PreTrainedModel,
)
from transformers.models.mamba import modeling_mamba

from paramcount.tiny import ALPHABET, END, FOLDER, LONGEST, SEPARATOR, decode, encode

LETTERS = ALPHABET.replace(SEPARATOR, "").replace(END, "")
SEED = 20
BATCH = 64
HELD_OUT = 10  # one input of so many is never trained on
N_EVALUATED = 2000
N_FROZEN = 50
DATA = Path(__file__).parent / "data" / "tiny_models.json"
TEXTS = ("dbca|abcd.", "paramcount|aac", "zz|", "q")
N_POSITIONS = 2 * LONGEST + 2
TOKENS = {"vocab_size": len(ALPHABET), "bos_token_id": None, "eos_token_id": ALPHABET.index(END), "pad_token_id": None}

MODELS: dict[str, tuple[type[PreTrainedModel], PretrainedConfig, int, float]] = {  # class, config, steps, rate
    "tiny-gpt2": (
        GPT2LMHeadModel,
        GPT2Config(
            n_positions=N_POSITIONS, n_embd=48, n_layer=2, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            **TOKENS,
        ),
        3000,
        3e-3,
    ),
    "tiny-mixtral": (
        MixtralForCausalLM,
        MixtralConfig(
            hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            num_local_experts=4, num_experts_per_tok=2, max_position_embeddings=N_POSITIONS, output_router_logits=True,
            router_aux_loss_coef=0.01, rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
            tie_word_embeddings=False, sliding_window=None, **TOKENS,
        ),
        3000,
        3e-3,
    ),
    "tiny-mamba": (
        MambaForCausalLM,
        MambaConfig(hidden_size=48, state_size=8, num_hidden_layers=2, conv_kernel=4, use_cache=False, **TOKENS),
        2000,
        4e-3,
    ),
}  # fmt: skip


class Scan(torch.autograd.Function):  # type: ignore[misc]  # mypy has no torch
    """h[t] = a[t] · h[t - 1] + x[t] along the first axis. In transformers each step's gradient is as long as the text,
    which takes ten times as long."""

    @staticmethod
    def forward(context: Any, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        h = x.clone()
        for t in range(1, len(x)):
            h[t].addcmul_(a[t], h[t - 1])
        context.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, h = context.saved_tensors
        of_x = gradients[0].clone()
        for t in range(len(h) - 1, 0, -1):
            of_x[t - 1].addcmul_(a[t], of_x[t])
        of_a = torch.zeros_like(a)
        of_a[1:] = of_x[1:] * h[:-1]
        return of_a, of_x


def scan_quickly(
    u: torch.Tensor, step: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, *, D: torch.Tensor,
    z: torch.Tensor, delta_bias: torch.Tensor, **_: object,
) -> torch.Tensor:  # fmt: skip
    """What `mamba_selective_scan` of transformers returns: [batch, channels, n]. The accuracy is measured with it."""
    delta = torch.nn.functional.softplus(step + delta_bias[:, None]).permute(2, 0, 1)  # [n, batch, channels]
    u = u.permute(2, 0, 1)
    states: torch.Tensor = Scan.apply(
        torch.exp(delta[..., None] * a), (delta * u)[..., None] * b.permute(2, 0, 1)[:, :, None]
    )
    y = torch.einsum("nbcs,nbs->nbc", states, c.permute(2, 0, 1)) + u * D
    return y.permute(1, 2, 0) * torch.nn.functional.silu(z)


def is_held_out(letters: str) -> bool:
    return crc32(letters.encode()) % HELD_OUT == 0


def draw_letters(generator: torch.Generator, length: int, held_out: bool) -> str:
    """Random letters, of an alphabet that is sometimes small, so that letters occur more than once."""
    while True:
        n_letters = int(torch.randint(2, len(LETTERS) + 1, (), generator=generator))
        alphabet = torch.randperm(len(LETTERS), generator=generator)[:n_letters]
        chosen = alphabet[torch.randint(0, n_letters, (length,), generator=generator)]
        letters = "".join(LETTERS[i] for i in chosen.tolist())
        if is_held_out(letters) == held_out or length < 3:
            return letters


def make_batch(generator: torch.Generator, length: int, n: int, held_out: bool) -> torch.Tensor:
    """Token ids [n, 2 * length + 2]: letters, separator, letters in order, end."""
    rows = []
    for _ in range(n):
        letters = draw_letters(generator, length, held_out)
        text = letters + SEPARATOR + "".join(sorted(letters)) + END
        rows.append([ALPHABET.index(character) for character in text])
    return torch.tensor(rows)


def draw_length(generator: torch.Generator) -> int:
    """A number of letters; long inputs, which are harder, are drawn more often."""
    lengths: list[int] = torch.randint(1, LONGEST + 1, (2,), generator=generator).tolist()
    return max(lengths)


def train(model: PreTrainedModel, n_steps: int, rate: float) -> None:
    generator = torch.Generator().manual_seed(SEED)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, n_steps, pct_start=0.05)
    model.train()
    start = time.monotonic()
    for step in range(n_steps):
        length = draw_length(generator)
        tokens = make_batch(generator, length, BATCH, held_out=False)
        out = model(tokens)
        logits = out.logits[:, length:-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, length + 1 :].flatten())
        aux = getattr(out, "aux_loss", None)
        if aux is not None:
            loss = loss + model.config.router_aux_loss_coef * aux
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % 100 == 0:
            print(f"  step {step + 1}: loss {loss.item():.4f}, {time.monotonic() - start:.0f} s", flush=True)


def measure_accuracy(model: PreTrainedModel, seed: int = SEED + 1) -> float:
    """The share of held-out inputs of 3 letters and more whose whole answer is right, letter by letter without help."""
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    lengths = range(3, LONGEST + 1)
    right = n = 0
    for length in lengths:
        batch = make_batch(generator, length, N_EVALUATED // len(lengths), held_out=True)
        tokens = batch[:, : length + 1]
        with torch.no_grad():
            for _ in range(length + 1):
                tokens = torch.cat([tokens, model(tokens).logits[:, -1:].argmax(-1)], 1)
        right += int((tokens == batch).all(1).sum())
        n += len(batch)
    return right / n


def save(model: PreTrainedModel, folder: Path) -> None:
    """Writes FP16 weights with the names that the reference reads, and its config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    if hasattr(model.config, "output_router_logits"):
        model.config.output_router_logits = False
    model.config.use_cache = True
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    for path in folder.iterdir():
        path.chmod(0o644)


def compute_logits(model: PreTrainedModel, text: str) -> list[list[float]]:
    with torch.no_grad():
        logits: list[list[float]] = model(torch.tensor([encode(text)])).logits[0].tolist()
    return logits


def answer(model: PreTrainedModel, letters: str) -> str:
    """What the reference writes after the separator, up to the end or one letter too many."""
    ids = encode(letters + SEPARATOR)
    with torch.no_grad():
        while ids[-1] != ALPHABET.index(END) and len(ids) < 2 * len(letters) + 2:
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return decode(ids[len(letters) + 1 :])


def open_model(name: str) -> PreTrainedModel:
    """The reference's model of the files of the package, in float32."""
    return MODELS[name][0].from_pretrained(FOLDER / name, dtype=torch.float32).eval()


def freeze() -> None:
    """Writes what the reference says of the files: its logits for some texts, its accuracy, and held-out inputs."""
    models = {name: open_model(name) for name in MODELS}
    generator = torch.Generator().manual_seed(SEED + 2)
    lengths = torch.randint(3, LONGEST + 1, (N_FROZEN,), generator=generator).tolist()
    inputs = [draw_letters(generator, length, held_out=True) for length in lengths]
    frozen = {
        "source": f"transformers {transformers.__version__}, classes in tests/train_tiny_models.py, with the files of "
        "paramcount/tiny, float32; answers to inputs that the training leaves out",
        "logits": {name: {text: compute_logits(model, text) for text in TEXTS} for name, model in models.items()},
        "accuracy": {name: measure_accuracy(model) for name, model in models.items()},
        "answers": {name: {letters: answer(model, letters) for letters in inputs} for name, model in models.items()},
    }
    DATA.write_text(json.dumps(frozen) + "\n", encoding="utf-8")


def main(names: list[str]) -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if names == ["--freeze"]:
        freeze()
        return
    for name in names or MODELS:
        kind, config, n_steps, rate = MODELS[name]
        torch.manual_seed(SEED)
        model = kind(config)
        n = sum(parameter.numel() for parameter in model.parameters())
        print(f"{name}: {n:,} parameters", flush=True)
        with patch.object(modeling_mamba, "mamba_selective_scan", scan_quickly):
            train(model, n_steps, rate)
        model.half().float()  # the accuracy is that of the weights in the file
        accuracy = measure_accuracy(model)
        print(f"{name}: {accuracy:.2%} of held-out inputs sorted", flush=True)
        save(model.half(), FOLDER / name)
    freeze()


if __name__ == "__main__":
    main(sys.argv[1:])
