"""Any config.json, counted by paramcount and built by the reference implementation: equal tensor by tensor, or refused
by both.

`python -m tests.oracle.differential MODEL_TYPE... [--examples N] [--disturbed]` prints what differs; `--disturbed`
gives the configs equal and odd sizes, nulls, partial sections and other names of keys.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from paramcount.architectures import ARCHITECTURES, architecture, get_sections, split_name
from paramcount.architectures.encoders import ENCODERS, find_part, load_encoder
from paramcount.counting.count import Count, count_sizes
from paramcount.counting.tensors import list_tensors, list_unreachable
from paramcount.errors import ParamcountError
from paramcount.flow import TensorRow
from paramcount.huggingface.config import read_config
from paramcount.huggingface.fields import list_fields
from paramcount.huggingface.multimodal import get_encoder_config
from paramcount.sizes import Sizes, Tower, inner_configs
from paramcount.sizes.fields import get_info
from tests.model_types import MODEL_TYPES
from tests.oracle import flaws, sounds

Choose = Callable[[Sequence[Any]], Any]
Named = dict[str, tuple[int, ...]]
SMALL_ENOUGH_TO_RUN = 3_000_000
EXAMPLES = int(os.environ.get("EXAMPLES", "12"))  # random configs of each model type

# Small values by the key of config.json that takes them; what is not named here is chosen by its type.
VALUES: dict[str, list[Any]] = {
    "vocab_size": [96, 128],
    "hidden_size": [32, 64, 48], "d_model": [32, 64, 48], "n_embd": [32, 64, 48],
    "num_hidden_layers": [1, 2, 3, 4], "n_layer": [1, 2, 3], "num_layers": [1, 2, 3], "n_layers": [1, 2, 3],
    "num_attention_heads": [4, 2, 8, 4, 3], "n_head": [4, 2, 8], "n_heads": [4, 2, 8], "num_heads": [4, 2, 8],
    "num_key_value_heads": [2, 1, 4, 2, 3],
    "head_dim": [8, 16, 12],
    "intermediate_size": [40, 64, 24],
    "moe_intermediate_size": [12, 20],
    "n_positions": [16, 24], "max_position_embeddings": [16, 24],
    "num_experts": [4, 8], "num_local_experts": [4, 8], "n_routed_experts": [4, 8],
    "num_experts_per_tok": [2, 1, 3],
    "n_shared_experts": [1, 2, 0], "first_k_dense_replace": [1, 0, 2],
    "q_lora_rank": [12, 16], "kv_lora_rank": [16, 8], "qk_nope_head_dim": [8, 12], "qk_rope_head_dim": [4, 8],
    "v_head_dim": [8, 12],
    "n_group": [1, 2], "topk_group": [1], "sliding_window": [8],
    "num_nextn_predict_layers": [0, 1],
}  # fmt: skip

# Settings that no size is read from, as the reference takes them for some model types and refuses them for others.
ODD_SETTINGS: list[tuple[str, Any]] = [
    ("hidden_act", "no such activation"), ("hidden_act", "relu"), ("activation_function", "no such activation"),
    ("rms_norm_eps", "1e-6"),
    ("layer_norm_eps", 1), ("rope_scaling", {"rope_type": "yarn"}),
    ("rope_scaling", {"type": "linear", "factor": 2.0}), ("use_cache", 1), ("bos_token_id", "<s>"),
    ("initializer_range", None),
]  # fmt: skip
NEED_TIMM = ("fast_vlm", "gemma3n", "perception_lm")  # model types whose vision encoders are built by timm


def can_be_built(model_type: str) -> bool:
    """Whether what the reference builds a model type with is installed."""
    return model_type not in NEED_TIMM or find_spec("timm") is not None


def list_values(cls: type[Sizes], field: str, key: str, vary: dict[str, list[Any]]) -> list[Any]:
    if key in vary:
        return vary[key]
    if key.rpartition(".")[2] in VALUES:
        return VALUES[key.rpartition(".")[2]]
    annotation = str(get_info(cls, field).annotation)
    return (
        [True, False]
        if "bool" in annotation
        else [4, 2, 8, 6]
        if "int" in annotation and "tuple" not in annotation
        else []
    )


def set_path(document: dict[str, Any], path: str, value: Any) -> None:
    *outer, last = path.split(".")
    for step in outer:
        if not isinstance(document.get(step), dict):
            document[step] = {}
        document = document[step]
    document[last] = deepcopy(value)  # the reference writes into what it reads


def list_keys(
    cls: type[Sizes], section: str = "", language: str = "", tower: type[Sizes] | None = None
) -> list[tuple[type[Sizes], str, list[str]]]:
    """(architecture, field, its keys as paths from the root) of every field with a key, inner configs too.

    `language`: the model type of a language model that config.json names, `tower` the class of a tower.
    """
    found = []
    start = f"{cls.section}." if cls.section else section
    for field in list_fields(cls):
        if field.name in cls.named_parts:
            named = cls.named_parts[field.name]
            model_type, block = named.default["model_type"], named.section or field.name
            part = find_part(inner_configs(cls)[field.name], model_type)
            composite = get_sections(model_type)
            inside = (composite.default_type, load_encoder(composite.default_encoder)) if composite else ("", None)
            found += [(of, name, [f"{block}.{key}" for key in keys]) for of, name, keys in list_keys(part, "", *inside)]
        elif field.inner is Sizes:
            found += list_keys(architecture(language), "text_config.")
        elif field.inner:
            found += list_keys(tower if field.inner is Tower and tower else field.inner)
        elif field.spellings:
            paths = [key.name if key.at_root else start + key.name for key in field.spellings]
            found.append((cls, field.name, paths))
    return found


def make_document(name: str, choose: Choose, vary: dict[str, list[Any]]) -> dict[str, Any]:
    """A config.json of an architecture, most keys small, some absent, now and then one of them null."""
    model_type, cls_name = split_name(name)
    document: dict[str, Any] = {"model_type": model_type}
    if cls_name:
        document["architectures"] = [cls_name]
    for key in vary:
        if key.startswith("+"):  # keys that no field names, but derivations read
            value = choose(vary[key])
            if value != "absent":
                set_path(document, key[1:], value)
    gone = [
        field.inner.section
        for field in list_fields(architecture(name))
        if field.inner and field.optional and choose([False, False, True])
    ]
    language, tower = "", None
    if composite := get_sections(model_type):
        language = composite.default_type
        types = [
            None,
            language,
            *(other for other in ("mistral", "qwen2") if other in (composite.supported_types or (other,))),
        ]
        if not composite.ignores_model_type and (said := choose(vary.get(f"{composite.section}.model_type", types))):
            language = language if said == composite.old_type else said
            set_path(document, f"{composite.section}.model_type", said)
        if composite.default_encoder:
            if said := choose([None, *composite.encoders]):
                set_path(document, "vision_config.model_type", said)
            if composite.default_encoder in ENCODERS:
                tower, _ = get_encoder_config({"vision_config": {}, **document})
    keys = [key for key in list_keys(architecture(name), language=language, tower=tower) if key[0].section not in gone]
    nulled = choose([None] * max(6, len(keys)) + [field for _, field, _ in keys])
    for cls, field, names in keys:
        options = list_values(cls, field, names[0], vary)
        fate = (
            "null" if field == nulled else choose(["present"] * 9 + ["absent", "other name"]) if options else "absent"
        )
        path = names[0] if fate != "other name" or len(names) == 1 else choose(names[1:])
        if fate == "other name" and len(names) > 1 and choose([True, False]):  # under both names
            set_path(document, names[0], choose(options))
        if fate == "null":
            set_path(document, path, None)
        elif fate != "absent":
            set_path(document, path, choose(options))
    for key in vary:
        if key.startswith("!") and (value := choose(vary[key])) != "absent":  # keys that only make sense together
            set_path(document, key[1:], value)
    if odd := choose([None] * 30 + ODD_SETTINGS):
        set_path(document, ("text_config." if "text_config" in document else "") + odd[0], odd[1])
    for section in gone:
        document[str(section)] = choose([None, {}])
        if document[str(section)] == {}:
            del document[str(section)]
    return document


# Numbers that heads, groups and kernels do not divide, and those of a part that is left out.
ODD_SIZES = [1, 3, 5, 6, 7, 9, 10, 12, 20, 33, 36, 40, 0]


def list_leaves(document: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """(section, key) of every size and flag in a config.json."""
    blocks = [document]
    for block in blocks:  # which grows
        blocks += [value for value in block.values() if isinstance(value, dict)]
    return [(block, key) for block in blocks for key, value in block.items() if type(value) in (int, bool)]


def list_aliases(model_type: object) -> dict[str, list[str]]:
    """{key: other names of it that a config class of the reference knows}."""
    from transformers import CONFIG_MAPPING

    aliases: dict[str, list[str]] = {}
    if model_type in CONFIG_MAPPING:
        for alias, key in CONFIG_MAPPING[model_type].attribute_map.items():
            aliases.setdefault(key, []).append(alias)
    return aliases


def set_equal(document: dict[str, Any], choose: Choose) -> None:
    """Some sizes become equal to another one by accident."""
    widths = [(block, key) for block, key in list_leaves(document) if type(block[key]) is int and block[key] > 4]
    if widths:
        block, key = choose(widths)
        value = block[key]
        for _ in range(choose([1, 2, 4])):
            block, key = choose(widths)
            block[key] = value


def set_odd(document: dict[str, Any], choose: Choose) -> None:
    """One or two sizes take a value that others may not fit."""
    numbers = [(block, key) for block, key in list_leaves(document) if type(block[key]) is int]
    for _ in range(choose([1, 2]) if numbers else 0):
        block, key = choose(numbers)
        block[key] = choose(ODD_SIZES)


def set_null(document: dict[str, Any], choose: Choose) -> None:
    """Some keys become null."""
    leaves = list_leaves(document)
    for _ in range(choose([1, 2, 3]) if leaves else 0):
        block, key = choose(leaves)
        block[key] = None


def cut_sections(document: dict[str, Any], choose: Choose) -> None:
    """Sections state a part of their keys, as the reference saves those that differ from its defaults."""
    for name, section in list(document.items()):
        if isinstance(section, dict) and choose([True, False]):
            fate = choose(["some", "some", "one", "empty", "null", "missing"])
            if fate == "null":
                document[name] = None
            elif fate == "missing":
                del document[name]
            else:
                kept = [key for key in section if fate == "some" and (key == "model_type" or choose([True, False]))]
                kept = [choose(list(section))] if fate == "one" and section else kept
                document[name] = {key: section[key] for key in kept}


def rename_keys(document: dict[str, Any], choose: Choose) -> None:
    """Keys take other names that the reference knows, or stand under both."""
    for block in (document, *(value for value in document.values() if isinstance(value, dict))):
        for key, names in list_aliases(block.get("model_type")).items():
            if key in block and choose([True, False]):
                block[choose(names)] = block[key]
                if choose([True, True, False]):
                    del block[key]


DISTURBANCES: list[Callable[[dict[str, Any], Choose], None]] = [set_equal, set_odd, set_null, cut_sections, rename_keys]


def disturb(document: dict[str, Any], choose: Choose) -> dict[str, Any]:
    """The same config with accidents of real files: equal or odd sizes, nulls, partial sections, other names."""
    found = deepcopy(document)
    for _ in range(choose([1, 1, 2])):
        choose(DISTURBANCES)(found, choose)
    return found


LABELS = [
    {},
    {"num_labels": 5},
    {"num_labels": 1},
    {"num_labels": 2},
    {"id2label": {"0": "a", "1": "b", "2": "c"}},
    {"num_labels": 4, "id2label": {"0": "a"}},
]
SUMMARIES = ("summary_use_proj", "summary_proj_to_labels")


def add_labels(document: dict[str, Any], cls_name: str, choose: Choose) -> dict[str, Any]:
    """The same config for a class with the head of another task: with some labels, and now and then keys that only such
    heads read.
    """
    found = {**document, "architectures": [cls_name], **deepcopy(choose(LABELS))}
    found |= {key: value for key in SUMMARIES if (value := choose([None, None, True, False])) is not None}
    if cls_name.endswith("ForAudioClassification"):
        found |= {"use_weighted_layer_sum": choose([True, False]), "classifier_proj_size": choose([8, 24])}
    return found


def split_tensors(tensors: Iterable[TensorRow]) -> Iterator[tuple[TensorRow, str]]:
    """Each tensor of the reference under its own name."""
    for tensor in tensors:
        if tensor.part == "mtp" or tensor.tied_to is not None or tensor.role == "legacy_buffer":
            continue
        for indices in itertools.product(*(repeat.indices for repeat in tensor.repeats)):
            name = tensor.name
            for repeat, index in zip(tensor.repeats, indices):
                name = name.replace("{" + repeat.axis + "}", str(index), 1)
            yield tensor, name


def count_document(document: dict[str, Any]) -> tuple[Count, Named, Named]:
    """The count, and every tensor by its own name: parameters, buffers."""
    model = read_config(document)
    found: tuple[Named, Named] = {}, {}
    for tensor, name in split_tensors(list_tensors(model.sizes, model.reading.head)):
        assert name not in found[0] and name not in found[1], f"{name} is declared twice"
        found[tensor.role == "buffer"][name] = tensor.shape
    return count_sizes(model.sizes, head=model.reading.head), *found


def find_unreachable_tensors(document: dict[str, Any]) -> Named:
    """Every tensor that no forward pass reads, by its own name."""
    model = read_config(document)
    return {
        name: tensor.shape
        for tensor, name in split_tensors(tensor for tensor, _ in list_unreachable(model.sizes, model.reading.head))
    }


def make_config(document: dict[str, Any], cls_name: str) -> Any:
    """The reference's config object of a config.json, as the class takes it."""
    import transformers
    from transformers import CONFIG_MAPPING, PreTrainedConfig

    silence()
    read = PreTrainedConfig._decode_special_floats(
        document
    )  # as it does with every file: infinity stands there as a mapping
    config = CONFIG_MAPPING[document["model_type"]].from_dict(
        {key: value for key, value in read.items() if key != "quantization_config"}
    )
    is_nested = "decoder" in type(config).sub_configs_defaults  # beside the text that an encoder reads
    text = config.get_text_config(decoder=True) if is_nested else config.get_text_config()
    return text if isinstance(text, getattr(transformers, cls_name).config_class) else config


