"""Trainable parameters of adapters, asked of the peft library itself: it adds each adapter to the reference's model."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import pytest

import paramcount as pc
from tests.model_types import MODEL_TYPES, default_document
from tests.oracle.differential import build_model, can_be_built, find_table, silence

peft = pytest.importorskip("peft", reason="the tests of adapters need peft: pip install peft==0.21.2")
from tests.oracle.adapter_patterns import find_differences  # noqa: E402

# peft refuses out_proj, a linear layer, of these
KERNELS = ("falcon_h1", "falcon_mamba", "mamba", "mamba2", "nemotron_h")
# peft adapts their experts by the last names of modules, some of which are those of other modules, too
REFUSED = ("qwen3_omni_moe", "qwen3_omni_moe_thinker")
# whose linear layers are not those of its checkpoint, which paramcount refuses
DIFFERENT = ("ibert",)
SEVEN = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
STACKED = ("base_layer", "experts")  # peft's names of modules around stacked experts
EXPERTS = {"target_parameters": ["experts.gate_up_proj", "experts.down_proj"]}


class Trained(NamedTuple):
    trainable: int
    total: int
    saved: int  # elements of a saved adapter


@pytest.fixture(autouse=True)
def quiet() -> None:
    silence()


def adapt(document: dict[str, Any], config: Any) -> Any:
    """The reference's model with an adapter."""
    import torch

    model = build_model(document, document["architectures"][0])
    if document["model_type"] == "pp_formulanet":  # which does not say where its token embedding is
        model.base_model.get_input_embeddings = lambda: find_table(model)
    with torch.device("meta"):
        return peft.get_peft_model(model, config)


def train(document: dict[str, Any], config: Any) -> Trained:
    """What peft makes trainable of the reference's model, and how much of it a saved adapter has."""
    adapted = adapt(document, config)
    state = peft.get_peft_model_state_dict(adapted, save_embedding_layers=False)
    trainable = sum(p.numel() for p in adapted.parameters() if p.requires_grad)
    return Trained(trainable, sum(p.numel() for p in adapted.parameters()), sum(t.numel() for t in state.values()))


def lora_config(method: str = "lora", **options: Any) -> Any:
    return peft.LoraConfig(use_rslora=method == "rslora", use_dora=method == "dora", **options)


