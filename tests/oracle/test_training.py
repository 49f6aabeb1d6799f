"""The memory of training against torch: the states that its optimisers allocate in one step, and the tensors that
autograd keeps for the backward pass of a layer."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import pytest
import torch
import transformers
from torch.nn import functional as F

import paramcount as pc
from tests.oracle import passes

TYPES = ["gpt2", "llama", "gemma2", "opt", "starcoder2", "mamba"]
HEADS, SIZE, TOKENS, BATCH = 4, 32, 24, 2


def is_hidden_matrix(name: str, parameter: Any) -> bool:
    """Whether Muon's guide gives it the parameter: matrices of hidden layers, neither embeddings nor the LM head."""
    return parameter.ndim == 2 and not any(word in name for word in ("embed", "wte", "wpe", "lm_head"))


def make_optimizers(name: str, parameters: dict[str, Any]) -> list[Any]:
    values = list(parameters.values())
    if name == "muon":
        matrices = [p for key, p in parameters.items() if is_hidden_matrix(key, p)]
        others = [p for key, p in parameters.items() if not is_hidden_matrix(key, p)]
        return [torch.optim.Muon(matrices), torch.optim.AdamW(others)]
    if name == "sgd":
        return [torch.optim.SGD(values, momentum=0.9)]
    return [{"adamw": torch.optim.AdamW, "adafactor": torch.optim.Adafactor}[name](values)]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "adafactor", "muon"])
@pytest.mark.parametrize("name", TYPES)
def test_optimizers_allocate_as_many_bytes(name: str, optimizer: str, precision: str) -> None:
    document = passes.make_document(name)
    model = passes.build_model(document, passes.find_class(name))
    model.to(torch.bfloat16 if precision == "bf16" else torch.float32).train().requires_grad_(True)
    parameters = dict(model.named_parameters())
    for parameter in parameters.values():
        parameter.grad = torch.full_like(parameter, 0.01)
    allocated = 0
    for one in make_optimizers(optimizer, parameters):
        one.step()
        for state in one.state.values():
            allocated += sum(x.nbytes for key, x in state.items() if key != "step" and torch.is_tensor(x))
    result = pc.training(document, optimizer=optimizer, precision=precision, context=8)
    assert result.optimizer_bytes == allocated
    assert result.weights_bytes == sum(p.nbytes for p in parameters.values())
    assert result.gradients_bytes == sum(p.grad.nbytes for p in parameters.values())


def count_kept(parameters: list[Any], compute: Any) -> int:
    """Bytes that autograd keeps while `compute` runs, each memory once, without parameters and statistics of norms."""
    kept: dict[int, int] = {}
    own = {p.untyped_storage().data_ptr() for p in parameters}

    def pack(x: Any) -> Any:
        memory = x.untyped_storage()
        if memory.data_ptr() not in own and x.shape[-1:] != (1,) and x.is_floating_point():
            kept[memory.data_ptr()] = memory.nbytes()
            alive.append(x)
        return x

    alive: list[Any] = []  # so that no memory is used twice
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        alive.append(compute())
    return sum(kept.values())


def split_heads(x: Any) -> Any:
    return x.view(BATCH, TOKENS, HEADS, -1).transpose(1, 2)


def merge_heads(x: Any) -> Any:
    return x.transpose(1, 2).reshape(BATCH, TOKENS, SIZE)


def make_weights(**shapes: tuple[int, ...]) -> dict[str, Any]:
    return {name: torch.randn(shape, requires_grad=True) for name, shape in shapes.items()}


def norm(x: Any, weight: Any) -> Any:
    return F.layer_norm(x, (SIZE,), weight)


def test_a_gpt_layer_keeps_what_autograd_keeps() -> None:
    w = make_weights(
        norm1=(SIZE,), norm2=(SIZE,), qkv=(3 * SIZE, SIZE), out=(SIZE, SIZE), up=(4 * SIZE, SIZE), down=(SIZE, 4 * SIZE)
    )  # fmt: skip
    x = torch.randn(BATCH, TOKENS, SIZE, requires_grad=True)

    def compute() -> Any:
        q, k, v = map(split_heads, F.linear(norm(x, w["norm1"]), w["qkv"]).split(SIZE, dim=-1))
        weights = torch.softmax(q @ k.transpose(-1, -2) / 8, dim=-1)
        y = x + F.linear(merge_heads(weights @ v), w["out"])
        return y + F.linear(F.gelu(F.linear(norm(y, w["norm2"]), w["up"])), w["down"])

    config = {"model_type": "gpt2", "n_head": HEADS, "n_embd": SIZE, "n_layer": 1, "vocab_size": 11, "n_positions": 32}
    result = pc.training(config, precision="fp32", context=TOKENS, batch=BATCH, flash_attention=False)
    assert result.layers[0].saved_bytes == count_kept(list(w.values()), compute)