def build_model(document: dict[str, Any], cls_name: str, device: str = "meta") -> Any:
    """The reference's model of a config.json."""
    import torch
    import transformers

    config = make_config(document, cls_name)
    with torch.device(device), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(transformers, cls_name)(config)
    if cls_name.startswith("KyutaiSpeechToText"):
        model.forward = partial(hear, model, model.forward)
    if hasattr(model, "thinker"):  # all that it can do is generate; this is what a text goes through
        model.forward = model.thinker.forward
    return model


def hear(model: Any, forward: Callable[..., Any], input_ids: Any, input_values: Any, **inputs: Any) -> Any:
    """What `generate` does for each token: the codes of the frame before it stand beside it."""
    import torch

    codes = model.codec_model.encode(input_values, use_streaming=True).audio_codes.transpose(1, 2)
    first = torch.full_like(codes[:, :1], model.config.audio_bos_token_id)
    past = inputs.get("past_key_values")
    n_before, n = past.get_seq_length() if past is not None else 0, input_ids.shape[1]
    codes = torch.cat((first, codes), 1)[:, n_before : n_before + n]
    return forward(torch.cat((input_ids[..., None], codes.expand(len(input_ids), -1, -1)), 2), **inputs)


def save_config(config: Any, cls_name: str, folder: Path) -> dict[str, Any]:
    """The config.json that the reference writes into a folder when it saves a model of this config object."""
    config.architectures = [cls_name]  # as a model does before its config is saved
    config.save_pretrained(folder)
    found: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return found


