"""The NumPy forward pass against GPT2LMHeadModel of transformers, on the same weights in float64.

`python -m tests.oracle.test_gpt2_logits` freezes the reference's logits into tests/data/gpt2_logits.json.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from paramcount.gpt2.forward_pass import Array, forward, make_weights

FROZEN = Path(__file__).parent.parent / "data" / "gpt2_logits.json"
FORMULA = (
    "State s starts at 1. For every number of every array, in the order of `arrays`, last axis fastest: "
    "s = 48271·s mod 2147483647, "
    "the number is s / 2147483647 - 0.5; in weights of norms (names with ln_) it is 1 more."
)
TINY = SimpleNamespace(vocab_size=23, n_positions=11, d_model=8, n_layers=2, n_heads=2, d_ff=20)
DEEPER = SimpleNamespace(vocab_size=32, n_positions=7, d_model=12, n_layers=3, n_heads=3, d_ff=48)
TOKENS = [3, 0, 22, 7, 7, 15]

# Each module's output and the name that `observe` is shown it by.
MODULES = {
    "ln_1": "norm 1", "attn.c_attn": "qkv", "attn.c_proj": "attention output", "ln_2": "norm 2",
    "mlp.c_fc": "mlp up", "mlp.act": "gelu", "mlp.c_proj": "mlp down", "": "after mlp",
}  # fmt: skip


def make_reference(sizes: SimpleNamespace, n_inner: int | None) -> Any:
    """The reference model in float64, eager so that it shows its attention patterns.

    `n_inner`: None where it is 4·n_embd.
    """
    config = transformers.GPT2Config(
        vocab_size=sizes.vocab_size,
        n_positions=sizes.n_positions,
        n_embd=sizes.d_model,
        n_layer=sizes.n_layers,
        n_head=sizes.n_heads,
        n_inner=n_inner,
        bos_token_id=None,  # the usual one is outside so small a vocabulary
        eos_token_id=None,
    )
    config._attn_implementation = "eager"
    return transformers.GPT2LMHeadModel(config).double().eval()


def load_weights(model: Any, arrays: dict[str, Array]) -> Any:
    """The model with these arrays for weights: all of them, and nothing left as it was."""
    found = model.transformer.load_state_dict(
        {name: torch.from_numpy(array) for name, array in arrays.items()}, strict=True
    )
    assert (found.missing_keys, found.unexpected_keys) == ([], [])
    assert model.lm_head.weight is model.transformer.wte.weight
    return model


def make_large_weights(sizes: SimpleNamespace) -> dict[str, Array]:
    """Weights large enough that every step matters, and no norm's gain is one."""
    rng = np.random.default_rng(5)
    return {
        name: array + rng.normal(0, 0.3, array.shape) for name, array in make_weights(sizes, dtype=np.float64).items()
    }


@pytest.mark.parametrize(("sizes", "n_inner"), [(TINY, 20), (DEEPER, None)], ids=["n_inner given", "n_inner null"])
def test_logits_equal_those_of_the_reference(sizes: SimpleNamespace, n_inner: int | None) -> None:
    arrays, tokens = make_large_weights(sizes), list(range(sizes.n_positions))
    with torch.no_grad():
        expected = load_weights(make_reference(sizes, n_inner), arrays)(torch.tensor([tokens])).logits[0].numpy()
    np.testing.assert_allclose(forward(arrays, tokens, n_heads=sizes.n_heads), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("sizes", "n_inner"), [(TINY, 20), (DEEPER, None)], ids=["n_inner given", "n_inner null"])
def test_intermediates_equal_the_outputs_of_the_reference_modules(sizes: SimpleNamespace, n_inner: int | None) -> None:
    arrays, tokens = make_large_weights(sizes), list(range(sizes.n_positions))
    model = load_weights(make_reference(sizes, n_inner), arrays)
    wanted = {"wte": "token embedding", "wpe": "position embedding", "ln_f": "final norm"}
    wanted |= {
        f"h.{i}.{module}".rstrip("."): f"h.{i}.{name}"
        for i in range(sizes.n_layers)
        for module, name in MODULES.items()
    }
    expected: dict[str, Array] = {}
    for module, name in wanted.items():

        def record_output(_: Any, __: Any, out: Any, name: str = name) -> None:
            expected[name] = (out[0] if isinstance(out, tuple) else out).numpy()

        model.transformer.get_submodule(module).register_forward_hook(record_output)
    with torch.no_grad():
        patterns = model(torch.tensor([tokens]), output_attentions=True).attentions
    expected |= {f"h.{i}.attention weights": pattern.numpy() for i, pattern in enumerate(patterns)}
    seen: dict[str, Array] = {}
    forward(arrays, tokens, n_heads=sizes.n_heads, observe=seen.__setitem__)
    assert len(expected) == 3 + 9 * sizes.n_layers
    for name, array in expected.items():
        np.testing.assert_allclose(seen[name], array.reshape(seen[name].shape), rtol=0, atol=1e-9, err_msg=name)


def freeze() -> None:
    """Write the reference's names, shapes and logits; nothing of this package is asked."""
    model = make_reference(TINY, TINY.d_ff)
    state, arrays = 1, {}
    for name, tensor in model.transformer.state_dict().items():
        numbers = []
        for _ in range(tensor.numel()):
            state = 48271 * state % 2147483647
            numbers.append(state / 2147483647 - 0.5 + ("ln_" in name and name.endswith(".weight")))
        arrays[name] = np.array(numbers).reshape(tensor.shape)
    with torch.no_grad():
        logits = load_weights(model, arrays)(torch.tensor([TOKENS])).logits[0].tolist()
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    header = {
        "what": (
            f"logits of the reference GPT2LMHeadModel in float64 ({versions}); made by tests/oracle/test_gpt2_logits.py"
        ),
        "weights": FORMULA,
        "sizes": vars(TINY),
        "arrays": {name: array.shape for name, array in arrays.items()},
        "token_ids": TOKENS,
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items()]
    rows = ",\n".join(json.dumps(row) for row in logits)
    FROZEN.write_text("{\n" + ",\n".join([*lines, f'"logits": [\n{rows}\n]']) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    freeze()
