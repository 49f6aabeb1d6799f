"""What messages say of names and files that paramcount does not have: the same family, a slip of the hand, or nothing;
files of other tools by name; and nothing about keys that only repeat a size.
"""

from __future__ import annotations

import pytest

import paramcount as pc
from paramcount.views.scan import NUMBER
from tests.comparison import load_configs
from tests.refusing import error_of, model_error
from tests.running import Runner
from tests.test_config_files import write_config

BERT = {
    "model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 30522, "hidden_size": 768,
    "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512,
    "type_vocab_size": 2,
}  # fmt: skip
pytestmark = pytest.mark.usefixtures("_in_an_empty_directory")


# ---- names


@pytest.mark.parametrize("name", ["claude", "gemini", "efficientnet", "dinov2", "convnext", "claude-3-opus", "xgboost"])
def test_a_name_that_only_looks_like_another_gets_no_suggestion(name: str) -> None:
    for spec in ({"model_type": name}, name):
        assert "did you mean" not in error_of(pc.load, spec)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("qwen3-moe", "qwen3_moe"), ("lama", "llama"), ("bret", "bert"), ("deepseek_v9", "deepseek_v2"),
        ("Llama", "llama"), ("mistal", "mistral"),
    ],
)  # fmt: skip
def test_a_name_of_a_family_or_a_slip_of_the_hand_is_corrected(name: str, first: str) -> None:
    assert f"did you mean {first}" in error_of(pc.load, {"model_type": name})


# ---- keys that repeat a size


@pytest.mark.parametrize(("key", "repeated"), [("n_embd", 768), ("n_inner", 3072), ("n_layer", 12)])
def test_a_key_that_contradicts_a_size_is_a_warning_and_one_that_repeats_it_is_none(key: str, repeated: int) -> None:
    assert pc.load({**BERT, key: repeated, "_num_labels": 2}).warnings == ()
    with pytest.warns(pc.ConfigWarning, match=f"ignored {key} "):
        pc.load({**BERT, key: repeated // 2})


@pytest.mark.parametrize("id", ["nomic-embed-text-v1", "kimi-k2.5"])
def test_a_released_config_is_not_told_about_its_class_or_keys_that_repeat_sizes(id: str) -> None:
    warnings = pc.load(load_configs()[id]).warnings
    assert not [text for text in warnings if text.startswith(("ignored", "architectures"))]


# ---- files of other tools


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("Modelfile.txt", "FROM llama3.2\nPARAMETER temperature 1\n",
         "is an Ollama Modelfile (expected the model that FROM names: llama3.2)"),
        ("pretrain.sh", "#!/bin/bash\ntorchrun pretrain_gpt.py \\\n  --num-layers 24 \\\n  --hidden-size 2048\n",
         "is a Megatron script (expected a model's config.json, with model_type)"),
        ("debug.toml", "[job]\ndump_folder = './out'\n[model]\nname = 'llama3'\n",
         "is a torchtitan training config (TOML) (expected the config.json of the model that it trains)"),
        ("lora.yaml", "base_model: meta-llama/Llama-3.1-8B\nadapter: qlora\ndatasets:\n  - path: x\n",
         "is an axolotl training config (expected the config.json of the model that it trains)"),
        ("sft.yml", "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: lora\n",
         "is a LLaMA-Factory training config (expected the config.json of the model that it trains)"),
        ("tiny.yaml", "general:\n  run: x\nparallelism:\n  dp: 1\ntokens:\n  sequence_length: 8\nmodel: &m\n  a: 1\n",
         "is a nanotron training config (expected a model's config.json, with model_type and the keys of "
         "model.model_config)"),
        ("recipe.yaml", "tokenizer:\n  _component_: x\ncheckpointer:\n  _component_: y\n",
         "is a torchtune recipe (expected the config.json of the model that it trains)"),
        ("merge.yaml", "models:\n  - model: a\nmerge_method: slerp\n",
         "is a mergekit config (expected the config.json of the merged model)"),
        ("compose.yaml", "services:\n  web:\n    image: nginx\n",
         "is a YAML file that states no model (expected a zoo entry with architecture and config, or a config.json)"),
    ],
)  # fmt: skip
def test_a_file_of_another_tool_is_refused_by_name(name: str, text: str, message: str) -> None:
    write_config(name, text)
    assert model_error(f"./{name}") == f"{name} {message}"


# ---- the summary of a scan


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("model_type = wav2vec2 is not supported", "model_type = wav2vec2 is not supported"),
        ("n_heads = 3 does not divide hidden_size = 4,096", "n_heads = N does not divide hidden_size = N"),
        ("architectures.0 = X2ForCausalLM", "architectures.0 = X2ForCausalLM"),
    ],
)
def test_the_reasons_of_a_scan_replace_numbers_but_keep_names(text: str, summary: str) -> None:
    assert NUMBER.sub("N", text) == summary


def test_a_scan_names_the_types_that_it_cannot_count(run: Runner) -> None:
    write_config("s/a/config.json", {"model_type": "zz2top"})
    done = run("scan", "s", "--jobs", "1")
    assert "note: 1 × model_type = zz2top is not supported" in done.err.splitlines()
