"""Sizes of an architecture: required fields, each with its config.json key and default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from paramcount.flow import Data, Unreachable

LARGEST = 2**31
MOST_NAMED = 10_000  # layers, where they are named one by one
Positive = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
Natural = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Flag = Annotated[bool, Field(strict=True)]
Word = Annotated[str, Field(strict=True, min_length=1, max_length=40)]
Indices = Annotated[tuple[Natural, ...], Field(max_length=MOST_NAMED)]
Words = Annotated[tuple[Word, ...], Field(max_length=MOST_NAMED)]
Widths = Annotated[tuple[Positive, ...], Field(min_length=1, max_length=MOST_NAMED)]

REQUIRED: Any = object()  # `absent`: the reference has no default
NULL: Any = object()  # `null`: null itself, which only a field that may be None accepts
ABSENT: Any = object()  # `null`: as if the key were absent


# The config.json key that most architectures read a field from. Where one differs, its own file says so.
USUAL = {
    "vocab_size": "vocab_size",
    "d_model": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads",
    "d_head": "head_dim",
    "d_ff": "intermediate_size",
    "d_expert": "moe_intermediate_size",
    "n_active_experts": "num_experts_per_tok",
    "n_routed_experts": "n_routed_experts",
    "n_shared_experts": "n_shared_experts",
    "n_dense_layers": "first_k_dense_replace",
    "n_positions": "n_positions",
    "d_q_lora": "q_lora_rank",
    "d_kv_lora": "kv_lora_rank",
    "d_nope": "qk_nope_head_dim",
    "d_rope": "qk_rope_head_dim",
    "d_v": "v_head_dim",
    "window": "sliding_window",
    "layer_types": "layer_types",
    "attention_bias": "attention_bias",
    "qkv_bias": "qkv_bias",
    "router_bias": "router_bias",
    "mlp_bias": "mlp_bias",
    "n_mamba_heads": "mamba_n_heads",
    "n_groups": "mamba_n_groups",
    "d_state": "mamba_d_state",
    "d_conv": "mamba_d_conv",
    "conv_bias": "mamba_conv_bias",
    "mixer_bias": "mamba_proj_bias",
    "tie_word_embeddings": "tie_word_embeddings",
    "n_token_types": "type_vocab_size",
    "d_embedding": "embedding_size",
    "is_decoder": "is_decoder",
    "cross_attention": "add_cross_attention",
    "n_encoder_layers": "encoder_layers",
    "n_decoder_layers": "decoder_layers",
    "n_encoder_heads": "encoder_attention_heads",
    "n_decoder_heads": "decoder_attention_heads",
    "d_encoder_ff": "encoder_ffn_dim",
    "d_decoder_ff": "decoder_ffn_dim",
}

Derivation = Callable[[Mapping[str, Any], Mapping[str, Any]], Any]  # (config.json, sizes read so far) to a size
Condition = Callable[[Mapping[str, Any], Mapping[str, Any]], None]  # the same, and raises


class Origin(NamedTuple):
    """Where the value of a field comes from. Keys are paths from the root of a config.json: "text_config.hidden_size"."""

    kind: Literal["read", "default", "derived", "set"]
    keys: tuple[str, ...] = ()  # the one it was read from; those it was derived from

    def add_block(self, block: str) -> Origin:
        """The origin with its keys inside a block of the config.json."""
        return self._replace(keys=tuple(f"{block}.{key}" for key in self.keys)) if self.keys else self


DEFAULT = Origin("default")
SET = Origin("set")  # by a what-if


class Key(NamedTuple):
    """How to read a field from a config.json."""

    names: tuple[str, ...] | None  # the first key present is read; empty: the one in USUAL; None: no key
    absent: Any  # the reference's default, or a Derivation
    null: Any  # what null means: a value, a Derivation, ABSENT, or NULL itself
    at_most: str | None = None  # the field that limits it, because the reference reads no further
    at_root: bool = False  # a derivation reads the whole config.json instead of the architecture's section

    def spellings(self, field: str) -> tuple[str, ...]:
        return () if self.names is None else self.names or (USUAL[field],)


def hf(*names: str, absent: Any = REQUIRED, null: Any = NULL, at_most: str | None = None) -> Any:
    """A field and its config.json keys.

    `absent`, `null`: meaning of a missing key and of null (config.json only; zoo entries state every field). Dots in a key
    lead into nested mappings; a leading slash reads outside of the architecture's section.
    """
    return Field(json_schema_extra={"hf": Key(names, absent, null, at_most)})  # type: ignore[dict-item]


def derived(absent: Derivation, *, at_root: bool = False) -> Any:
    """A field that the reference computes from others. `at_root`: from keys outside of the architecture's section."""
    return Field(json_schema_extra={"hf": Key(None, absent, NULL, at_root=at_root)})  # type: ignore[dict-item]