def silence() -> None:
    import transformers

    transformers.logging.set_verbosity_error()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")


def name_tensors(model: Any) -> tuple[Named, Named]:
    """The reference's tensors under the names that it would save them by: parameters, buffers."""
    state = model.state_dict(keep_vars=True)
    sources = model.all_tied_weights_keys  # a tensor under two names is saved under its source's
    learned = {sources.get(name, name): tensor for name, tensor in model.named_parameters()}
    kept = {name: tensor for name, tensor in model.named_buffers() if name in state}
    parameters, buffers = (flaws.revert_names(model, held) for held in (learned, kept))
    found = [{name: tuple(tensor.shape) for name, tensor in saved.items()} for saved in (parameters, buffers)]
    return flaws.mend_shapes(model, found[0]), flaws.mend_shapes(model, found[1])


def find_table(model: Any) -> Any:
    """The module of the token embedding. The Perceiver names its latents instead."""
    if hasattr(model, "thinker"):
        return find_table(model.thinker)
    if hasattr(model, "perceiver"):
        return model.perceiver.input_preprocessor.embeddings
    if model.config.model_type == "kyutai_speech_to_text":
        return model.model.embed_tokens.embed_tokens
    if model.config.model_type == "pp_formulanet":  # which names none
        return model.base_model.decoder.embed_tokens
    return model.get_input_embeddings()


