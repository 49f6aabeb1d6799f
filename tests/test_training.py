"""The memory of training: weights, gradients, optimiser state and activations on each GPU."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import paramcount as pc
from paramcount.costs.activations import Activations
from paramcount.costs.sharding import ShardShape
from paramcount.costs.training.estimators import count_base_model, estimate_zero
from paramcount.costs.training.setup import PRECISIONS, Setup
from paramcount.costs.training.shares import ModelState, TrainedRow, share_training
from paramcount.counting.quantisation.storage import StoredTensor
from paramcount.flow import TensorRow
from paramcount.formats.packing import Packing
from tests.running import Runner

# arXiv:2205.05198, table 3: heads, hidden size, layers; sequences of 2,048, vocabulary of 51,200
KORTHIKANTI = {"22B": (64, 6144, 48), "175B": (96, 12288, 96), "530B": (128, 20480, 105), "1T": (160, 25600, 128)}
SIZES = {"layers": 12, "attention_heads": 16, "ffn_dim": 4096}
# arXiv:1910.02054, table 1: GB per GPU at 1, 4, 16, 64, 256 and 1,024 of them
ZERO = {
    (7.5, 1): (120, 52.5, 35.6, 31.4, 30.4, 30.1),
    (7.5, 2): (120, 41.3, 21.6, 16.6, 15.4, 15.1),
    (7.5, 3): (120, 30, 7.5, 1.88, 0.47, 0.12),
    (128, 1): (2048, 896, 608, 536, 518, 513),
    (128, 2): (2048, 704, 368, 284, 263, 257),
    (128, 3): (2048, 512, 128, 32, 8, 2),
    (1000, 1): (16000, 7000, 4750, 4187, 4046, 4011),
    (1000, 2): (16000, 5500, 2875, 2218, 2054, 2013),
    (1000, 3): (16000, 4000, 1000, 250, 62.5, 15.6),
}


def make_gpt(heads: int, size: int, layers: int) -> dict[str, Any]:
    """The GPT of arXiv:2205.05198."""
    sizes = {"n_head": heads, "n_embd": size, "n_layer": layers, "n_positions": 2048, "vocab_size": 51200}
    return {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", **sizes}


def measure_gpt(name: str, **options: Any) -> pc.Training:
    return pc.training(make_gpt(*KORTHIKANTI[name]), context=2048, flash_attention=False, dropout=True, **options)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("name", KORTHIKANTI)
def test_activations_per_layer_are_those_of_korthikanti_et_al(name: str, batch: int) -> None:
    # Table 2: sbh(34 + 5as/h); tensor parallel sbh(10 + 24/t + 5as/(ht)); with sequence parallelism all of it / t;
    # selective recomputation leaves out the terms with a
    a, h, _ = KORTHIKANTI[name]
    s, t = 2048, 8
    linear, square = s * batch * h, 5 * a * s * s * batch
    whole = measure_gpt(name, batch=batch).layers[0]
    parallel = measure_gpt(name, batch=batch, tp=t).layers[0]
    sequence = measure_gpt(name, batch=batch, tp=t, sp=True).layers[0]
    assert whole.saved_bytes == 34 * linear + square
    assert parallel.saved_bytes == 10 * linear + 24 * linear // t + square // t
    assert sequence.saved_bytes == (34 * linear + square) // t
    assert parallel.saved_bytes - parallel.score_bytes == 10 * linear + 24 * linear // t
    assert sequence.saved_bytes - sequence.score_bytes == 34 * linear // t
    assert whole.input_bytes == parallel.input_bytes == 2 * linear


def test_activations_outside_of_layers_are_those_of_korthikanti_et_al() -> None:
    # Section 4.3: masks of the embedding's dropout sbh; the last norm 2sbh, the LM head's input 2sbh, its logits 4sbv
    _, h, layers = KORTHIKANTI["22B"]
    result = measure_gpt("22B")
    outside = result.share.saved_bytes - layers * result.layers[0].saved_bytes
    assert outside == 2048 * h + 4 * 2048 * h
    assert result.share.logits_bytes == 4 * 2048 * 51200


def test_the_first_pipeline_stage_keeps_as_many_micro_batches_as_there_are_stages() -> None:
    # arXiv:2205.05198, section 4.2.3 and 4.3: L layers, and masks of the embeddings for each micro-batch
    result = measure_gpt("22B", pp=4)
    layer = result.layers[0].saved_bytes
    assert result.stages[0].saved_bytes == 48 * layer + 4 * 2048 * 6144
    assert [stage.saved_bytes // layer for stage in result.stages] == [48, 36, 24, 12]
    assert [stage.logits_bytes > 0 for stage in result.stages] == [False, False, False, True]


@pytest.mark.parametrize(("billions", "stage"), ZERO)
def test_weights_gradients_and_state_are_those_of_zero(billions: float, stage: int) -> None:
    n = int(billions * 10**9)
    tensor = TensorRow("w", (n,), "mlp.up", "decoder")
    row = StoredTensor(tensor, 1, Packing("plain", "BF16"), 2 * n)
    shape = ShardShape(n_layers=1, n_heads=1, n_kv_heads=1, n_experts=0)
    for gpus, printed in zip((1, 4, 16, 64, 256, 1024), ZERO[billions, stage], strict=True):
        state = ModelState((), (TrainedRow(row, PRECISIONS["bf16-mixed"]),), shape, 0)
        (share,) = share_training(state, Setup(zero=stage, dp=gpus), Activations((), 0, 0, 0))
        digits = len(f"{printed:g}".partition(".")[2])
        assert abs(share.total_bytes / 10**9 - printed) < 10**-digits  # some are rounded, some truncated


LORA = {"r": 8, "targets": "q_proj,v_proj"}
# Llama 3.1 8B, per token: inputs of both norms, q, output of attention, k and v, gate, its activation and up; flash
# attention: 32 logarithms of 4 bytes
KEPT = 2 * (4 * 4096 + 2 * 1024 + 3 * 14336) + 4 * 32


@pytest.mark.parametrize(
    ("model", "options", "per_token"),
    [
        # and inputs of attention, of the MLP and of its last matrix
        ("llama-3.1-8b", {}, KEPT + 2 * (2 * 4096 + 14336)),
        # Mixtral: as a dense layer up to the MLP; router logits and weights of 8 experts; in each of 2 experts the
        # input, the output and 4 · 14,336
        ("mixtral-8x7b", {}, 2 * (6 * 4096 + 2 * 1024 + 2 * 8 + 2 * (2 * 4096 + 4 * 14336)) + 4 * 32),
        # frozen matrices keep no input; peft casts the inputs of q and v, each r values of A · x
        ("llama-3.1-8b", {"lora": LORA}, KEPT + 2 * (2 * 4096 + 2 * 8)),
        ("llama-3.1-8b", {"lora": {**LORA, "dtype": "bf16"}}, KEPT + 2 * (4096 + 2 * 8)),
    ],
)
def test_a_layer_keeps_what_its_backward_pass_reads(model: str, options: dict[str, Any], per_token: int) -> None:
    assert pc.training(model, context=500, batch=2, **options).layers[0].saved_bytes == 1000 * per_token


GPT_2, N, A = 124_439_808, 8_030_261_248, 41_943_040  # parameters: GPT-2 small, Llama 3.1 8B, adapters of rank 16 on it
PAGED = 32 * 3 * 14336 * 16  # values in tensors of at least 100,000: B of gate and up, and A of down
HEAD, QV = 128_256 * 4096, 3_407_872  # of the LM head, of adapters of rank 8 on q and v


@pytest.mark.parametrize(
    ("model", "options", "sizes"),  # bytes of weights, gradients and states, and not on the GPU
    [
        ("gpt2-small", {"precision": "bf16"}, (2 * GPT_2, 2 * GPT_2, 2 * 2 * GPT_2, 0)),
        ("gpt2-small", {"precision": "fp32"}, (4 * GPT_2, 4 * GPT_2, 2 * 4 * GPT_2, 0)),
        ("llama-3.1-8b", {}, (2 * N, 2 * N, 12 * N, 0)),
        # adapters alone have gradients and a state, in FP32 as peft keeps them, or with FP32 master weights
        ("llama-3.1-8b", {"lora": True}, (2 * N + 4 * A, 4 * A, 8 * A, 0)),
        ("llama-3.1-8b", {"lora": {"dtype": "bf16"}, "precision": "bf16"}, (2 * N + 2 * A, 2 * A, 4 * A, 0)),
        ("llama-3.1-8b", {"lora": {"dtype": "bf16"}}, (2 * N + 2 * A, 2 * A, 12 * A, 0)),
        # modules that are trained as a whole have the precision of the training
        ("llama-3.1-8b", {"lora": {**LORA, "modules_to_save": ["lm_head"]}},
         (2 * (N + HEAD) + 4 * QV, 4 * QV + 2 * HEAD, 8 * QV + 12 * HEAD, 0)),
        ("llama-3.1-8b", {"lora": {"r": 16}, "optimizer": "paged-adamw"},
         (2 * N + 4 * A, 4 * A, 8 * (A - PAGED), 8 * PAGED)),
        # offloaded: 4 bytes of master weights, 8 of momentum and variance, 4 of gradients; 1/8 for each of 8 GPUs
        ("llama-3.1-8b", {"dp": 8, "zero": 2, "offload_optimizer": "cpu"}, (2 * N, 0, 0, 16 * N // 8)),
        ("llama-3.1-8b", {"dp": 8, "zero": 1, "offload_optimizer": "cpu"}, (2 * N, 2 * N, 0, 16 * N // 8)),
        # the largest module and its gradients: the embedding
        ("llama-3.1-8b", {"fsdp": 8, "offload_optimizer": "cpu", "offload_params": "nvme"},
         (4 * HEAD, 0, 0, 18 * N // 8)),
    ],
)  # fmt: skip
def test_each_parameter_has_the_bytes_of_its_precision(
    model: str, options: dict[str, Any], sizes: tuple[int, ...]
) -> None:
    it = pc.training(model, context=8, **options)
    assert (it.weights_bytes, it.gradients_bytes, it.optimizer_bytes, it.offload_bytes) == sizes


def test_one_gpu_holds_all_layers_of_encoders_and_decoders() -> None:
    # BART Large: 406,291,456 parameters (facebook/bart-large: 12 layers each, 1,024, 4,096, vocabulary of 50,265)
    config = {"architectures": ["BartForConditionalGeneration"], "model_type": "bart", "vocab_size": 50265}
    config |= {f"{part}_{name}": n for part in ("encoder", "decoder") for name, n in SIZES.items()}
    result = pc.training(config | {"d_model": 1024, "max_position_embeddings": 1024}, context=64)
    assert result.weights_bytes == 2 * 406_291_456
    assert [(layer.repeat.count, layer.part) for layer in result.layers] == [(12, "encoder"), (12, "decoder")]


def test_full_recomputation_keeps_the_inputs_of_layers_and_one_layer() -> None:
    whole, full = (pc.training("gpt2-small", context=512, checkpointing=kind) for kind in ("none", "full"))
    outside = whole.share.saved_bytes - 12 * whole.layers[0].saved_bytes
    inputs = 2 * 512 * 768
    assert full.share.saved_bytes == 12 * inputs + outside
    assert full.share.recomputed_bytes == whole.layers[0].saved_bytes - inputs
    # the logits in FP32 are gone when layers are recomputed
    assert whole.activations_bytes == whole.share.saved_bytes + 4 * 512 * 50257
    assert full.activations_bytes == full.share.saved_bytes + 4 * 512 * 50257
    deep = pc.training("gpt2-small", context=512, checkpointing="full", set={"vocab_size": 1000}).share
    assert deep.activations_bytes == deep.saved_bytes + full.share.recomputed_bytes


@pytest.mark.parametrize(
    ("ep", "divided"),
    [(8, "all of the experts and 1/8 of the rest"), (4, "1/2 of the experts and 1/8 of the rest"), (1, "1/8")],
)
def test_the_formula_says_how_experts_are_divided(ep: int, divided: str) -> None:
    # Mixtral: 8 experts of 3 · 4,096 · 14,336 in 32 layers
    experts = 32 * 8 * 3 * 4096 * 14336 // ep
    others = 46_702_792_704 - 32 * 8 * 3 * 4096 * 14336
    result = pc.training("mixtral-8x7b", fsdp=8, ep=ep)
    on_a_gpu = " on a GPU" if ep > 1 else ""
    weights = f"{experts + others:,} parameters{on_a_gpu} × 2 bytes (BF16), {divided} on each GPU"
    assert result.formulas["weights"] == weights
    assert result.weights_bytes == 2 * (experts * ep // 8 + others // 8)
    replicated = pc.training("mixtral-8x7b", dp=8, ep=ep, zero=1)
    assert replicated.weights_bytes == 2 * (others + experts)
    assert replicated.optimizer_bytes == 12 * (others // 8 + experts * ep // 8)  # replicas of an expert share its state


def test_eight_bit_states_have_a_scale_for_256_values_and_spare_small_tensors() -> None:
    # GPT-2 Small: biases and norms below 4,096 values keep FP32
    small = 12 * (3 * 768 + 768 + 3072 + 768 + 4 * 768) + 2 * 768
    large = 124_439_808 - small
    scales = 50257 * 768 // 256 + 1024 * 768 // 256 + 12 * 12 * 768 * 768 // 256
    result = pc.training("gpt2-small", optimizer="adamw8bit", precision="bf16")
    assert result.share.state_bytes == 8 * small + 2 * large + 2 * 4 * scales


def test_the_last_pipeline_stage_has_a_copy_of_a_tied_embedding() -> None:
    # GPT-2 Small: 50,257 · 768 in the embedding, 1,024 · 768 positions, the last norm; 6 layers on each stage
    layers = (124_439_808 - (50257 + 1024) * 768 - 2 * 768) // 2
    first, last = pc.training("gpt2-small", pp=2).stages
    assert first.parameters == layers + (50257 + 1024) * 768
    assert last.parameters == layers + 50257 * 768 + 2 * 768


def test_a_fit_names_the_largest_micro_batch_and_what_helps() -> None:
    result = pc.training("llama-3.1-8b", gpu="8xH100", context=8192)
    assert result.fit is not None
    assert (result.gpus, result.fit.fits, result.fit.largest_batch) == (8, False, 0)
    fitting = pc.training("llama-3.1-8b", gpu="8xH100", context=8192, fsdp=8, checkpointing="full").fit
    assert fitting is not None
    assert fitting.fits
    assert fitting.largest_batch is not None
    options: dict[str, Any] = {"context": 8192, "fsdp": 8, "checkpointing": "full", "gpu": "8xH100"}
    sizes = [pc.training("llama-3.1-8b", batch=fitting.largest_batch + n, **options).fit for n in (0, 1)]
    assert [fit.fits for fit in sizes if fit] == [True, False]


MODELS = ("gpt2-small", "llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "jamba-v0.1", "t5-small", "gemma-3-1b")
CHAINS: list[list[dict[str, Any]]] = [
    [{"checkpointing": kind} for kind in ("none", "selective", "full")],
    [{"checkpointing": kind, "flash_attention": False} for kind in ("none", "selective", "full")],
    [{"flash_attention": flash} for flash in (False, True)],
    [{"dropout": dropout} for dropout in (True, False)],
    [{"zero": zero, "dp": 4} for zero in (0, 1, 2, 3)],
    [{"fsdp": n} for n in (1, 2, 8, 64)],
    [{"tp": n} for n in (1, 2, 4)],
    [{"tp": 4, "sp": sp} for sp in (False, True)],
    [{"dp": 8, "tp": n, "zero": 1} for n in (1, 2)],
    [{"precision": name} for name in ("fp32", "bf16-mixed", "bf16")],
    [{"optimizer": name} for name in ("adamw", "muon", "sgd", "adafactor")],
    [{"batch": n} for n in (8, 4, 1)],
    [{"lora": {"r": r, "targets": "attention"}} for r in (64, 16, 4)],
    [{"lora": {"targets": "attention"}, "weights": name} for name in ("f32", "bf16", "bnb-int8", "nf4", "nf4-double")],
    [{"lora": {"targets": "attention"}, "checkpointing": kind} for kind in ("none", "selective", "full")],
    [{"lora": {"targets": "attention"}, "zero": zero, "dp": 4} for zero in (0, 1, 2, 3)],
    [{"lora": {"targets": "attention", "method": name}} for name in ("dora", "rslora")],
    [{"zero": 3, "dp": 4, "offload_optimizer": place} for place in (None, "cpu")],
    [{"context": n} for n in (400, 300, 1)],
]


@pytest.mark.parametrize("model", MODELS)
def test_more_parallelism_or_recomputation_never_takes_more(model: str) -> None:
    for chain in CHAINS:
        totals = [pc.training(model, **{"context": 400, "batch": 2, **options}).total_bytes for options in chain]
        assert all(later <= earlier for earlier, later in pairwise(totals)), (chain, totals)


def test_layers_that_are_only_listed_are_divided_among_stages() -> None:
    """Reformer names the attention of each of its 12 layers and has no number of layers."""
    assert pc.memory("reformer-enwik8", gpu="h100", pp=4).fit is not None


@pytest.mark.parametrize(("model_type", "n_layers"), [("llava_next_video", 24), ("nemotron_h_omni", 32)])
def test_an_encoder_of_images_and_videos_keeps_the_activations_of_both(model_type: str, n_layers: int) -> None:
    # modeling_llava_next_video.py and modeling_nemotron_h_omni.py: get_image_features and get_video_features each call
    # the same encoder; the defaults are a CLIP-L of 24 layers and a RADIO-H of 32
    with pytest.warns(pc.ConfigWarning):
        model = pc.load({"model_type": model_type})
    encoders = [layer for layer in pc.training(model).layers if layer.part == "vision"]
    assert [layer.repeat.count for layer in encoders] == [n_layers, n_layers]


# ---- adapters, offload and other estimators


def test_qlora_stores_linear_layers_in_four_bits() -> None:
    # 32 layers of 218,103,808 values in matrices of multiples of 64: half a byte, a byte per 64 and an FP32 scale per
    # 256 of these; code books of 16 and 256 values and a description per matrix; the rest in BF16
    matrices = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096)
    packed = matrices // 2 + matrices // 64 + 4 * matrices // (64 * 256)
    rest = 2 * (8_030_261_248 - matrices)
    result = pc.training("llama-3.1-8b", lora={"r": 16}, weights="nf4-double", context=512)
    frozen = result.weights_bytes - 4 * 41_943_040
    assert 0 <= frozen - packed - rest - 32 * 7 * 4 * (16 + 256) < 32 * 7 * 256


def test_layers_before_the_first_adapted_one_keep_nothing() -> None:
    lora = {"r": 8, "targets": "q_proj,v_proj"}
    whole = pc.training("llama-3.1-8b", lora=lora, context=1000).layers[0].saved_bytes
    some = pc.training("llama-3.1-8b", lora={**lora, "layers_to_transform": [29, 31]}, context=1000)
    frozen = whole - 1000 * 2 * (2 * 4096 + 2 * 8)
    assert some.share.layers == 3
    assert some.share.saved_bytes - 2 * whole - frozen == 2 * 1000 * 4096  # and the input of the last norm
    recomputed = pc.training(
        "llama-3.1-8b", lora={**lora, "layers_to_transform": [29, 31]}, context=1000, checkpointing="full"
    )
    assert recomputed.share.layers == 32


def test_a_language_model_alone_has_no_activations_of_a_frozen_encoder() -> None:
    pattern = r".*language_model.*\.(q|v)_proj"
    result = pc.training("gemma-3-4b", lora={"target_pattern": pattern}, context=512)
    kept = {layer.part: layer.saved_bytes > 0 for layer in result.layers}
    assert kept == {"vision": False, "decoder": True}


# docs/code-docs/source/memory.rst of DeepSpeed: 2,851 million parameters, 32 million in the largest layer, 8 GPUs;
# (GiB per CPU, GiB per GPU) in the order that is printed
COLD = [
    ("127.45", "5.31"), ("127.45", "15.93"), ("71.69", "0.12"), ("127.45", "0.12"), ("63.72", "0.78"),
    ("127.45", "0.78"), ("1.43", "6.09"), ("127.45", "6.09"),
]  # fmt: skip


def test_deepspeed_estimates_as_much_from_numbers_alone() -> None:
    lines = estimate_zero(2_851_000_000, 32_000_000, gpus=8)
    assert [(f"{line.cpu_bytes / 2**30:.2f}", f"{line.gpu_bytes / 2**30:.2f}") for line in lines] == COLD


def test_deepspeed_estimates_less_per_gpu_on_two_nodes() -> None:
    # stage3.py: 4 · largest + 2 · total / 16, and per node 16 · total / 2 · 1.5
    line = next(line for line in estimate_zero(10**9, 10**7, gpus=8, nodes=2) if line[:4] == (3, True, False, True))
    assert (line.gpu_bytes, line.cpu_bytes) == (4 * 10**7 + 125_000_000, 12 * 10**9)


def test_accelerate_counts_the_model_without_its_head() -> None:
    # docs/source/usage_guides/model_size_estimator.md of Accelerate: bert-base-cased, 413.18 MB and 1.61 GB in FP32
    # with 8,192 bytes of buffers; 108,310,272 parameters
    sizes = pc.load("bert-base-cased").sizes
    assert f"{(4 * count_base_model(sizes) + 8192) / 2**20:.2f}" == "413.18"
    estimates = pc.training("bert-base-cased", estimators=True, context=8).estimates
    adam = {estimate.options: estimate.gpu_bytes for estimate in estimates if estimate.tool == "Accelerate"}
    assert adam == {"float32, training using Adam": 16 * 108_310_272, "float16, training using Adam": 8 * 108_310_272}


def test_the_command_trains_adapters(run: Runner) -> None:
    text = run("training", "llama-3.1-8b", "--qlora", "--dora", "--rank", "8", "--context", "1k").out
    assert "QDoRA, rank 8, 22,347,776 of 8,052,609,024 parameters trained" in " ".join(text.split())
    assert "NF4 (double quantisation)" in text
    offloaded = run("training", "llama-3.1-8b", "--fsdp", "8", "--offload-optimizer", "cpu", "--context", "1k").out
    assert "not on the GPU  16.1 GB" in offloaded


def test_a_chunked_loss_has_the_logits_of_one_chunk() -> None:
    # The example of Liger Kernel's fused_linear_cross_entropy.py: BT = 4096*4, V = 32000, H = 4096 => chunk_size = 2048
    whole, chunked = (
        pc.training("llama-2-7b", context=4096, batch=4, checkpointing="full", chunked_loss=is_chunked)
        for is_chunked in (False, True)
    )
    assert whole.share.logits_bytes == 4 * 4 * 4096 * 32_000
    assert chunked.share.logits_bytes == 4 * 2048 * 32_000
    assert chunked.share.saved_bytes == whole.share.saved_bytes
    assert pc.training("llama-2-7b", context=1, chunked_loss=True).share.logits_bytes == 4 * 32_000


def test_the_inputs_of_recomputed_layers_have_no_margin() -> None:
    def find_percent(**given: Any) -> int:
        fit = pc.training("llama-3.1-8b", gpu="h100", context=4096, **given).fit
        assert fit is not None
        return fit.kept_percent

    assert find_percent() == 60
    share = pc.training("llama-3.1-8b", context=4096, checkpointing="full").share
    inputs = (32 + 2) * 4096 * 4096 * 2  # bytes: layers, the last norm and the LM head, tokens, values in BF16
    expected = 60 * (share.activations_bytes - inputs) / share.activations_bytes
    assert find_percent(checkpointing="full") == int(expected)
    assert find_percent(checkpointing="full", lora=True, weights="nf4-double") == 120  # in FP32 by PEFT
