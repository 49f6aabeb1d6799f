"""`paramcount trace --weights --text`: the likeliest next tokens, and what changes from layer to layer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcount as pc
from paramcount.execution import memory
from tests.gpt2_files import write_words
from tests.running import Runner
from tests.small_models import GPT2, LLAMA, MIXTRAL, make_arrays, write_model

TEXT, IDS = "w3 w1 w4 w1 w5", [3, 1, 4, 1, 5]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a config.json, weights and a tokenizer.json."""
    write_words(tmp_path / "tokenizer.json")
    return write_model(tmp_path, LLAMA)


def trace(run: Runner, folder: Path, *options: str) -> dict[str, Any]:
    done = run("trace", str(folder), "--weights", str(folder), "--text", TEXT, "--json", *options)
    assert (done.code, done.err) == (0, "")
    data: dict[str, Any] = json.loads(done.out)
    return data


def compute_probabilities(logits: Any) -> Any:
    shares = np.exp(logits.astype(np.float64) - logits.max())
    return shares / shares.sum()


def test_the_likeliest_next_tokens_are_those_of_the_logits(folder: Path, run: Runner) -> None:
    shares = compute_probabilities(pc.run(LLAMA, make_arrays(LLAMA), IDS).logits[-1])
    words = trace(run, folder, "--top", "3")["run"]["next_words"]
    assert [word["id"] for word in words] == np.argsort(-shares)[:3].tolist()
    assert [word["probability"] for word in words] == pytest.approx(sorted(shares)[:-4:-1], rel=1e-4)
    done = run("trace", str(folder), "--weights", str(folder), "--text", TEXT, "--top", "1")
    assert f"most likely next tokens:\n{100 * shares.max():.2f}%  w{shares.argmax()}  {shares.argmax()}\n" in done.out
    assert "weights stored as F32, computed in float32" in done.out
    assert "5 tokens: w3 3 · w1 1 · w4 4 · w1 1 · w5 5" in done.out


@pytest.mark.parametrize("config", [LLAMA, MIXTRAL, GPT2])
def test_each_layer_is_described_by_the_intermediate_values(
    config: dict[str, Any], tmp_path: Path, run: Runner
) -> None:
    """The residual stream of the next layer is that of this one; the view of each layer agrees with the steps."""
    write_words(tmp_path / "tokenizer.json")
    views = trace(run, write_model(tmp_path, config), "--watch")["run"]["layers"]
    steps = pc.run(config, make_arrays(config), IDS, watch=True).steps
    assert [view["layer"] for view in views] == [[i] for i in range(len(views))]
    for i, view in enumerate(views):
        sums = [step.array for step in steps if step.operation == "add" and step.layer == (i,)]
        weights = [step.array for step in steps if step.operation == "attention weights" and step.layer == (i,)]
        assert view["norm"] == pytest.approx(np.linalg.norm(sums[-1][-1]), rel=1e-4)
        mlp = sums[1][-1] - sums[0][-1]
        assert view["added"]["mlp"] * view["norm"] == pytest.approx(np.linalg.norm(mlp), rel=1e-3)
        last = weights[0][:, -1]
        assert [head["attended"][0]["weight"] for head in view["heads"]] == pytest.approx(last.max(-1), rel=1e-4)
        assert all(len(head["attended"]) == 3 for head in view["heads"])
    chosen = [step.array for step in steps if step.operation == "normalise"]  # routing weights
    assert [len(view["experts"]) for view in views] == [2 if chosen else 0] * len(views)
    for view, array in zip(views, chosen):
        assert view["tokens_per_expert"] == (array > 0).sum(0).tolist()
        assert view["experts"][0]["expert"] == array[-1].argmax()


@pytest.mark.parametrize(
    ("model_type", "added"),
    [("falcon", ["attention", "mlp"]), ("stablelm", ["attention", "mlp"]), ("mamba", ["mixer"])],
)
def test_what_a_layer_adds_is_found_in_other_arrangements(
    model_type: str, added: list[str], tmp_path: Path, run: Runner
) -> None:
    """Parallel attention and MLP, a sum that is written twice, and a mixer alone."""
    write_words(tmp_path / "tokenizer.json")
    config = {"model_type": model_type, "vocab_size": 23, "hidden_size": 64, "num_hidden_layers": 2}
    config |= (
        {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 20} if "attention" in added else {}
    )
    views = trace(run, write_model(tmp_path, config), "--watch")["run"]["layers"]
    assert [sorted(view["added"]) for view in views] == 2 * [added]


