"""Sizes of an architecture: required fields, each with its config.json key and default."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, update_wrapper
from inspect import get_annotations
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    Self,
    TypeAlias,
    TypeVar,
    get_origin,
)

from paramcount.errors import ParamcountError
from paramcount.flow.operation import Unknown, is_known
from paramcount.sizes.setting_fields import OF_REFERENCE, Setting, list_settings, setting
from paramcount.sizes.settings import AUTO, TABLE, get_config_class, get_settings, read_line

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic.fields import FieldInfo
    from pydantic_core import CoreSchema

    from paramcount.flow import Data, Unreachable
    from paramcount.sizes.sections import Sections

DEFAULTS = Path(__file__).with_name("defaults.json")
REQUIRED: Any = object()  # value of `absent`: the reference has no default
NULL: Any = object()  # value of `null`: null itself, which only optional fields accept
ABSENT: Any = object()  # value of `null`: null means the same as a missing key
TIED = "tie_word_embeddings"
TAKES_NULL = frozenset({type(None)})


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


_Section = TypeVar("_Section")
_Values = TypeVar("_Values")
_Result = TypeVar("_Result")
_Options = ParamSpec("_Options")


def options_first(
    function: Callable[Concatenate[_Section, _Values, _Options], _Result],
) -> Callable[_Options, Callable[[_Section, _Values], _Result]]:
    """A derivation, condition or setting with options, which are given before a config.json is read:
    `needed("num_experts")(js, c)`."""

    def take_options(*options: _Options.args, **named: _Options.kwargs) -> Callable[[_Section, _Values], _Result]:
        return lambda js, c: function(js, c, *options, **named)

    return update_wrapper(take_options, function)


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
    usual: Any = REQUIRED  # the default if neither `absent` nor the reference's config class states one

    def spellings(self, field: str) -> tuple[str, ...]:
        return () if self.names is None else self.names or (USUAL[field],)


class Field:
    """A size of an architecture, as its class states it. On a config it is the value."""

    __slots__ = ("is_late", "key", "name", "owner", "unstated")

    def __init__(self, key: Key | None = None, unstated: Any = REQUIRED, *, is_late: bool = False) -> None:
        self.key = key  # None for a part, which has sizes of its own
        self.unstated = unstated  # the value in a zoo entry without the field; REQUIRED if an entry must state it
        self.is_late = is_late  # whether its place is in the class that declares it anew, rather than in the base
        self.name = ""
        self.owner: type = object

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, c: Any, owner: type | None = None) -> Any:
        return self if c is None else c.find_missing(self.name)

    @property
    def is_required(self) -> bool:
        return self.unstated is REQUIRED

    @property
    def annotation(self) -> Any:
        """Its type, with limits."""
        found = vars(self.owner)["__annotations__"][self.name]
        return eval(found, vars(sys.modules[self.owner.__module__])) if isinstance(found, str) else found  # noqa: S307 ours


def hf(
    *names: str,
    absent: Any = REQUIRED,
    null: Any = NULL,
    at_most: str | None = None,
    unstated: Any = REQUIRED,
    at_root: bool = False,
    n_aliases: int = 0,
    usual: Any = REQUIRED,
    late: bool = False,
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
        usual: As `absent`, for classes whose config class in the reference states no default.
        late: Whether a derivation reads fields that stand behind the same field of the base class.
    """
    key = Key(names, absent, null, at_most, at_root, n_aliases=n_aliases, usual=usual)
    return Field(key, unstated, is_late=late)


def derived(absent: Derivation, *, at_root: bool = False, late: bool = False) -> Any:
    """A field that the reference computes from others. `at_root`: from keys outside of the architecture's section.
    `late`: see `hf`.
    """
    return Field(Key(None, absent, NULL, at_root=at_root), is_late=late)


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

    return Field(Key(None, read, NULL, fixed=value))


def constant(value: Any) -> Any:
    """A value that all models of a class have, in place of a field of its base."""
    return value


@cache
def get_key(architecture: type[Sizes], field: str) -> Key:
    """The config.json keys and the default of an architecture's field."""
    key = architecture.fields[field].key
    if key is None:
        raise KeyError(field)
    types = get_settings(find_config_class(architecture)).types if callable(key.null) else {}
    is_refused = all(type(None) not in types.get(name, TAKES_NULL) for name in key.spellings(field))
    return key._replace(
        absent=find_default(architecture, field, key.absent), null=NULL if types and is_refused else key.null
    )


