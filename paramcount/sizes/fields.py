"""Sizes of an architecture: required fields, each with its config.json key and default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from paramcount.sizes.setting_fields import Setting, setting

if TYPE_CHECKING:
    from paramcount.flow import Data, Unreachable
    from paramcount.sizes.sections import Sections

NO_SETTINGS: Mapping[str, Any] = {}
REQUIRED: Any = object()  # value of `absent`: the reference has no default
NULL: Any = object()  # value of `null`: null itself, which only optional fields accept
ABSENT: Any = object()  # value of `null`: null means the same as a missing key


# The config.json key that most architectures read a field from. An architecture that reads another key declares it.
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

ConfigJson = Mapping[str, Any]  # a parsed config.json, or a section of it
FieldValues = Mapping[str, Any]  # {field: value} of the sizes that were read before
Derivation = Callable[[ConfigJson, FieldValues], Any]  # computes a size
Condition = Callable[[ConfigJson, FieldValues], None]  # raises an error
TaskHeads: TypeAlias = str | Mapping[str, object]  # TaskHead of paramcount.parts.tasks
Buffers = tuple[tuple[str, tuple[int, ...], int], ...]  # ((name, shape, copies), ...)


class Origin(NamedTuple):
    """The origin of a field's value. Keys are paths from the root of a config.json: "text_config.hidden_size"."""

    kind: Literal["read", "default", "derived", "set"]
    keys: tuple[str, ...] = ()  # the key that it was read from, or the keys that it was derived from

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
    fixed: Any = ABSENT  # the value that the reference sets whatever a config.json says; ABSENT if it reads one
    n_aliases: int = 0  # how many of the names are aliases of one key: the last one in a config.json is read

    def spellings(self, field: str) -> tuple[str, ...]:
        return () if self.names is None else self.names or (USUAL[field],)


def hf(
    *names: str,
    absent: Any = REQUIRED,
    null: Any = NULL,
    at_most: str | None = None,
    unstated: Any = REQUIRED,
    at_root: bool = False,
    n_aliases: int = 0,
) -> Any:
    """A field and its config.json keys.

    Dots in a key lead into nested mappings. A leading slash reads outside of the architecture's section. `absent` and
    `null` are for config.json only: zoo entries state every field, unless it has the value `unstated`.

    Args:
        names: Keys; the first one present is read. Default: the key in USUAL.
        absent: The meaning of a missing key: the reference's default, or a derivation.
        null: The meaning of null: a value, a derivation, ABSENT or NULL.
        at_most: The field that limits this one, because the reference reads no further.
        unstated: The value in a zoo entry without the field. Default: an entry must state it.
        at_root: Whether the derivation of a missing key reads the whole config.json.
        n_aliases: How many of the first names are aliases of one key, of which the last one present is read.
    """
    default = ... if unstated is REQUIRED else unstated
    key = Key(names, absent, null, at_most, at_root, n_aliases=n_aliases)
    return Field(default, json_schema_extra={"hf": key})  # type: ignore[dict-item]


def derived(absent: Derivation, *, at_root: bool = False) -> Any:
    """A field that the reference computes from others. `at_root`: from keys outside of the architecture's section."""
    return Field(json_schema_extra={"hf": Key(None, absent, NULL, at_root=at_root)})  # type: ignore[dict-item]


def fixed(value: Any, *, check: Derivation = lambda js, c: None) -> Any:
    """A field that the reference sets to `value` whatever a config.json says.

    Released files may hold another value: a zoo entry states what they hold, and `build_as_reference` sets `value`.

    Args:
        value: The value.
        check: Raises an error for a config.json that the reference refuses.
    """

    def read(js: ConfigJson, c: FieldValues) -> Any:
        check(js, c)
        return value

    return Field(json_schema_extra={"hf": Key(None, read, NULL, fixed=value)})  # type: ignore[dict-item]