def test_a_gated_layer_with_flash_attention_keeps_what_autograd_keeps() -> None:
    hidden = 48
    w = make_weights(
        norm1=(SIZE,), norm2=(SIZE,), q=(SIZE, SIZE), k=(SIZE, SIZE), v=(SIZE, SIZE), out=(SIZE, SIZE),
        gate=(hidden, SIZE), up=(hidden, SIZE), down=(SIZE, hidden),
    )  # fmt: skip
    x = torch.randn(BATCH, TOKENS, SIZE, requires_grad=True)

    def compute() -> Any:
        normed = norm(x, w["norm1"])
        q, k, v = (split_heads(F.linear(normed, w[name])) for name in "qkv")
        y = x + F.linear(merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True)), w["out"])
        normed = norm(y, w["norm2"])
        return y + F.linear(F.silu(F.linear(normed, w["gate"])) * F.linear(normed, w["up"]), w["down"])

    sizes = {"num_attention_heads": HEADS, "hidden_size": SIZE, "num_hidden_layers": 1, "intermediate_size": hidden}
    with pytest.warns(pc.ConfigWarning):
        result = pc.training({"model_type": "llama", **sizes}, precision="fp32", context=TOKENS, batch=BATCH)
    assert result.layers[0].saved_bytes == count_kept(list(w.values()), compute)


# ---- the estimator of Accelerate


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "gemma2", "t5", "mamba"])
def test_accelerate_estimates_the_model_without_its_head(name: str) -> None:
    modeling = pytest.importorskip("accelerate.utils.modeling", reason="needs accelerate")
    estimate = pytest.importorskip("accelerate.commands.estimate", reason="needs accelerate")
    document = passes.make_document(name)
    config = passes.build_model(document, passes.find_class(name)).config
    model = transformers.AutoModel.from_config(config, dtype=torch.float32)
    total, _ = modeling.calculate_maximum_sizes(model)
    total -= sum(buffer.nbytes for buffer in model.buffers())
    result = pc.training(document, context=8, estimators=True)
    found = {line.options: line.gpu_bytes for line in result.estimates if line.tool == "Accelerate"}
    expected = {dtype: max(estimate.estimate_training_usage(total, dtype).values()) for dtype in ("float32", "float16")}
    assert found == {f"{dtype}, training using Adam": size for dtype, size in expected.items()}


# ---- adapters


class KeptTensor:
    """A tensor in a graph, which is gone with it."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def count_alive(parameters: list[Any], compute: Any) -> int:
    """The same as `count_kept` without tensors of graphs that are dropped, and without vectors of a layer's size."""
    kept: WeakSet[KeptTensor] = WeakSet()
    own = {p.untyped_storage().data_ptr() for p in parameters}

    def pack(x: Any) -> KeptTensor:
        one = KeptTensor(x)
        kept.add(one)
        return one

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda one: one.tensor):
        out = compute()
    sizes = {}
    for one in kept:
        x, memory = one.tensor, one.tensor.untyped_storage()
        is_statistic = x.shape[-1:] == (1,) or x.numel() <= 2 * SIZE
        if memory.data_ptr() not in own and not is_statistic and x.is_floating_point():
            sizes[memory.data_ptr()] = memory.nbytes()
    assert out.requires_grad
    return sum(sizes.values())


class GatedLayer(torch.nn.Module):  # type: ignore[misc]
    """A layer of Llama with flash attention, made of linear layers that peft can adapt."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        shapes = {"q_proj": (SIZE, SIZE), "k_proj": (SIZE, SIZE), "v_proj": (SIZE, SIZE), "o_proj": (SIZE, SIZE)}
        shapes |= {"gate_proj": (SIZE, hidden), "up_proj": (SIZE, hidden), "down_proj": (hidden, SIZE)}
        for name, (inputs, outputs) in shapes.items():
            setattr(self, name, torch.nn.Linear(inputs, outputs, bias=False))
        self.norms = torch.nn.ParameterList([torch.ones(SIZE), torch.ones(SIZE)])

    def forward(self, x: Any) -> Any:
        normed = norm(x, self.norms[0])
        q, k, v = (split_heads(project(normed)) for project in (self.q_proj, self.k_proj, self.v_proj))
        y = x + self.o_proj(merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        normed = norm(y, self.norms[1])
        return y + self.down_proj(F.silu(self.gate_proj(normed)) * self.up_proj(normed))


@pytest.mark.parametrize("targets", [["q_proj", "v_proj"], ["o_proj"], ["gate_proj", "down_proj"], "all-linear"])
@pytest.mark.parametrize("method", ["lora", "dora"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_an_adapted_layer_keeps_what_autograd_keeps(targets: Any, method: str, dtype: str) -> None:
    """Adapters in the dtype of the model, and adapters in FP32 of a model in BF16, whose inputs peft casts."""
    peft = pytest.importorskip("peft", reason="the tests of adapters need peft: pip install peft==0.21.2")
    hidden, rank = 48, 4
    names = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    chosen = names if targets == "all-linear" else targets  # a Sequential has no output embedding for peft to find
    config = peft.LoraConfig(r=rank, target_modules=chosen, use_dora=method == "dora")
    layer = GatedLayer(hidden).to(torch.bfloat16 if dtype == "bf16" else torch.float32)
    adapted = peft.get_peft_model(torch.nn.Sequential(layer), config).train()
    x = torch.randn(BATCH, TOKENS, SIZE, dtype=next(layer.parameters()).dtype, requires_grad=True)
    sizes = {"num_attention_heads": HEADS, "hidden_size": SIZE, "num_hidden_layers": 1, "intermediate_size": hidden}
    precision = "fp32" if dtype == "f32" else "bf16"
    with pytest.warns(pc.ConfigWarning):
        result = pc.training(
            {"model_type": "llama", **sizes}, precision=precision, context=TOKENS, batch=BATCH,
            lora={"r": rank, "targets": targets, "method": method},
        )  # fmt: skip
    assert result.layers[0].saved_bytes == count_alive(list(adapted.parameters()), lambda: adapted(x))