def find_default(architecture: type[Sizes], name: str, declared: Any) -> Any:
    """The default of a field or setting: the nearest one in `defaults`, unless a nearer class declares it anew."""
    for cls in architecture.__mro__:
        own = vars(cls)
        if name in own.get("defaults", {}):
            return own["defaults"][name]
        if name in own or name in get_annotations(cls):
            break
    if declared is OF_REFERENCE:
        setting = list_settings(architecture)[name]
        return find_reference_default(architecture, setting.names, setting.usual)
    field = architecture.fields.get(name)
    if declared is not REQUIRED or field is None or field.key is None:
        return declared
    return find_reference_default(architecture, field.key.spellings(name), field.key.usual)


def find_reference_default(architecture: type[Sizes], keys: Iterable[str], otherwise: Any) -> Any:
    """The default that the config class of the reference has for the first of the keys that it knows."""
    known = read_line(DEFAULTS, find_config_class(architecture))  # as tests/oracle/settings.py found them
    value = next((known[key] for key in keys if key in known), otherwise)
    return tuple(value) if isinstance(value, list) else value


@cache
def find_config_class(architecture: type[Sizes]) -> str:
    """The config class of the reference that has the keys of an architecture; "" if the reference has none.

    An architecture that the reference does not have takes the one of the class that it extends.
    """
    for cls in architecture.__mro__:
        own = vars(cls)
        if "config_class" in own:
            return str(own["config_class"])
        names = own.get("model_types") or ((cls.__module__.rpartition(".")[2],) if "reference" in own else ())
        for name in names[:1]:
            if found := get_config_class(name) or get_config_class(name.rpartition(".")[0]):
                return found if issubclass(cls, Tower) else find_section_class(found, architecture.section)
    return ""


def find_section_class(config_class: str, section: str | None) -> str:
    """The config class of a section. Dots lead into sections."""
    for name in section.split(".") if section else ():
        found: str = read_line(TABLE, config_class).get("sections", {}).get(name, "")
        config_class = get_config_class(found[1:]) if found.startswith(AUTO) else found
    return config_class


class NamedPart(NamedTuple):
    """A part that can be of any model type: its section says which."""

    default: Mapping[str, Any]  # the section if it is missing
    is_supported: Callable[[type[Sizes]], bool]
    ending: str = ""  # of the class that is built if a model type has several
    section: str = ""  # if it has not the name of the field
    shared: Callable[[FieldValues], Mapping[str, Any]] = lambda c: {}  # keys that parts before it decide


def is_class_variable(annotation: object) -> bool:
    """Whether an annotation, as text or not, is that of an attribute of the class itself."""
    if isinstance(annotation, str):
        return annotation.startswith("ClassVar")
    return annotation is ClassVar or get_origin(annotation) is ClassVar


class Architecture(type):
    """A class of sizes. Its annotated attributes, and those of its bases, are fields, but for ClassVar and `_names`.

    Fields of bases come first, and whether the LM head is tied comes last. A field that a class declares anew keeps its
    place unless it is late; other values in its place remove it.
    """

    fields: Mapping[str, Field]  # {name: field}, in order

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
        super().__init__(name, bases, namespace)
        fields: dict[str, Field] = {}
        for base in reversed(cls.__mro__):
            annotations = vars(base).get("__annotations__", {})
            for attribute in fields.keys() & vars(base).keys() - annotations.keys():
                del fields[attribute]
            for attribute, annotation in annotations.items():
                if attribute[0] == "_" or is_class_variable(annotation):
                    fields.pop(attribute, None)
                    continue
                field = vars(base).get(attribute)
                if field is None:
                    field = Field()
                    field.__set_name__(base, attribute)
                    setattr(base, attribute, field)
                if field.is_late:
                    fields.pop(attribute, None)
                fields[attribute] = field
        if TIED in fields:
            fields[TIED] = fields.pop(TIED)
        cls.fields = fields