def count_adapter(document: dict[str, Any], **options: Any) -> Trained:
    found = pc.lora(document, **options)
    return Trained(found.trainable, found.total, found.adapter_bytes // 4)


def sum_by_last_name(document: dict[str, Any], **options: Any) -> Counter[str]:
    """{last name of a module: trainable parameters}; all stacked experts together, and all members of lists."""
    sums: Counter[str] = Counter()
    for module in pc.lora(document, **options).modules:
        last = module.name.removesuffix(".weight").rpartition(".")[2]  # of a router, a parameter
        is_index = last.isdigit() or last.startswith("{")
        is_stacked = module.component.startswith("experts") and len(module.shape) == 3
        name = "experts" if is_stacked else "index" if is_index else last
        sums[name] += module.parameters
    return sums


def sum_trainable_by_last_name(document: dict[str, Any], config: Any) -> Counter[str]:
    """The same of what peft makes trainable."""
    sums: Counter[str] = Counter()
    for parameter, values in adapt(document, config).named_parameters():
        last = parameter.partition(".lora_")[0].rpartition(".")[2]
        name = "experts" if last in STACKED else "index" if last.isdigit() else last
        sums[name] += values.numel() if values.requires_grad else 0
    return +sums


@pytest.mark.parametrize("name", sorted(set(MODEL_TYPES) - {*KERNELS, *REFUSED, *DIFFERENT}))
def test_lora_of_all_linear_layers(name: str) -> None:
    document = default_document(name)
    config = lora_config(r=4, target_modules="all-linear")
    assert sum_by_last_name(document, r=4) == sum_trainable_by_last_name(document, config)


@pytest.mark.parametrize("name", KERNELS)
def test_lora_of_mamba_layers(name: str) -> None:
    document = default_document(name)
    expected = train(document, lora_config(r=4, target_modules=["in_proj"]))
    assert count_adapter(document, r=4, targets="in_proj") == expected
    for targets in ("all-linear", ["in_proj", "out_proj"], ["conv1d"]):
        with pytest.raises(ValueError, match="incompatible with Mamba-based models"):
            train(document, lora_config(r=4, target_modules=targets))
    for name in ("all-linear", "in_proj,out_proj"):
        with pytest.raises(pc.ParamcountError, match="refuses out_proj and conv1d"):
            pc.lora(document, targets=name)


def compare_or_refuse(document: dict[str, Any], config: Any, **options: Any) -> None:
    """Both add as many trainable parameters to each last name, or both refuse the targets."""
    try:
        expected = sum_trainable_by_last_name(document, config)
    except ValueError:
        with pytest.raises(pc.ParamcountError):
            pc.lora(document, **options)
        return
    assert sum_by_last_name(document, **options) == expected


@pytest.mark.parametrize("name", sorted(set(MODEL_TYPES) - {*DIFFERENT}))
def test_lora_of_the_seven_usual_names(name: str) -> None:
    config = lora_config(r=4, target_modules=SEVEN)
    compare_or_refuse(default_document(name), config, r=4, targets=SEVEN)


@pytest.mark.parametrize("bias", ["all", "lora_only"])
@pytest.mark.parametrize("name", sorted(set(MODEL_TYPES) - {*KERNELS, *REFUSED, *DIFFERENT}))
def test_biases_of_all_types(name: str, bias: str) -> None:
    document = default_document(name)
    expected = train(document, lora_config(r=4, target_modules="all-linear", bias=bias))
    ours = count_adapter(document, r=4, bias="all" if bias == "all" else "adapted")
    assert ours.trainable == expected.trainable  # whose total has what no forward pass reads


def list_stacks(document: dict[str, Any]) -> list[str]:
    """The last two parts of the names of all parameters of experts and routers in the reference."""
    parameters = build_model(document, document["architectures"][0]).named_parameters()
    names = {".".join(name.split(".")[-2:]) for name, values in parameters if values.dim() in (2, 3)}
    return sorted(name for name in names if name.startswith("experts.") and name.endswith("_proj"))


@pytest.mark.parametrize("name", sorted(set(MODEL_TYPES) - {*DIFFERENT}))
def test_lora_of_the_parameters_of_experts(name: str) -> None:
    document = default_document(name)
    for parameter in list_stacks(document):
        config = lora_config(r=4, target_modules=[], target_parameters=[parameter])
        expected = train(document, config).trainable
        assert count_adapter(document, r=4, target_parameters=[parameter]).trainable == expected, parameter


@pytest.mark.parametrize("name", REFUSED)
def test_names_of_linear_layers_and_of_other_modules_are_refused(name: str) -> None:
    document = default_document(name)
    with pytest.raises(ValueError, match="is not supported"):
        train(document, lora_config(r=4, target_modules="all-linear"))
    with pytest.raises(pc.ParamcountError, match=r"0 is the last name of linear layers and of .*\.0, so peft"):
        count_adapter(document, r=4)


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("deepseek_v4", ["o_a_proj", "weights_proj"]),
        ("glm4v", ["proj"]),  # of the patches and of attention
        ("gte", ["q_proj", "up_proj"]),  # fused in checkpoints
        ("hrm_text", ["gate_proj", "q_proj"]),
        ("jina_embeddings_v3", ["k_proj", "v_proj", "o_proj"]),
        ("minimax_m3_vl", ["gate_up_proj", "merge_linear_1"]),  # two matrices in checkpoints
        ("qwen2_vl", ["proj", "q_proj"]),
    ],
)
@pytest.mark.parametrize("method", ["lora", "dora"])
def test_layers_have_the_names_and_the_shapes_of_the_reference(name: str, targets: list[str], method: str) -> None:
    document = default_document(name)
    expected = train(document, lora_config(method, r=4, target_modules=targets, bias="lora_only"))
    assert count_adapter(document, r=4, targets=targets, method=method, bias="adapted") == expected


def test_ia3_of_a_convolution_scales_its_outputs() -> None:
    document = default_document("qwen2_vl")
    expected = train(document, peft.IA3Config(target_modules=["proj"], feedforward_modules=[]))
    assert count_adapter(document, targets="proj", method="ia3") == expected


def test_modules_to_save_are_those_of_the_reference() -> None:
    document, saved = default_document("jina_embeddings_v3"), ["q_proj", "o_proj"]
    expected = train(document, lora_config(r=4, target_modules=["fc1"], modules_to_save=saved))
    assert count_adapter(document, r=4, targets="fc1", modules_to_save=saved) == expected


@pytest.mark.parametrize("name", DIFFERENT)
def test_there_is_no_number_if_the_linear_layers_are_not_those_of_the_checkpoint(name: str) -> None:
    with pytest.raises(pc.ParamcountError, match="differ from its checkpoint's matrices"):
        pc.lora(default_document(name))


ARCHITECTURES = (
    "bert", "bloom", "falcon", "gemma3_text", "gpt2", "gpt_neox", "jamba", "llama", "llama4", "opt", "phi3",
    "qwen2_moe", "qwen3_5_text", "qwen3_vl", "t5", "whisper",
)  # fmt: skip


