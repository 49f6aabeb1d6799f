"""Names and shapes that writers of safetensors files use in place of the model's, as data.

Sources: transformers 5.23, conversion_mapping.py (its own names for released ones); for Meta's and Mistral's files
convert_mistral_weights_to_hf.py, convert_mistral3_weights_to_hf.py of transformers and mistralai/mistral-inference,
transformer_layers.py; for MLX ml-explore/mlx-lm, models/*.py, `sanitize`; for wrappers torch/_dynamo/eval_frame.py,
torch/distributed/fsdp and huggingface/peft, tuners/tuners_utils.py.
"""

from __future__ import annotations

from pathlib import Path

from paramcount.formats.files import read_table

# Words that a wrapper around a module adds to its path: torch.compile, FSDP, activation checkpointing, PEFT.
WRAPPERS = frozenset(
    ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "base_layer", "original_module")
)

# Matrices [out, in] over the same input that some writers fuse along the outputs.
FUSED = (
    ("qkv_proj", ("q_proj", "k_proj", "v_proj")),
    ("query_key_value", ("query", "key", "value")),
    ("gqkv_proj", ("gate_proj", "q_proj", "k_proj", "v_proj")),
    ("gate_up_proj", ("gate_proj", "up_proj")),
    ("conv1d", ("q_conv1d", "k_conv1d", "v_conv1d")),
)
# Matrices of experts that some writers fuse and stack into one tensor per layer: transformers,
STACKED_EXPERTS = (
    ("gate_up_proj", ("gate_proj", "up_proj")),
    ("gate_up_proj", ("w1", "w3")),
    ("up_proj", ("up_proj",)),
    ("down_proj", ("down_proj",)),
    ("down_proj", ("w2",)),
)
# and MLX, in `switch_mlp`.
MLX_EXPERTS = (
    ("gate_proj", ("gate_proj",)),
    ("gate_proj", ("w1",)),
    ("up_proj", ("up_proj",)),
    ("up_proj", ("w3",)),
    ("down_proj", ("down_proj",)),
    ("down_proj", ("w2",)),
)
# Pairs of names for the same module; a file may have either.
ALIASES = read_table(Path(__file__).with_name("aliases.txt"))