def sum_reference(model: Any) -> dict[str, int]:
    """What the reference's own tensors sum to; without `lm_head` where it has none of its own."""
    if model.config.model_type == "encoder-decoder":
        return sum_pair(model, model.encoder)
    if writes_music(model):
        return sum_pair(model, model.text_encoder)
    module = find_table(model)
    tables = [module.weight] if hasattr(module, "weight") else [each.weight for each in module]  # for each codebook
    if hasattr(module, "additional_embedding"):
        tables.append(module.additional_embedding.weight)
    table, saved = tables[0], model.state_dict()
    found = {
        "total": sum(p.numel() for p in model.parameters()),
        "buffers": sum(b.numel() for name, b in model.named_buffers() if name in saved),
        "embedding": 0 if table.dim() > 2 else sum(p.numel() for p in tables),  # a convolution's: no token is looked up
    }
    if (head := flaws.find_head(model)) is not None:
        embedded = {id(table)} | {
            id(m.weight) for m in model.modules() if type(m).__name__.endswith("Embedding") and hasattr(m, "weight")
        }
        found["lm_head"] = sum(p.numel() for p in head.parameters() if id(p) not in embedded)
    return found


def sum_pair(model: Any, encoder: Any) -> dict[str, int]:
    """What the tensors of an encoder and a decoder sum to, each with a token embedding of its own."""
    decoder, saved = sum_reference(model.decoder), model.state_dict()
    return {
        **decoder,
        "total": sum(p.numel() for p in model.parameters()),
        "embedding": decoder["embedding"] + find_table(encoder).weight.numel(),
        "buffers": sum(b.numel() for name, b in model.named_buffers() if name in saved),
    }


