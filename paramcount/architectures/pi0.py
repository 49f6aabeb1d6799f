"""π0: PaliGemma reads images and a task, and a smaller Gemma beside it, the action expert, denoises actions.

Each layer of the action expert attends to its own keys and values and to those of PaliGemma's layer of the same index.
"""

from collections.abc import Mapping
from math import pi
from typing import Any, ClassVar

from paramcount.architectures.gemma import Gemma
from paramcount.architectures.llava import PaliGemma
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError

VLM, EXPERT = "paligemma_with_expert.paligemma.model.", "paligemma_with_expert.gemma_expert."
LANGUAGE, ACTIONS = VLM + "language_model.", EXPERT + "model."
VLM_SECTION = {
    "model_type": "paligemma",
    "text_config": {
        "model_type": "gemma", "hidden_size": 2048, "num_hidden_layers": 18, "intermediate_size": 16384,
        "num_attention_heads": 8, "num_key_value_heads": 1, "vocab_size": 257152,
    },
    "vision_config": {
        "model_type": "siglip_vision_model", "intermediate_size": 4304, "hidden_size": 1152, "patch_size": 14,
        "image_size": 224, "num_hidden_layers": 27, "num_attention_heads": 16, "vision_use_head": False,
    },
    "projection_dim": 2048,
    "image_token_id": 257152,
}  # fmt: skip
EXPERT_SECTION = {
    "model_type": "gemma", "hidden_size": 1024, "num_hidden_layers": 18, "intermediate_size": 4096,
    "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256,
}  # fmt: skip


def frequency_ratio(config: Mapping[str, Any], c: Any) -> float:
    """Of the fastest to the slowest sine of the time."""
    return float(config.get("max_period", 4.0) / config.get("min_period", 4e-3))


def highest_frequency(config: Mapping[str, Any], c: Any) -> float:
    return 2 * pi / float(config.get("min_period", 4e-3))


def shared_vocabulary(c: sizes.FieldValues) -> Mapping[str, Any]:
    return {"vocab_size": c["vlm"].language.vocab_size}


