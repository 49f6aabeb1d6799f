"""The config.json of state-spaces' Mamba releases, which has no model_type.

Source: github state-spaces/mamba, mamba_ssm/models/config_mamba.py (MambaConfig), mixer_seq_simple.py
(MambaLMHeadModel, create_block) and modules/mamba_simple.py, mamba2.py (the defaults of ssm_cfg).
"""

from __future__ import annotations

from paramcount.errors import ParamcountError, describe_value, make_choice_error
from paramcount.huggingface.forms.form import ConfigForm, Document, Translation, get_block, get_positive, rename_keys

KEYS = {"d_model": "hidden_size", "n_layer": "num_hidden_layers", "tie_embeddings": "tie_word_embeddings"}
UNUSED = ("ssm_cfg", "attn_layer_idx", "attn_cfg", "d_intermediate", "fused_add_norm", "rms_norm",
          "pad_vocab_size_multiple")  # fmt: skip
MIXER_KEYS = {"d_state": "state_size", "d_conv": "conv_kernel", "expand": "expand", "conv_bias": "use_conv_bias",
              "bias": "use_bias"}  # fmt: skip
MAMBA1 = {"dt_rank": "time_step_rank", **MIXER_KEYS}
MAMBA2 = {"headdim": "head_dim", "ngroups": "n_groups", "chunk_size": "chunk_size", **MIXER_KEYS}
# How weights start, and how the kernel computes.
SILENT = {"layer", "dt_min", "dt_max", "dt_init", "dt_scale", "dt_init_floor", "dt_limit", "use_fast_path",
          "use_mem_eff_path", "A_init_range", "conv_init"}  # fmt: skip
USUAL = {"d_ssm": None, "D_has_hdim": False, "rmsnorm": True, "norm_before_gate": False}  # other values are refused
VOCABULARY, PADDING = 50277, 8  # defaults of MambaConfig
DEFAULTS = {"conv_kernel": 4, "expand": 2, "use_conv_bias": True, "use_bias": False}  # of both mixers


def matches(document: Document) -> bool:
    return "model_type" not in document and {"d_model", "n_layer", "ssm_cfg"} <= set(document)


def translate(document: Document) -> Translation:
    """Both versions, without attention layers and MLPs, which the classes of transformers do not have."""
    check_is_pure(document)
    mixer = get_block(document, "ssm_cfg")
    layer = mixer.get("layer", "Mamba1")
    if layer not in ("Mamba1", "Mamba2"):
        raise make_choice_error(layer, ("Mamba1", "Mamba2"), where="ssm_cfg.layer")
    options = MAMBA1 if layer == "Mamba1" else MAMBA2
    for key in mixer:
        if key not in options and key not in SILENT and not (key in USUAL and mixer[key] is USUAL[key]):
            problem = f"= {describe_value(mixer[key])} is not supported"
            raise ParamcountError(problem, where=f"ssm_cfg.{key}", expected=f"an option of {layer} that sets sizes")
    found = rename_keys(document, KEYS, UNUSED)
    found["vocab_size"] = pad_vocabulary(document)
    found |= {options[key]: value for key, value in mixer.items() if key in options and value != "auto"}
    if layer == "Mamba1":
        names = {"model_type": "mamba", "architectures": ["MambaForCausalLM"]}
        return Translation({**names, "state_size": 16, **DEFAULTS, **found})
    inner = get_positive(mixer, "expand", 2) * get_positive(document, "d_model")
    head = get_positive(mixer, "headdim", 64)
    if inner % head:
        raise ParamcountError(f"= {head} does not divide expand × d_model = {inner}", where="ssm_cfg.headdim")
    found |= {"num_heads": inner // head, "head_dim": head}
    names = {"model_type": "mamba2", "architectures": ["Mamba2ForCausalLM"]}
    return Translation({**names, "state_size": 128, "n_groups": 1, **DEFAULTS, **found})


def check_is_pure(document: Document) -> None:
    """Raises: ParamcountError for a hybrid, whose class transformers does not have, and for LayerNorm."""
    for key, what in (("attn_layer_idx", "attention layers"), ("d_intermediate", "MLPs")):
        if document.get(key):
            problem = f"= {describe_value(document[key])}: a hybrid with {what} is not supported in this form"
            raise ParamcountError(problem, where=key, expected="the config.json of a converted model, such as Bamba")
    if document.get("rms_norm", True) is not True:
        raise ParamcountError(f"= {describe_value(document['rms_norm'])}", where="rms_norm", expected="true")


def pad_vocabulary(document: Document) -> int:
    """The rows of the embedding: the vocabulary, rounded up to the multiple."""
    size = get_positive(document, "vocab_size", VOCABULARY)
    multiple = get_positive(document, "pad_vocab_size_multiple", PADDING)
    return -(-size // multiple) * multiple


FORM = ConfigForm("a config of state-spaces' Mamba", matches, translate, KEYS)