@pytest.mark.parametrize("method", ["rslora", "dora", "ia3", "vera"])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_other_methods_on_all_linear_layers(name: str, method: str) -> None:
    document = default_document(name)
    found = pc.lora(document, r=4, method=method)  # type: ignore[arg-type]
    if method == "vera":
        config = peft.VeraConfig(r=4, target_modules="all-linear")
    elif method == "ia3":
        down = {module.name.rpartition("}.")[2] for module in found.modules if module.component.endswith(".down")}
        config = peft.IA3Config(target_modules="all-linear", feedforward_modules=sorted(down))
    else:
        config = lora_config(method, r=4, target_modules="all-linear")
    assert Trained(found.trainable, found.total, found.adapter_bytes // 4) == train(document, config)


@pytest.mark.parametrize("name", ["bert", "gemma3_text", "gpt2", "llama", "opt", "qwen3_moe", "t5"])
def test_modules_to_save_become_one_copy_each_even_if_they_are_tied(name: str) -> None:
    modules = {"bert": ["decoder", "word_embeddings"], "gpt2": ["lm_head", "wte"], "t5": ["lm_head", "shared"]}
    saved = modules.get(name, ["lm_head", "embed_tokens"])
    document = default_document(name)
    expected = train(document, lora_config(r=4, target_modules="all-linear", modules_to_save=saved))
    assert count_adapter(document, r=4, modules_to_save=saved) == expected


@pytest.mark.parametrize("name", ["gpt2", "llama", "opt", "gemma3_text"])
@pytest.mark.parametrize("method", ["lora", "dora"])
def test_adapters_of_the_embedding_and_the_lm_head(name: str, method: str) -> None:
    targets = ["lm_head", "wte"] if name == "gpt2" else ["lm_head", "embed_tokens"]
    document = default_document(name)
    expected = train(document, lora_config(method, r=4, target_modules=targets))
    assert count_adapter(document, r=4, targets=targets, method=method) == expected


@pytest.mark.parametrize(("name", "saved"), [("gpt2", ["ln_1", "c_proj"]), ("opt", ["fc2"]), ("bert", ["output"])])
def test_saved_modules_keep_their_biases(name: str, saved: list[str]) -> None:
    document = default_document(name)
    config = lora_config(r=4, target_modules="all-linear", modules_to_save=saved, bias="all")
    assert count_adapter(document, r=4, modules_to_save=saved, bias="all")[:2] == train(document, config)[:2]


@pytest.mark.parametrize("bias", ["all", "lora_only"])
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "opt", "qwen2", "t5"])
def test_biases(name: str, bias: str) -> None:
    document = default_document(name)
    expected = train(document, lora_config(r=4, target_modules="all-linear", bias=bias))
    ours = count_adapter(document, r=4, bias="all" if bias == "all" else "adapted")
    assert ours[:2] == expected[:2]  # peft saves BERT's last bias, which two modules share, twice


@pytest.mark.parametrize(
    "name", ["deepseek_v3", "glm4_moe", "gpt_oss", "lfm2_moe", "llama4_text", "mixtral", "nemotron_h", "qwen2_moe"]
)
def test_stacked_experts_are_named_as_parameters(name: str) -> None:
    parameters = ["experts.up_proj" if name == "nemotron_h" else "experts.gate_up_proj", "experts.down_proj"]
    document = default_document(name)
    config = lora_config(r=4, target_modules=[], target_parameters=parameters)
    assert count_adapter(document, r=4, targets="experts") == train(document, config)


@pytest.mark.parametrize("name", ["deepseek_v3", "minimax_m2", "mixtral", "olmoe", "qwen3_moe"])
def test_names_of_experts_before_they_were_stacked(name: str) -> None:
    names = ["w1", "w2", "w3"] if name in ("minimax_m2", "mixtral") else ["gate_proj", "up_proj", "down_proj"]
    document = default_document(name)
    expected = train(document, lora_config(r=4, target_modules=["o_proj", *names]))
    assert count_adapter(document, r=4, targets=["o_proj", *names]) == expected
    with pytest.raises(ValueError, match="fused"):
        train(document, lora_config(r=4, target_modules=["o_proj", names[0]]))
    with pytest.raises(pc.ParamcountError, match="the reference stores them as one parameter"):
        pc.lora(document, targets=["o_proj", names[0]])


@pytest.mark.parametrize("method", ["dora", "ia3", "vera"])
def test_other_methods_do_not_apply_to_stacked_experts(method: str) -> None:
    with pytest.raises(pc.ParamcountError, match="does not apply to routed experts"):
        pc.lora(default_document("gpt_oss"), targets="experts", method=method)  # type: ignore[arg-type]
    if method == "dora":
        config = lora_config("dora", r=4, target_modules=[], **EXPERTS)
        with pytest.raises(ValueError, match="does not work with use_dora"):
            train(default_document("gpt_oss"), config)


@pytest.mark.parametrize("name", [name for name in sorted(MODEL_TYPES)[::12] if can_be_built(name)])
def test_patterns_indices_and_full_names_choose_the_modules_that_peft_adapts(name: str) -> None:
    assert list(find_differences(name)) == []


@pytest.mark.parametrize(
    ("name", "targets"),
    [
        ("bart", ["embed_tokens", "embed_positions"]),
        ("bert", ["position_embeddings", "token_type_embeddings"]),
        ("florence2", ["embed_tokens"]),
        ("pi0", ["embed_tokens"]),
        ("prophetnet", ["word_embeddings", "ngram_embeddings"]),
        ("seamless_m4t", ["embed_tokens", "shared"]),
        ("t5", ["embed_tokens", "shared", "relative_attention_bias"]),
    ],
)
def test_every_embedding_takes_an_adapter(name: str, targets: list[str]) -> None:
    compare_or_refuse(default_document(name), lora_config(r=4, target_modules=targets), r=4, targets=targets)