def get_key(architecture: type[Sizes], field: str) -> Key:
    """The config.json keys and the default of an architecture's field."""
    key: Key = architecture.model_fields[field].json_schema_extra["hf"]  # type: ignore[index,assignment]
    return key._replace(absent=architecture.defaults[field]) if field in architecture.defaults else key


class Sizes(BaseModel):
    """The config of one architecture. A subclass adds the fields and `forward`, the forward pass in shapes."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # built when a config is validated

    reference: ClassVar[str] = ""  # the reference implementation's class, or who published the modelling code
    equivalent_classes: ClassVar[tuple[str, ...]] = ()  # other classes with the same parameters
    base_model: ClassVar[str | None] = (
        None  # the class without a head, unless it ends in Model as `reference` begins; "": there is none
    )
    has_lm_head: ClassVar[bool] = True  # false if another task's head replaces it
    # Name endings of tables that the reference computes, so some or all of its versions do not save them.
    not_saved: ClassVar[tuple[str, ...]] = ()
    # Words in names of tensors that the reference never quantises and keeps in float32, or in float32 if the rest is float16.
    # Source: `_keep_in_fp32_modules_strict` and `_keep_in_fp32_modules` of the class; a router's bias is written so by those without it, too.
    float32: ClassVar[tuple[str, ...]] = ("e_score_correction_bias",)
    float32_if_float16: ClassVar[tuple[str, ...]] = ()
    # Ends of names of matrices that the reference holds as linear layers, though their component is none that is quantised.
    linear_routers: ClassVar[tuple[str, ...]] = ()
    linear_by_component: ClassVar[bool] = (
        True  # False if components do not tell which matrices are linear layers of the reference
    )
    transposable: ClassVar[tuple[str, ...]] = ()  # name endings of matrices that some writers store transposed
    defaults: ClassVar[Mapping[str, Any]] = {}  # overrides of inherited defaults for absent keys
    # Keys that look like sizes, that the reference's config class has or releases carry, and that no parameter depends on.
    unused_keys: ClassVar[tuple[str, ...]] = ()
    rotated: ClassVar[str | None] = None  # the field with the head size that rotary positions rotate
    own_layer_types: ClassVar[bool] = False  # `check` alone says which words layer_types may hold
    # {word of layer_types: {key: field}}: what per_layer_config may give layers of a kind; "" where `conditions` alone look at it.
    layered: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    section: ClassVar[str | None] = None  # the part of a composite config.json these fields are read from

    conditions: ClassVar[tuple[Condition, ...]] = ()  # checks of config.json keys that no weight depends on

    def forward(c, tokens: Data) -> Data:
        raise NotImplementedError

    def task_forward(c, tokens: Data) -> Data:
        """The forward pass of the class that is counted: `forward`, unless the class has another task's head on `body`."""
        return c.forward(tokens)

    def body(c, tokens: Data) -> Data:
        """The forward pass without the LM head, shared by the heads of other tasks."""
        return before_lm_head(c.forward(tokens))

    def mtp(c, tokens: Data) -> Data | None:
        """Multi-token-prediction layers on the model's last hidden state; None if there are none."""
        return None

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        """Parameters that the reference allocates and no forward pass reads."""
        return ()

    def legacy_buffers(c) -> tuple[tuple[str, tuple[int, ...], int], ...]:
        """Buffers that only older released files store: (name, shape, copies). Needs concrete sizes."""
        return ()

    def unused_fields(c) -> tuple[str, ...]:
        """Fields that no layer of this config reads: they cannot contradict others."""
        return ()

    def check(c) -> None:
        """Raises: ParamcountError if the sizes contradict each other for this architecture."""


def before_lm_head(out: Data) -> Data:
    """The input of the LM head; `out` itself if there is none."""
    x = out
    while not any(weight.component == "lm_head" for weight in x.weights):
        if not x.inputs or x.bodies:
            return out
        x = x.inputs[0]
    return x.inputs[0]


class Tower(Sizes):
    """A vision encoder of a multimodal model. A field of this class accepts any encoder that config.json names."""

    section: ClassVar[str | None] = "vision_config"


@cache
def inner_configs(architecture: type[Sizes]) -> dict[str, type[Sizes]]:
    """{field: class} of the fields of a config that are configs themselves, such as a tower's."""
    found = {}
    for name, info in architecture.model_fields.items():
        kinds = (info.annotation, *getattr(info.annotation, "__args__", ()))
        if inner := next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Sizes)), None):
            found[name] = inner
    return found