def test_the_lens_after_the_last_layer_is_the_prediction(folder: Path, run: Runner) -> None:
    result = trace(run, folder, "--watch", "--top", "1")["run"]
    assert result["layers"][-1]["lens"] == pytest.approx(result["next_words"][0])


def test_the_layers_are_a_table_that_fits_80_columns(folder: Path, run: Runner) -> None:
    out = run("trace", str(folder), "--weights", str(folder), "--text", TEXT, "--watch").out
    assert max(map(len, out.splitlines())) <= 80
    assert "layer   norm  attention adds  MLP adds  next token  probability" in out.splitlines()[1]
    assert len([line for line in out.splitlines() if line.startswith("    2    ")]) == 1 + 4 - 1
    csv = run("trace", str(folder), "--weights", str(folder), "--text", TEXT, "--watch", "--csv").out.splitlines()
    assert csv[0] == "layer,norm,attention_adds,mlp_adds,next,probability"
    assert len(csv) == 4


def test_a_plot_is_written(folder: Path, run: Runner, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "inside.svg"
    trace(run, folder, "--plot", str(path))
    assert "layer 2, mean of 4 heads" in path.read_text(encoding="utf-8")


def test_an_encoder_reads_the_text_and_the_decoder_begins(tmp_path: Path, run: Runner) -> None:
    config = {
        "model_type": "t5", "vocab_size": 23, "d_model": 16, "d_kv": 4, "d_ff": 20, "num_layers": 2, "num_heads": 4,
        "decoder_start_token_id": 2,
    }  # fmt: skip
    write_words(tmp_path / "tokenizer.json")
    result = trace(run, write_model(tmp_path, config), "--watch", "--top", "1")["run"]
    logits = pc.run(config, make_arrays(config), [2], source_tokens=IDS).logits[-1]
    assert result["next_words"][0]["id"] == logits.argmax()
    assert [token["id"] for token in result["tokens"]] == IDS
    assert len(result["layers"]) == 2
    assert result["layers"][-1]["lens"]["id"] == logits.argmax()
    assert [sorted(layer["added"]) for layer in result["layers"]] == 2 * [["attention", "mlp"]]
    (tmp_path / "config.json").write_text(json.dumps(config | {"decoder_start_token_id": None}), encoding="utf-8")
    done = run("trace", str(tmp_path), "--weights", str(tmp_path), "--text", TEXT)
    assert "no decoder_start_token_id is known (expected one in config.json)" in done.err


def test_the_settings_of_a_zoo_entry_come_from_the_config_beside_the_weights(
    folder: Path, run: Runner, tmp_path: Path
) -> None:
    entry = tmp_path / "tiny.yaml"
    sizes = pc.load(LLAMA).sizes.to_dict()
    entry.write_text(f"architecture: llama\nconfig: {json.dumps(sizes)}\n", encoding="utf-8")
    expected = trace(run, folder)["run"]["next_words"]
    done = run("trace", str(entry), "--weights", str(folder), "--text", TEXT, "--json")
    assert json.loads(done.out)["run"]["next_words"] == expected
    (folder / "config.json").unlink()
    done = run("trace", str(entry), "--weights", str(folder), "--text", TEXT)
    assert done.code == 2
    assert "settings are unknown (expected the config.json of the model, which states them)" in done.err


def test_an_unreadable_plot_or_text_is_a_one_line_error(
    folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ["trace", str(folder), "--weights", str(folder), "--text"]
    errors = {
        ("a", "--plot", "x.gif"): "error: --plot: unknown extension '.gif' (expected .svg, .png or .pdf)",
        ("",): "error: --text is empty (expected at least one token)",
        ("a", "--top", "0"): "error: --top 0 (expected an integer from 1 to 23)",
    }
    for options, message in errors.items():
        done = run(*place, *options)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(message)
    (folder / "tokenizer.json").rename(folder / "other.json")
    assert "expected a tokenizer.json next to the weights, or its path as --tokenizer FILE" in run(*place, TEXT).err
    assert run(*place, TEXT, "--tokenizer", str(folder / "other.json")).code == 0
    monkeypatch.setattr(memory, "find_available_memory", lambda: 10_000)
    assert "of memory, but 10.0 kB is available" in run(*place, TEXT, "--tokenizer", str(folder / "other.json")).err


def test_ctrl_c_during_a_pass_ends_with_130(folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    from paramcount.execution.evaluate import Evaluation

    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Evaluation, "run_layers", interrupt)
    done = run("trace", str(folder), "--weights", str(folder), "--text", TEXT)
    assert (done.code, done.out, done.err) == (130, "", "\n")