def run_tokens(
    document: dict[str, Any], cls_name: str, dead: Collection[str] = (), *, tokens: int = 6
) -> Exception | None:
    """What goes wrong if the reference runs a few tokens through the model; None if nothing does.

    `dead`: tensors that no forward pass reaches, so that nothing is wrong with the logits if these are no numbers.
    """
    import torch

    try:
        model = build_model(document, cls_name, "cpu")
        model.set_experts_implementation("eager")  # the faster kernels ask more of an expert's width on a CPU
        if not (model.config.is_encoder_decoder or model.config.get_text_config().is_encoder_decoder):
            model.config.get_text_config().use_cache = False
        several = cls_name.endswith(("ForMultipleChoice", "DoubleHeadsModel"))  # texts of which one is chosen
        ids = torch.zeros((1, 2, tokens) if several else (1, tokens), dtype=torch.long)
        ids = repeat_for_codebooks(model, ids)
        end = getattr(model.config, "eos_token_id", None)
        if (
            cls_name.endswith("ForSequenceClassification")
            and type(end) is int
            and 0 <= end < find_table(model).num_embeddings
        ):
            ids[..., -1] = end  # some classify its vector
        if cls_name in ("LongformerForQuestionAnswering", "LongformerForMultipleChoice"):
            ids[..., 1::2] = model.config.sep_token_id  # three of them tell a question from its text
        inputs = {model.main_input_name: ids}
        if model.main_input_name == "input_features" and hasattr(model.config, "feature_projection_input_dim"):
            inputs = {"input_features": torch.zeros((1, 20, model.config.feature_projection_input_dim))}
        elif model.main_input_name == "input_features":
            inputs = {
                "input_features": torch.zeros((1, model.config.num_mel_bins, 2 * model.config.max_source_positions))
            }
        if model.main_input_name == "flattened_patches":
            inputs = {"flattened_patches": torch.ones((1, 4, 2 + model.config.vision_config.patch_embed_hidden_size))}
        if model.main_input_name == "pixel_values" or model.config.model_type == "idefics":
            inputs = make_image(model.config, cls_name, ids)
        if cls_name.startswith("Udop"):
            shape = (1, model.config.num_channels, model.config.image_size, model.config.image_size)
            inputs |= {"bbox": torch.zeros((*ids.shape, 4)), "pixel_values": torch.zeros(shape)}
        if cls_name == "EvollaForProteinText2Text":
            inputs |= {"protein_input_ids": ids + 2, "protein_attention_mask": torch.ones_like(ids)}
        if model.main_input_name == "state":
            inputs = make_robot(model.config, ids)
        if cls_name.startswith(("GraniteSpeech", "VoxtralRealtime", "KyutaiSpeechToText")):
            inputs = make_sound(model.config, ids)
        if model.config.is_encoder_decoder and not cls_name.endswith("ForAudioClassification"):
            inputs |= {"decoder_input_ids": ids, "use_cache": False}  # a cache may be as short as the encoder
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name.removeprefix(f"{model.base_model_prefix}.") in dead:
                    parameter.fill_(torch.nan)
            flaws.poison(model)
            model.eval()
            if hasattr(model, "thinker"):
                out = think_and_speak(model, ids)
            elif writes_music(model):
                out = write_music(model, ids)
            else:
                out = model(**inputs)
        # Idefics returns the images' states too, which no text depends on if there are no layers.
        values = [value for name, value in out.items() if name != "image_hidden_states"]
        read = [value for value in values if isinstance(value, torch.Tensor) and value.is_floating_point()]
        assert read, "nothing comes out"
        assert not (dead or flaws.has_flaw(model)) or all(value.isfinite().all() for value in read), (
            f"{', '.join(dead)} is read"
        )
    except Exception as error:
        return error
    return None


