"""The same tokens through a trace and through the reference: tiny configs of both."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from paramcount.api import load
from paramcount.architectures import split_name
from paramcount.tracing.run import has_encoder_input, trace_model
from paramcount.tracing.shapes import TraceOptions
from paramcount.tracing.trace import Trace
from tests import cases, model_types
from tests.model_types import MODEL_TYPES
from tests.oracle import differential, images, sounds
from tests.oracle.modules import Cached, Call, list_cached, watch_experts, watch_modules

TOKENS, SOURCE, TEXTS, PAST = 6, 7, 2, 9
# No two of these sizes are equal, so that no shape fits by chance; the window is shorter than the past.
USUAL = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 10,
    "intermediate_size": 44, "max_position_embeddings": 64,
}  # fmt: skip
NO_WIDTH = {key: size for key, size in USUAL.items() if key != "head_dim"}
LATENT = {
    **USUAL, "num_key_value_heads": 4, "q_lora_rank": 20, "kv_lora_rank": 16, "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 6, "v_head_dim": 8, "head_dim": 6,
    "first_k_dense_replace": 1, "n_routed_experts": 8, "num_experts_per_tok": 3, "n_shared_experts": 2,
    "moe_intermediate_size": 14, "n_group": 2,
    "topk_group": 2, "topk_method": "greedy", "routed_scaling_factor": 1.0,
}  # fmt: skip
# Every setting that a latent decoder reads has another value than its default.
YARN = {
    "rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0,
    "mscale_all_dim": 0.8, "beta_fast": 4, "beta_slow": 1,
}  # fmt: skip
VARIED = {
    **LATENT, "rms_norm_eps": 1e-2, "hidden_act": "gelu", "attention_bias": True, "n_group": 4, "topk_group": 2,
    "norm_topk_prob": False, "routed_scaling_factor": 1.7, "rope_parameters": YARN,
}  # fmt: skip
# {model type, or "model type, what is special": a config in which no two sizes are equal}
CONFIGS = model_types.load_configs()
EVERY_WAY = (
    "gpt2",
    "llama",
    "qwen2",
    "qwen2_moe",
    "qwen3",
    "qwen3_moe",
    "deepseek_v2",
    "deepseek_v3",
    "mistral",
    "mixtral",
    "gpt_oss",
    "t5",
    "gemma3_text",
    "mamba",
    "mamba2",
    "jamba",
    "qwen3_next",
    "bart",
    "falcon",
    "falcon, grouped",
    "gpt_bigcode",
    "bloom",
    "zamba2",
    "recurrent_gemma",
    "mllama.MllamaForCausalLM",
    "gemma3n_text",
    "deepseek_v32",
    "bert",
)

# Of an architecture that is no key of CONFIGS, a config without these keys is taken: the declaration does not know of
# them.
UNTRACED = ("'use_bidirectional_attention': 'all'",)
LARGEST = 1_000_000  # parameters


class ComparedRun(NamedTuple):
    """The trace, and what the reference did with the same tokens."""

    trace: Trace
    calls: Mapping[str, Call]
    products: Mapping[str, list[tuple[int, ...]]]
    output: Any
    kept: list[Cached]


@cache
def make_document(name: str) -> dict[str, Any]:
    """A config.json: one of CONFIGS, whose names have the model type before a comma, or else one that is known to
    run.
    """
    if name in CONFIGS:
        model_type, _ = split_name(name.partition(",")[0])
        return {
            "model_type": model_type,
            "architectures": [MODEL_TYPES[name.partition(",")[0]].cls],
            **CONFIGS[name],
        }
    known = [
        case
        for case in cases.load_cases()[name]
        if "refused" not in case and case["total"] < LARGEST and not any(word in str(case) for word in UNTRACED)
    ]
    configs: list[dict[str, Any]] = [case["config"] for case in sorted(known, key=lambda case: -case["total"])]
    configs += [
        config | {"num_key_value_heads": config["num_attention_heads"]}
        for config in configs
        if "num_attention_heads" in config
    ]
    for config in configs:
        try:
            model = build_model(config, config.get("architectures", [MODEL_TYPES[name].cls])[0])
            run_reference(model, TOKENS, 1, make_other_inputs(model, trace_model(load(config), TraceOptions(1)), 1))
        except (
            AttributeError,
            IndexError,
            RuntimeError,
            StopIteration,
            ValueError,
        ):  # some that the reference runs, it cannot run with its eager attention or with a cache
            continue
        return config
    raise AssertionError(f"no case of {name} runs with a cache")


def build_model(config: dict[str, Any], cls_name: str) -> Any:
    """The model of the reference, with its attention in the open and weights that are numbers."""
    import torch

    model = differential.build_model(config, cls_name, "cpu").eval()
    model.set_attn_implementation("eager")
    model.set_experts_implementation("eager")
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(1)
        for weight in model.parameters():
            weight.normal_(0, 0.1)
    return model


@cache
def load_model(name: str) -> Any:
    return build_model(make_document(name), find_class(name))


def find_class(name: str) -> str:
    found: str = make_document(name).get("architectures", [MODEL_TYPES[name.partition(",")[0]].cls])[0]
    return found


@cache
def run_both(name: str, asked: TraceOptions) -> ComparedRun:
    """The same tokens through both: those before them first, if there are any."""
    model, texts = load_model(name), asked.batch or 1
    sizes = load(make_document(name))
    trace = trace_model(sizes, asked._replace(source=SOURCE if has_encoder_input(sizes) else None))
    beside = make_other_inputs(model, trace_model(sizes, TraceOptions(1)), texts)
    if asked.past is not None:
        output = run_reference(model, asked.past, texts, beside)
        kept: tuple[str, ...] = (
            "past_key_values",
            "cache_params",
            "state",
            "mems",
            "use_mems",
            "encoder_hidden_states",
            "use_cache",
            "pixel_values",
            "qformer_input_ids",
        )
        if "encoder_last_hidden_state" in output:
            output["encoder_outputs"] = model.get_encoder()(beside["input_ids"])
            kept = ("past_key_values", "encoder_outputs")
        beside = {key: given for key, given in (*beside.items(), *output.items()) if key in kept}
    with watch_modules(model) as calls, watch_experts(model) as products:
        output = run_reference(model, asked.tokens, texts, beside)
    prefix = model.base_model_prefix + "."
    if type(model).__name__ in images.ALWAYS_SEE:  # the trace is that of a text alone
        calls = {name: call for name, call in calls.items() if name.startswith("language_model.")}
    return ComparedRun(
        trace,
        {module.removeprefix(prefix): call for module, call in calls.items()},
        products,
        output,
        list_cached(model, beside | dict(output)),
    )


def make_other_inputs(model: Any, trace: Trace, texts: int) -> dict[str, Any]:
    """What the reference takes beside its tokens: another text, an encoder's output, a cache that it does not make
    itself.
    """
    import torch
    from transformers import DynamicCache

    if type(model).__name__ in images.ALWAYS_SEE:
        found = differential.make_image(model.config, type(model).__name__, make_token_ids(1, texts))
        del found["input_ids"]
        return found | ({"use_cache": True} if trace.cache else {})
    parts = {step.part for step in trace.steps}
    if "encoder" in parts and any("source" in step.out for step in trace.steps):
        return {"input_ids": make_token_ids(SOURCE, texts)}
    given: dict[str, Any] = (
        {"use_mems" if model.config.model_type == "xlnet" else "use_cache": True} if trace.cache else {}
    )
    if "cross_attention" in parts:
        crossing = (step for step in trace.steps if step.part == "cross_attention" and step.text.startswith("keys"))
        width = next(crossing).inputs[0][-1]  # a fused matrix comes before the keys and values that it gives
        name = "cross_attention_states" if model.config.model_type == "mllama_text_model" else "encoder_hidden_states"
        given[name] = torch.ones((texts, SOURCE, int(width)))
    elif model.config.model_type == "recurrent_gemma":
        given["past_key_values"] = DynamicCache(config=model.config)
    return given


def run_reference(model: Any, n: int, texts: int, beside: Mapping[str, Any]) -> Any:
    import torch

    name = "decoder_input_ids" if "input_ids" in beside or "encoder_outputs" in beside else "input_ids"
    with torch.no_grad():
        ids = differential.repeat_for_codebooks(model, make_token_ids(n, texts))
        output = model(**{name: ids}, **beside, output_attentions=True)
    return output.get("language_model_outputs", output)


def make_token_ids(n: int, texts: int) -> Any:
    import torch

    return (7 * torch.arange(n * texts).reshape(texts, n)) % 89 + 3


sounds.listen(globals(), "make_document")