class Sizes(metaclass=Architecture):
    """The sizes of one architecture: ints, int64 arrays or symbols. They are never changed.

    A subclass adds the fields and `forward`, the forward pass in shapes. An object may keep the config.json that it was
    read from: its settings are read from there when something asks for them.
    """

    __slots__ = ("_document", "_place", "_settings", "_source")
    _document: Mapping[str, Any]
    _place: str  # the path to it in a larger config.json
    _settings: dict[str, Any]  # those that were read
    _source: Callable[[str], Any] | None  # of fields without a value

    reference: ClassVar[str] = ""  # the reference implementation's class, or who published the modelling code
    # As in config.json, or "model_type.Class" if the class decides it; without them, the name of the file. These and
    # the next ones are those of the class itself: a class that extends it has its own.
    model_types: ClassVar[tuple[str, ...]] = ()
    is_found_by_class: ClassVar[bool] = True  # False if a config.json that names the class alone means another type
    # {model type that releases state, which is another architecture's: words in the names of their classes, of their
    # own modeling code (auto_map) or of their keys, each of which means this one}
    released_as: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    gguf: ClassVar[str] = ""  # possible values of general.architecture in llama.cpp's files; today's writes the first
    gguf_padding_rows: ClassVar[int] = 0  # of the position embedding, which llama.cpp's files leave out
    # {module: its name in llama.cpp's files, if not that of most models}, for classes that extend it, too
    gguf_names: ClassVar[Mapping[str, str]] = {}
    # The kind of rotary scaling whose factors llama.cpp's files hold in tensors
    gguf_rope_factors: ClassVar[str | None] = None
    # Whether they state the number of KV heads layer by layer, 0 where there is no attention
    gguf_kv_heads_by_layer: ClassVar[bool] = False
    # Whether its config class in the reference replaces the keys of rotary positions before it checks them: conditions
    # check what it uses. And whether they reach the language model, which fills in missing ones. For settings.json.
    ignores_rope: ClassVar[bool] = False
    passes_rope_on: ClassVar[bool] = False
    is_section_type: ClassVar[bool] = False  # whether it can be the language model of a multimodal config.json
    sections: ClassVar[Sections | None] = None  # how the reference reads the sections of a multimodal config.json
    older_sections: ClassVar[Mapping[str, str]] = {}  # {name of a section in released files: its present name}
    replaced_sections: ClassVar[Mapping[str, str]] = {}  # the same of sections that count instead of the present one
    # {key that names another model: (section that stands for it, {name: the config.json of that model})}
    named_sections: ClassVar[Mapping[str, tuple[str, Mapping[str, Any]]]] = {}
    # {ending of a class with the head of another task: the head}, or the name of such a table in parts/tasks.py
    task_heads: ClassVar[TaskHeads] = {}
    # {class that only publishers have: its head}, or the name of such a table in parts/published_heads.py
    published_heads: ClassVar[TaskHeads] = {}
    task_head_prefix: ClassVar[str] = ""  # how the names of these classes begin, if not as that of `reference`
    # The dtype of recurrent states that inference engines take if a config.json names none
    state_dtype: ClassVar[str | None] = None
    equivalent_classes: ClassVar[tuple[str, ...]] = ()  # other classes with the same parameters
    # Whether it drafts tokens for another model, the target, whose model type its config.json has: the class says more.
    is_draft: ClassVar[bool] = False
    draft_key: ClassVar[str] = ""  # that only such drafts of one layer have, if releases name the class of their target
    shared_with_target: ClassVar[tuple[str, ...]] = ()  # its tensors that are copies of the target's
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
    # Of absent keys, where they are not those of the reference's config class, which are in defaults.json.
    defaults: ClassVar[Mapping[str, Any]] = {}
    config_class: ClassVar[str] = ""  # of the reference, for a part without a model type
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

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """How pydantic validates a field of this class: see `paramcount.sizes.validation`."""
        from paramcount.sizes.validation import make_part_schema

        return make_part_schema(cls, handler)

    def __init__(self, **values: Any) -> None:
        """Sizes that were validated before. Fields that an entry need not state may be missing."""
        fields = type(self).fields
        if values.keys() == fields.keys():
            self.__dict__.update({name: values[name] for name in fields})
            return
        if not values.keys() <= fields.keys():
            raise TypeError(f"{type(self).__name__} has no {', '.join(values.keys() - fields.keys())}")
        for name, field in fields.items():
            if name not in values and field.is_required:
                raise TypeError(f"{type(self).__name__} needs {name}")
        self.__dict__.update({name: values.get(name, field.unstated) for name, field in fields.items()})

    @classmethod
    def make(cls, values: Mapping[str, Any], find_missing: Callable[[str], Any] | None = None) -> Self:
        """Sizes with these values, symbols among them. `find_missing`: the value of a field that is not given."""
        found = object.__new__(cls)
        found.__dict__.update(values)
        object.__setattr__(found, "_source", find_missing)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is never changed: replace({name}=…) makes another one")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.__dict__.values())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def replace(self, **changes: Any) -> Self:
        """The same sizes but for these."""
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__)
        found.__dict__.update(changes)
        if hasattr(self, "_document"):
            found.keep_document(self._document, self._place)
        return found

    def without_document(self) -> Self:
        """The same sizes without their settings, on which no weight depends."""
        parts = {
            name: bare
            for name in inner_configs(type(self))
            if isinstance(part := self.__dict__.get(name), Sizes) and (bare := part.without_document()) is not part
        }
        return self.make({**self.__dict__, **parts}) if parts or hasattr(self, "_document") else self

    def keep_document(self, document: Mapping[str, Any], place: str = "") -> None:
        """Read settings from this config.json from now on. `place`: its path, if it is a section of another one."""
        object.__setattr__(self, "_document", document)
        object.__setattr__(self, "_place", place)
        object.__setattr__(self, "_settings", {})

    def keep_settings(self, values: Mapping[str, Any]) -> None:
        """Have these settings and no others from now on."""
        known = {name: values.get(name, Unknown(name)) for name in list_settings(type(self))}
        object.__setattr__(self, "_settings", known)

    def find_missing(self, name: str) -> Any:
        """The value of a field that was not given. Raises: AttributeError if nothing knows it."""
        find: Callable[[str], Any] | None = getattr(self, "_source", None)
        if find is None:
            raise AttributeError(name)
        return find(name)

    def to_dict(self, *, with_defaults: bool = True) -> dict[str, Any]:
        """{field: value}, those of parts as dictionaries. `with_defaults`: with those that an entry need not state."""
        return {
            name: value.to_dict(with_defaults=with_defaults) if isinstance(value, Sizes) else value
            for name, value in self.__dict__.items()
            if with_defaults or value != type(self).fields[name].unstated
        }

    def get_setting(self, setting: Setting) -> Any:
        """The value of a setting; Unknown if nothing states it, or if it cannot be computed.

        Raises: ParamcountError for a value of the wrong type or out of range.
        """
        try:
            known: dict[str, Any] = self._settings
        except AttributeError:
            return Unknown(setting.name)
        if setting.name not in known:
            name = None if setting.is_outside else self.section
            try:
                section = find_section(self._document, name)
                known[setting.name] = self.read_setting(setting, section, f"{name}." if name else "")
            except ParamcountError as error:
                raise (error.add_block(self._place) if self._place else error) from None
        return known[setting.name]

    def read_setting(self, setting: Setting, section: Mapping[str, Any], place: str = "") -> Any:
        """The value of a setting in a section of a config.json, which is at a place; Unknown if it cannot be computed.

        Raises: ParamcountError for a value of the wrong type or out of range.
        """
        try:
            return setting.read(section, self, find_default(type(self), setting.name, setting.default), place)
        except ParamcountError:
            raise
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
            return Unknown(setting.name)

    @property
    def settings(self) -> Mapping[str, Any]:
        """{setting: value}, as far as they are known.

        Raises: ParamcountError for a value of the wrong type or out of range.
        """
        values = {name: self.get_setting(setting) for name, setting in list_settings(type(self)).items()}
        return {name: value for name, value in values.items() if is_known(value)}

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


def find_section(document: Mapping[str, Any], name: str | None) -> Mapping[str, Any]:
    """The part of a config.json that an architecture reads; empty if it is missing. Dots lead into sections."""
    found: Any = document
    for step in name.split(".") if name else ():
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


@cache
def get_info(architecture: type[Sizes], field: str) -> FieldInfo:
    """The type of a field and its limits."""
    from pydantic.fields import FieldInfo

    return FieldInfo.from_annotation(architecture.fields[field].annotation)


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
    for name, field in architecture.fields.items():
        if field.key is not None:
            continue
        annotation = field.annotation
        types = (annotation, *getattr(annotation, "__args__", ()))
        inner = next((type_ for type_ in types if isinstance(type_, type) and issubclass(type_, Sizes)), None)
        if inner:
            classes[name] = inner
    return classes


@cache
def list_fixed_fields(architecture: type[Sizes]) -> dict[str, Any]:
    """{field: value} of the fields that the reference sets whatever a config.json says."""
    keys = {
        name: get_key(architecture, name) for name in architecture.fields if name not in inner_configs(architecture)
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
    return sizes.replace(**changes) if changes else sizes