def make_image(config: Any, cls_name: str, ids: Any) -> dict[str, Any]:
    """A text after an image, or after a video of one frame, for a class that cannot run without."""
    import torch

    if cls_name == "VisionEncoderDecoderModel":
        size = config.encoder.image_size
        sides = size if isinstance(size, (list, tuple)) else (size, size)
        if hasattr(config.encoder, "depths") and not config.encoder.use_absolute_embeddings:  # any size
            side = config.encoder.window_size * config.encoder.patch_size * 2 ** len(config.encoder.depths)
            sides = (side, side)
        return {"pixel_values": torch.zeros((len(ids), config.encoder.num_channels, *sides))}
    size = config.vision_config.image_size
    pixels = {"pixel_values": torch.zeros((len(ids), 3, size, size))}
    if hasattr(config, "cross_layer_interval"):  # all tokens look at it
        image = torch.zeros((len(ids), 1, config.vision_config.num_channels, size, size))
        return {"input_ids": ids, "pixel_values": image, "image_attention_mask": torch.ones((*ids.shape, 1))}
    if hasattr(config, "latent_query_num"):
        mask = torch.ones((len(ids), config.latent_query_num), dtype=torch.long)
        return {
            "input_ids": torch.cat((mask, ids), 1),
            "image_embeds_position_mask": torch.cat((mask, 0 * ids), 1),
            **pixels,
        }
    if not hasattr(config, "num_query_tokens"):
        return {"input_ids": ids, **pixels}
    frames = (1,) if "Video" in cls_name else ()
    text = {"qformer_input_ids": ids} if cls_name.startswith("Instruct") else {}
    token = config.video_token_id if frames else config.image_token_id
    tokens = torch.cat((torch.full((len(ids), config.num_query_tokens), token), ids), dim=1)
    return {"input_ids": tokens, "pixel_values": torch.zeros((len(ids), *frames, 3, size, size)), **text}