@cache
def get_key(architecture: type[Sizes], field: str) -> Key:
    """The config.json keys and the default of an architecture's field."""
    key: Key = architecture.model_fields[field].json_schema_extra["hf"]  # type: ignore[index,assignment]
    return key._replace(absent=find_default(architecture, field, key.absent))


def find_default(architecture: type[Sizes], name: str, declared: Any) -> Any:
    """The default of a field or setting: the nearest one in `defaults`, unless a nearer class declares it anew."""
    for cls in architecture.__mro__:
        own = vars(cls)
        if name in own.get("defaults", {}):
            return own["defaults"][name]
        if name in own or name in get_annotations(cls):
            return declared
    return declared


class NamedPart(NamedTuple):
    """A part that can be of any model type: its section says which."""

    default: Mapping[str, Any]  # the section if it is missing
    is_supported: Callable[[type[Sizes]], bool]
    ending: str = ""  # of the class that is built if a model type has several
    section: str = ""  # if it has not the name of the field
    shared: Callable[[FieldValues], Mapping[str, Any]] = lambda c: {}  # keys that parts before it decide


class Sizes(BaseModel):
    """The sizes of one architecture. A subclass adds the fields and `forward`, the forward pass in shapes."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True, ignored_types=(Setting,)
    )  # built when a config is validated
    __slots__ = ("_settings",)  # a private attribute of pydantic would make each count 5 % slower

    reference: ClassVar[str] = ""  # the reference implementation's class, or who published the modelling code
    # As in config.json, or "model_type.Class" if the class decides it; without them, the name of the file. These and
    # the next ones are those of the class itself: a class that extends it has its own.
    model_types: ClassVar[tuple[str, ...]] = ()
    is_found_by_class: ClassVar[bool] = True  # False if a config.json that names the class alone means another type
    gguf: ClassVar[str] = ""  # possible values of general.architecture in llama.cpp's files; today's writes the first
    gguf_padding_rows: ClassVar[int] = 0  # of the position embedding, which llama.cpp's files leave out
    is_section_type: ClassVar[bool] = False  # whether it can be the language model of a multimodal config.json
    sections: ClassVar[Sections | None] = None  # how the reference reads the sections of a multimodal config.json
    older_sections: ClassVar[Mapping[str, str]] = {}  # {name of a section in released files: its present name}
    # {ending of a class with the head of another task: the head}, or the name of such a table in parts/tasks.py
    task_heads: ClassVar[TaskHeads] = {}
    task_head_prefix: ClassVar[str] = ""  # how the names of these classes begin, if not as that of `reference`
    # The dtype of recurrent states that inference engines take if a config.json names none
    state_dtype: ClassVar[str | None] = None
    equivalent_classes: ClassVar[tuple[str, ...]] = ()  # other classes with the same parameters
    # Modules of publishers, as auto_map names them, that build what the reference builds: a release was compared.
    copied_modules: ClassVar[tuple[str, ...]] = ()
    # The class without a head. None: the name of `reference` with the ending Model. "": there is no such class.
    base_model: ClassVar[str | None] = None
    has_lm_head: ClassVar[bool] = True  # False if the head of another task replaces it
    # Name endings of tensors that the reference computes, so some or all of its versions do not save them.
    not_saved: ClassVar[tuple[str, ...]] = ()
    # Words in names of tensors that the reference never quantises and stores in float32: always, or if the others are
    # float16. Source: the class attributes _keep_in_fp32_modules_strict and _keep_in_fp32_modules; a routing bias is
    # stored so without them, too.
    float32: ClassVar[tuple[str, ...]] = ("e_score_correction_bias",)
    float32_if_float16: ClassVar[tuple[str, ...]] = ()
    # Name endings of matrices that are linear layers in the reference, though their component is usually not quantised.
    linear_routers: ClassVar[tuple[str, ...]] = ()
    # The same for matrices that adapters apply to and bitsandbytes leaves as they are: modules of a subclass of the
    # linear layer, or matrices whose names in checkpoints do not end in ".weight".
    linear_subclasses: ClassVar[tuple[str, ...]] = ()
    # Name endings of matrices of an LM head that the reference does not return as its output embeddings, so that peft
    # takes them for linear layers like the others.
    linear_heads: ClassVar[tuple[str, ...]] = ()
    # {ending of a module's name in checkpoints: endings in the reference}, where it has other linear layers: several if
    # the checkpoint fuses them, the same one for modules that the reference fuses.
    modules: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # {start of a name in checkpoints: start in the reference}, and the same of parts inside names, which begin with a
    # dot. The longest start counts, and every part. Not those of nested models.
    reference_names: ClassVar[Mapping[str, str]] = {}
    # {ending of the name of a token embedding: ending of another module of the reference that has the same table}, if
    # neither checkpoints nor a forward pass name it.
    table_copies: ClassVar[Mapping[str, str]] = {}
    # Whether the components determine which matrices are linear layers in the reference.
    linear_by_component: ClassVar[bool] = True
    # Names of blocks that the reference builds anew for each use, with the parameters of the first one: each of them
    # also has the modules that only one use reads, which checkpoints have once.
    rebuilt_blocks: ClassVar[tuple[str, ...]] = ()
    # Whether the reference has other modules for most matrices of a checkpoint.
    has_other_linear_layers: ClassVar[bool] = False
    # Whether peft takes the names that routed experts and the router have in checkpoints as names of targets. Source:
    # _MODEL_TO_CONVERSION_PATTERN of the reference, _MOE_TARGET_MODULE_MAPPING of peft.
    adapts_experts: ClassVar[bool] = False
    # Last names of modules that peft refuses to adapt by LoRA. Source: _check_lora_target_modules_mamba of peft.
    not_adapted: ClassVar[tuple[str, ...]] = ()
    transposable: ClassVar[tuple[str, ...]] = ()  # name endings of matrices that some writers store transposed
    defaults: ClassVar[Mapping[str, Any]] = {}  # of absent keys, where they are not the inherited ones
    # Keys of the reference's config class or of releases that look like sizes, but that no parameter depends on.
    unused_keys: ClassVar[tuple[str, ...]] = ()
    # Keys that the reference requires, though neither sizes nor settings are read from them: an entry may state them
    # among its settings. With their sections.
    required_keys: ClassVar[tuple[str, ...]] = ()
    rotated: ClassVar[str | None] = None  # the field with the head size that rotary positions rotate
    own_layer_types: ClassVar[bool] = False  # True if only `check` restricts the words in layer_types
    # {word of layer_types: {key: field}}: keys that per_layer_config may set for layers of a kind. The field is "" if
    # only `conditions` read the key.
    layered: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    section: ClassVar[str | None] = None  # the section of a multimodal config.json that these fields are read from
    named_parts: ClassVar[Mapping[str, NamedPart]] = {}  # {field: its section}, for parts of any model type
    # {field of a part: keys that the config class of the whole sets in its section if they are missing or null}
    added_keys: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    # {field of a part: the settings that the config class of the whole gives it if there is no section for it}
    absent_sections: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    conditions: ClassVar[tuple[Condition, ...]] = ()  # checks of config.json keys that no weight depends on
    root_conditions: ClassVar[tuple[Condition, ...]] = ()  # of keys outside of the architecture's section

    # False or None: tokens attend to later ones. Every mask of a decoder in the reference reads it.
    is_causal: ClassVar[Any] = setting("is_causal", default=True, nullable=True)

    @property
    def settings(self) -> Mapping[str, Any]:
        """{setting: value}, as far as they are known."""
        return getattr(self, "_settings", NO_SETTINGS)

    def with_settings(self, values: Mapping[str, Any]) -> Self:
        """The same sizes with these settings."""
        found = self.model_copy()
        object.__setattr__(found, "_settings", values)  # the model is frozen
        return found

    def forward(c, tokens: Data) -> Data:
        raise NotImplementedError

    def task_forward(c, tokens: Data) -> Data:
        """The forward pass of the class that is counted: `forward`, unless the class has the head of another task."""
        return c.forward(tokens)

    def body(c, tokens: Data) -> Data:
        """The forward pass without the LM head, shared by the heads of other tasks."""
        return before_lm_head(c.forward(tokens))

    def mtp(c, tokens: Data) -> Data | None:
        """Multi-token-prediction layers on the model's last hidden state; None if there are none."""
        return None

    def has_unknown_mtp(c) -> bool:
        """Whether a release has multi-token-prediction layers of which nobody knows what they hold."""
        return False

    def unreachable(c, tokens: Data) -> tuple[Unreachable, ...]:
        """Parameters that the reference allocates and no forward pass reads."""
        return ()

    def legacy_buffers(c) -> Buffers:
        """Buffers that only older released files store. Needs concrete sizes."""
        return ()

    def count_unused_positions(c) -> int:
        """How many of max_position_embeddings no token has, because the first token has a later one."""
        return 0

    def unused_fields(c) -> tuple[str, ...]:
        """Fields that no layer of this config reads, so that they cannot contradict others."""
        return ()

    def check(c) -> None:
        """Raises: ParamcountError if the sizes contradict each other for this architecture."""