class Pi0(sizes.Sizes):
    """Source: arXiv:2410.24164, section IV and appendix B; modeling_pi0.py of the reference.

    The flow is one denoising step. The keys and values of images and text stay the same in all steps.
    """

    reference = "PI0ForConditionalGeneration"
    reference_names = {
        "paligemma_with_expert.gemma_expert.model.": "model.dit.",
        "paligemma_with_expert.gemma_expert.lm_head.": "model.dit.embed_tokens.",
        "paligemma_with_expert.paligemma.model.language_model.model.": "model.vlm.language_model.",
        "paligemma_with_expert.paligemma.model.": "model.vlm.",
        "action_": "embed_action_time.action_",
        "action_out_proj.": "action_out_proj.",
        "state_proj.": "embed_action_time.state_proj.",
    }
    base_model = ""
    unused_keys = ("chunk_size", "num_inference_steps")
    named_parts: ClassVar[Mapping[str, sizes.NamedPart]] = {
        "vlm": sizes.NamedPart(VLM_SECTION, lambda part: issubclass(part, PaliGemma), section="vlm_config"),
        "expert": sizes.NamedPart(
            EXPERT_SECTION, lambda part: part is Gemma, section="dit_config", shared=shared_vocabulary
        ),
    }  # fmt: skip

    vlm: sizes.Sizes
    expert: sizes.Sizes
    d_robot_state: sizes.Positive = sizes.hf("max_state_dim")
    d_action: sizes.Positive = sizes.hf("max_action_dim")

    time_base = sizes.setting(default=frequency_ratio)
    time_scale = sizes.setting(default=highest_frequency)

    def forward(c: Any, tokens: Data) -> Data:
        x, y = c.read(tokens, c.embed_actions())
        velocity = ops.linear(ops.other_tokens(y), "action_out_proj", "other", c.d_action, bias=True)
        return ops.bundle(velocity, x)

    def embed_actions(c: Any) -> Data:
        """The state of the robot, then noisy actions, each with the time."""
        d = c.expert.d_model
        time = ops.time_sinusoids(ops.given("time", 1, 1), d, c.time_base, c.time_scale)
        x = ops.linear(ops.given("noisy actions", "actions", c.d_action), "action_in_proj", "other", d, bias=True)
        x = ops.linear(ops.join(x, ops.expand_to_tokens(x, time)), "action_time_mlp_in", "other", d, bias=True)
        x = ops.linear(ops.activate(x, "silu"), "action_time_mlp_out", "other", d, bias=True)
        return ops.put_in_front(
            ops.linear(ops.given("state", 1, c.d_robot_state), "state_proj", "other", d, bias=True), x
        )

    def read(c: Any, tokens: Data, y: Data) -> tuple[Data, Data]:
        """Images and text, and the state with the actions, through the layers."""
        language, expert = c.vlm.language, c.expert
        x = ops.block(tokens, LANGUAGE, language.embed)
        x = ops.insert(x, tokens, c.see(), c.vlm.image_token)
        kinds = [("both", expert.n_layers), ("PaliGemma alone", language.n_layers - expert.n_layers)]
        x = ops.layers(x, "", kinds, lambda kind, x, y: c.layer(x, y, kind), others=(y,))
        y = ops.second_value(x, expert.d_model, "actions")
        return language.norm(x, LANGUAGE + "model.norm"), expert.norm(y, ACTIONS + "norm")

    def see(c: Any) -> Data:
        image = ops.block(c.vlm.vision.image(), VLM + "vision_tower.", c.vlm.encode, part="vision")
        return ops.block(image, VLM + "multi_modal_projector.", c.vlm.project, part="projector")

    def layer(c: Any, x: Data, y: Data, kind: str) -> tuple[Data, Data]:
        language, expert = c.vlm.language, c.expert
        prefix = LANGUAGE + "model.layers.{layer}."
        q, far, seen = project(language, x, prefix)
        after = finish(language, x, ops.attend_to_memory(q, far, seen), prefix)
        if kind != "both":
            return after, y
        prefix = ACTIONS + "layers.{layer}."
        q, k, v = project(expert, y, prefix, after=x)
        return after, finish(expert, y, attend_to_both(q, (far, k), (seen, v)), prefix)

    def unreachable(c: Any, tokens: Data) -> tuple[ops.Unreachable, ...]:
        expert = c.expert
        table = ops.lookup(tokens, EXPERT + "lm_head.weight", "embedding", expert.vocab_size, expert.d_model)
        return (ops.Unreachable(table, "the action expert reads no tokens"),)

    def check(c: Any) -> None:
        language, expert = c.vlm.language, c.expert
        if language.__class__ is not Gemma:
            raise ParamcountError("is not supported", where=FieldName("vlm.language.architecture"), expected="gemma")
        if c.vlm.d_projected != language.d_model:
            expected = f"{language.d_model}, the size of the language model"
            raise sizes.make_value_error(c.vlm.d_projected, FieldName("vlm.d_projected"), expected)
        for field in ("vocab_size", "n_kv_heads", "d_head"):
            if (found := getattr(expert, field)) != (n := getattr(language, field)):
                expected = f"{n}, as in the language model"
                raise ParamcountError(f"= {found}", where=FieldName(f"expert.{field}"), expected=expected)
        if expert.n_layers > language.n_layers:
            found, expected = f"= {expert.n_layers}", f"at most {language.n_layers}, the layers of the language model"
            raise ParamcountError(found, where=FieldName("expert.n_layers"), expected=expected)
        if expert.d_model % 2:
            raise ParamcountError(f"= {expert.d_model}", where=FieldName("expert.d_model"), expected="an even number")


def project(c: Any, x: Data, prefix: str, after: Data | None = None) -> tuple[Data, Data, Data]:
    """Queries, keys and values of one of Gemma's layers. `after`: what stands before x."""
    h, name = c.norm(x, prefix + "input_layernorm"), prefix + "self_attn."
    q = ops.linear(h, name + "q_proj", "qkv.q", (c.n_heads, c.d_head), bias=c.attention_bias)  # [n, n_heads, d_head]
    k = ops.linear(h, name + "k_proj", "qkv.k", (c.n_kv_heads, c.d_head), bias=c.attention_bias)
    v = ops.linear(h, name + "v_proj", "qkv.v", (c.n_kv_heads, c.d_head), bias=c.attention_bias)
    return ops.rope(q, c.rope, after=after), ops.rope(k, c.rope, after=after), v


def attend_to_both(q: Data, keys: tuple[Data, Data], values: tuple[Data, Data]) -> Data:
    """The state and the actions attend to images and text; the state to itself alone, the actions to all of both."""
    (far, k), (seen, v) = keys, values
    before, all_rows = "prompt and state", "prompt and actions"
    own = [ops.stack_rows(x, ops.first_token(y), length=before) for x, y in ((far, k), (seen, v))]
    first = ops.attend(ops.first_token(q), *own)  # [n, n_heads, d_head]
    every = [ops.stack_rows(x, y, length=all_rows) for x, y in ((far, k), (seen, v))]
    return ops.put_in_front(first, ops.attend(ops.other_tokens(q), *every))


def finish(c: Any, x: Data, a: Data, prefix: str) -> Data:
    """The rest of one of Gemma's layers behind the attended values."""
    x = x + ops.linear(a, prefix + "self_attn.o_proj", "output_projection", c.d_model, bias=c.attention_bias)
    h = c.norm(x, prefix + "post_attention_layernorm")
    return x + parts.gated_mlp(h, prefix + "mlp.", "mlp", c.d_ff, activation=c.activation)