def make_sound(config: Any, ids: Any) -> dict[str, Any]:
    """A text after one window of frames, or with the frames of each token."""
    import torch

    if hasattr(config, "codec_config"):
        codec = config.codec_config
        samples = torch.zeros((len(ids), codec.audio_channels, codec.frame_size * ids.shape[1] * codec.latent_stride))
        return {"input_ids": ids, "input_values": samples}
    if hasattr(config, "downsample_factor"):
        n_frames = 2 * config.downsample_factor * ids.shape[1]
        return {"input_ids": ids, "input_features": torch.zeros((len(ids), config.audio_config.num_mel_bins, n_frames))}
    n_queries = config.window_size // config.downsample_rate
    tokens = torch.cat((torch.full((len(ids), n_queries), config.audio_token_id), ids), dim=1)
    frames = torch.zeros((len(ids), config.window_size, config.encoder_config.input_dim))
    return {"input_ids": tokens, "input_features": frames}


def make_robot(config: Any, ids: Any) -> dict[str, Any]:
    """A text after an image, the state of a robot, and noise."""
    import torch

    vision = config.vlm_config.vision_config
    n_patches = (vision.image_size // vision.patch_size) ** 2
    ids = torch.cat((torch.full((1, n_patches), config.vlm_config.image_token_id), ids), dim=1)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "pixel_values": torch.zeros((1, 1, vision.num_channels, vision.image_size, vision.image_size)),
        "pixel_attention_mask": torch.ones((1, 1), dtype=torch.bool),
        "state": torch.zeros((1, config.max_state_dim)),
    }


def think_and_speak(model: Any, ids: Any) -> dict[str, Any]:
    """What each part of a model that speaks returns, which it can only generate with."""
    import torch

    thought = model.thinker(input_ids=ids, output_hidden_states=True)
    found = {"logits": thought.logits}
    if not model.has_talker:
        return found
    states = thought.hidden_states[0] + thought.hidden_states[-1]
    if model.config.model_type == "qwen3_omni_moe":
        talker = model.talker
        text, media = talker.text_projection(states), talker.hidden_projection(states)
        found["codes"] = talker(inputs_embeds=talker.get_input_embeddings()(ids) + text + media).logits
        pairs = torch.cat((text[:, :1], talker.get_input_embeddings()(ids[:, :1])), dim=1)
        hidden = talker.code_predictor.model(inputs_embeds=pairs).last_hidden_state
        found |= {f"codes {i}": head(hidden) for i, head in enumerate(talker.code_predictor.lm_head)}
        n_codebooks = model.config.code2wav_config.num_quantizers
        found["samples"] = model.code2wav(ids[:, None].repeat(1, n_codebooks, 1) * 0)
    if model.config.model_type == "qwen2_5_omni":
        dit, vocoder = model.token2wav.code2wav_dit_model, model.token2wav.code2wav_bigvgan_model
        inputs = model.talker.get_input_embeddings()(ids) + states
        found["codes"] = model.talker(input_text_ids=ids, inputs_embeds=inputs).logits
        n, frames = ids.shape[1] * dit.repeats, torch.zeros((1, 40, dit.mel_dim))
        voice = torch.zeros((1, n, dit.config.enc_emb_dim))
        found["mels"] = dit(torch.zeros((1, n, dit.mel_dim)), frames, voice, ids, torch.tensor(0.5))
        found["samples"] = vocoder(found["mels"].transpose(1, 2))
    return found


def writes_music(model: Any) -> bool:
    """Whether a text encoder and a codec belong to a model: one of MusicGen."""
    return hasattr(model, "text_encoder") and hasattr(model, "audio_encoder")


def write_music(model: Any, ids: Any) -> dict[str, Any]:
    """The logits of codes for a text, and the sound that codes are decoded to: in MusicGen those of another sound."""
    import torch

    codec = model.audio_encoder
    found = {"logits": model(input_ids=ids[:1], decoder_input_ids=ids, use_cache=False).logits}
    frames = torch.zeros((1, 1, len(codec.quantizer.layers), ids.shape[1]), dtype=torch.long)
    if model.config.model_type == "musicgen":
        samples = torch.zeros((1, codec.config.audio_channels, codec.config.hop_length * ids.shape[1]))
        frames = codec.encode(samples, bandwidth=codec.config.target_bandwidths[-1]).audio_codes
    return {**found, "samples": codec.decode(frames, [None]).audio_values}


def repeat_for_codebooks(model: Any, ids: Any) -> Any:
    """The same tokens for each codebook of a model that has an LM head for each."""
    heads = getattr(model, "lm_heads", None) or getattr(getattr(model, "decoder", None), "lm_heads", None)
    return ids if heads is None else ids.repeat_interleave(len(heads), dim=0)