def find_lm_head(out: Data) -> Data | None:
    """The output of the LM head, before what scales or caps it; None if there is no LM head."""
    x = out
    while not any(weight.component == "lm_head" for weight in x.weights):
        if not x.inputs or x.bodies:
            return None
        x = x.inputs[0]
    return x


def before_lm_head(out: Data) -> Data:
    """The input of the LM head; `out` itself if there is no LM head."""
    logits = find_lm_head(out)
    return out if logits is None else logits.inputs[0]


class Tower(Sizes):
    """A vision encoder of a multimodal model. A field of this class accepts any encoder that config.json names."""

    section: ClassVar[str | None] = "vision_config"


@cache
def inner_configs(architecture: type[Sizes]) -> dict[str, type[Sizes]]:
    """{field: class} of the fields that have sizes of their own, such as a vision encoder."""
    classes = {}
    for name, info in architecture.model_fields.items():
        types = (info.annotation, *getattr(info.annotation, "__args__", ()))
        inner = next((type_ for type_ in types if isinstance(type_, type) and issubclass(type_, Sizes)), None)
        if inner:
            classes[name] = inner
    return classes


@cache
def list_fixed_fields(architecture: type[Sizes]) -> dict[str, Any]:
    """{field: value} of the fields that the reference sets whatever a config.json says."""
    keys = {
        name: get_key(architecture, name)
        for name in architecture.model_fields
        if name not in inner_configs(architecture)
    }
    return {name: key.fixed for name, key in keys.items() if key.fixed is not ABSENT}


def list_fixed_paths(sizes: Sizes, prefix: str = "") -> dict[str, Any]:
    """{path: the value that the reference sets whatever the config.json says}, those of inner configs included."""
    paths = {prefix + name: value for name, value in list_fixed_fields(type(sizes)).items()}
    for name in inner_configs(type(sizes)):
        if isinstance(part := getattr(sizes, name), Sizes):
            paths |= list_fixed_paths(part, f"{prefix}{name}.")
    return paths


def build_as_reference(sizes: Sizes) -> Sizes:
    """The sizes that the reference builds for a model whose released files differ; the same object if none differ."""
    values = list_fixed_fields(type(sizes))
    changes = {name: value for name, value in values.items() if getattr(sizes, name) != value}
    for name in inner_configs(type(sizes)):
        part = getattr(sizes, name)
        if isinstance(part, Sizes) and (built := build_as_reference(part)) is not part:
            changes[name] = built
    return sizes.model_copy(update=changes) if changes else sizes