def find_differences(document: dict[str, Any], cls_name: str, *, run: bool = True, by_name: bool = True) -> list[str]:
    """Where paramcount and the reference disagree about a config.json."""
    try:
        count, *mine = count_document(document)
    except ParamcountError as error:
        try:
            model = build_model(document, cls_name)
        except Exception:
            return []
        if (
            sum(p.numel() for p in model.parameters()) > SMALL_ENOUGH_TO_RUN
            or not run
            or run_tokens(document, cls_name)
        ):
            return []
        return [f"we refuse what the reference builds and runs: {error}"]
    try:
        model = build_model(document, cls_name)
    except Exception as error:
        return [f"the reference refuses what we count: {type(error).__name__}: {str(error)[:300]}"]
    prefix = f"{model.base_model_prefix}."
    mine = [{name.removeprefix(prefix): shape for name, shape in held.items()} for held in mine]
    theirs = [
        {name.removeprefix(prefix): shape for name, shape in held.items()}
        for held in (name_tensors(model) if by_name else ({}, {}))
    ]
    dead = {name.removeprefix(prefix): shape for name, shape in find_unreachable_tensors(document).items()}
    wants = sum_reference(model)
    unread = sum(count.unreachable.values())
    wants["total"] -= unread
    assert set(count.unreachable) == set(count.unreachable_reasons)
    found = [
        f"{what}: {getattr(count, what):,} instead of {n:,}" for what, n in wants.items() if getattr(count, what) != n
    ]
    if by_name:
        for has, expected, what in zip(mine, theirs, ("parameter", "buffer")):
            has = has | (dead if what == "parameter" else {})
            expected = {name: shape for name, shape in expected.items() if 0 not in shape}
            found += [
                f"{what} {n}: {has.get(n)} instead of {expected.get(n)}"
                for n in sorted(has | expected)
                if has.get(n) != expected.get(n)
            ][:12]
    if run and not found and wants["total"] <= SMALL_ENOUGH_TO_RUN and (failed := run_tokens(document, cls_name, dead)):
        found.append(f"we count what the reference cannot run: {type(failed).__name__}: {str(failed)[:300]}")
    return found


def main(names: list[str], examples: int, *, disturbed: bool = False) -> None:
    silence()
    for name in names:
        facts = MODEL_TYPES.get(name)
        cls_name = facts.cls if facts else split_name(name)[1] or architecture(name).reference
        vary = facts.vary if facts else {}
        start: dict[str, Any] = {"model_type": split_name(name)[0], "architectures": [cls_name], **vary.get("=", {})}
        wrong = [f"DEFAULT CONFIG {found}" for found in find_differences(start, cls_name, run=False, by_name=False)]
        if (
            facts
            and (model := read_config(start))
            and (count := count_sizes(model.sizes, head=model.reading.head)).total + sum(count.unreachable.values())
            != facts.total
        ):
            wrong.append(f"DEFAULT CONFIG is not the line of truth, {facts.total:,}")
        rng, counted = random.Random(1), 0  # noqa: S311
        for _ in range(examples):
            document = make_document(name, rng.choice, vary)
            document = disturb(document, rng.choice) if disturbed else document
            if found := find_differences(document, document.get("architectures", [cls_name])[0]):
                wrong.append(json.dumps(document) + "\n      " + "\n      ".join(found[:12]))
            else:
                try:
                    read_config(document)
                    counted += 1
                except ParamcountError:
                    pass
        print(f"{name}: {len(wrong)} of {examples} differ; {counted} counted, the others refused by both")
        for text in wrong[:4]:
            print("   ", text)


sounds.listen(globals(), "find_table", "run_tokens")

if __name__ == "__main__":
    arguments = sys.argv[1:]
    examples = 60
    if "--examples" in arguments:
        at = arguments.index("--examples")
        examples = int(arguments[at + 1])
        del arguments[at : at + 2]
    is_disturbed = "--disturbed" in arguments
    arguments = [name for name in arguments if name != "--disturbed"]
    main(arguments or list(ARCHITECTURES), examples, disturbed=is_disturbed)
