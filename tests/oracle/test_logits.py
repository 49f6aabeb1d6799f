"""The declared flow computes the reference's logits, for whole texts and token by token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from paramcount.api import load
from paramcount.architectures.emu3 import Emu3
from paramcount.counting.tensors import list_tensors
from paramcount.execution import run_model
from paramcount.execution.evaluate import Evaluation
from paramcount.execution.weights import open_weights
from tests.cases import load_cases
from tests.model_types import list_running
from tests.oracle import images, logits, passes

RUNNING = list_running()


def read_cases(name: str) -> list[dict[str, Any]]:
    return [case for case in load_cases()[name] if "refused" not in case]


SEES = {*images.IMAGES} - images.ALWAYS_SEE
READS_TEXT_ALONE = sorted(name for name in passes.CONFIGS if passes.find_class(name) in SEES)


@pytest.mark.parametrize("name", RUNNING)
def test_the_flow_computes_the_logits_of_the_reference(name: str) -> None:
    difference = logits.compare(name)
    assert difference.whole < logits.TOLERANCE
    assert difference.decoded < logits.TOLERANCE


def test_a_prompt_of_gemma_that_sees_later_tokens_is_continued_as_in_the_reference() -> None:
    document = {**passes.make_document("gemma"), "use_bidirectional_attention": True}
    assert logits.compare_logits(document, "GemmaForCausalLM").whole < logits.TOLERANCE
    model, ids = logits.build_reference(document, "GemmaForCausalLM"), passes.make_token_ids(logits.TOKENS, 1)
    with torch.no_grad():
        expected = logits.decode_reference(model, ids)
    loaded, tokens = load(document), ids[0].tolist()
    prompt = logits.count_prompt(len(tokens))
    run = run_model(loaded.sizes, logits.save_weights(model), tokens[:prompt])
    parts = [run.logits]
    for token in tokens[prompt:]:
        run = run.append([token])
        parts.append(run.logits)
    assert np.abs(np.concatenate(parts) - expected).max() / np.abs(expected).max() < logits.TOLERANCE


@pytest.mark.parametrize(
    "name",
    ["llama", "gpt2", "gemma2", "gemma3_text", "gemma4_text", "gpt_neo", "bart", "t5", "llama4_text", "gpt_oss",
     "qwen3_next", "deepseek_v4", "xlnet", "musicgen", "kosmos-2", "voxtral_realtime", "deepseek_v32"],
)  # fmt: skip
def test_tokens_see_later_ones_if_is_causal_is_false_as_in_the_reference(name: str) -> None:
    document = {**passes.make_document(name), "is_causal": False}
    if "text_config" in document:
        document["text_config"] = {**document["text_config"], "is_causal": False}
    assert max(logits.compare_logits(document, passes.find_class(name))) < logits.TOLERANCE


@pytest.mark.parametrize("name", ["gemma4_text", "gemma4_unified_text"])
def test_tokens_of_gemma_4_see_later_ones_as_in_the_reference(name: str) -> None:
    document = {**passes.make_document(name), "use_bidirectional_attention": "all"}
    assert max(logits.compare_logits(document, passes.find_class(name))) < logits.TOLERANCE


@pytest.mark.parametrize("head_dim", [1])
@pytest.mark.parametrize("name", ["gemma2", "llama", "gemma3_text"])
def test_heads_of_one_value_are_rotated_as_in_the_reference(name: str, head_dim: int) -> None:
    document = {**passes.make_document(name), "head_dim": head_dim}
    difference = logits.compare_logits(document, passes.find_class(name))
    assert max(difference) < logits.TOLERANCE


@pytest.mark.parametrize("name", READS_TEXT_ALONE)
def test_a_text_without_an_image_has_the_logits_of_the_reference(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "IMAGES", {})
    difference = logits.compare(name)
    assert difference.whole < logits.TOLERANCE
    assert difference.decoded < logits.TOLERANCE


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("minicpmv4_7", passes.CONFIGS["minicpmv4_6"]),
        ("phi4_multimodal", min(read_cases("phi4_multimodal"), key=lambda case: case["total"])["config"]),
    ],
    ids=["minicpmv4_7", "phi4_multimodal"],
)
def test_a_text_has_the_logits_of_the_reference_even_where_images_are_not_read(
    name: str, document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "IMAGES", {})
    difference = logits.compare_logits({**document, "model_type": name}, passes.find_class(name))
    assert difference.whole < logits.TOLERANCE
    assert difference.decoded < logits.TOLERANCE


@pytest.mark.parametrize(
    "name", ["bart.BartForCausalLM", "bigbird_pegasus.BigBirdPegasusForCausalLM", "blenderbot.BlenderbotForCausalLM",
             "blenderbot-small.BlenderbotSmallForCausalLM", "gpt2, cross-attention", "marian.MarianForCausalLM",
             "mbart.MBartForCausalLM", "musicgen.MusicgenForCausalLM", "musicgen_decoder", "mvp.MvpForCausalLM",
             "pegasus.PegasusForCausalLM", "plbart.PLBartForCausalLM", "prophetnet.ProphetNetForCausalLM, one head",
             "trocr, fixed positions", "trocr, learned positions", "whisper.WhisperForCausalLM, small"]
)  # fmt: skip
def test_a_decoder_without_an_encoders_output_has_the_logits_of_the_reference(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_inputs(*arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        given, inputs = make_all(*arguments)
        del inputs["encoder_output"]
        return {key: given[key] for key in given if key not in ("encoder_hidden_states", "encoder_outputs")}, inputs

    make_all = logits.make_inputs
    monkeypatch.setattr(logits, "make_inputs", make_inputs)
    difference = logits.compare(name)
    assert difference.whole < logits.TOLERANCE
    assert difference.decoded < logits.TOLERANCE


@pytest.mark.parametrize(
    "name", ["bert.ForSequenceClassification", "bert.ForNextSentencePrediction", "xmod.ForSequenceClassification",
             "roberta.ForSequenceClassification", "llama.ForSequenceClassification", "gpt2.ForSequenceClassification",
             "modernbert.ForSequenceClassification", "eurobert.ForSequenceClassification",
             "ibert.ForSequenceClassification", "tapas.ForSequenceClassification"]
)  # fmt: skip
def test_heads_of_other_tasks_compute_the_scores_of_the_reference(name: str) -> None:
    assert logits.compare_scores(*name.split(".")) < logits.TOLERANCE


def test_a_canvas_is_told_what_the_last_step_expected() -> None:
    import torch

    document, cls_name = passes.make_document("diffusion_gemma"), "DiffusionGemmaForBlockDiffusion"
    model = logits.build_reference(document, cls_name)
    prompt, canvas = passes.make_token_ids(13, 1), passes.make_token_ids(6, 1)
    last = torch.randn(1, 6, 96)
    with torch.no_grad():
        given = {"decoder_input_ids": canvas, "self_conditioning_logits": last}
        expected = model(input_ids=prompt, **given).logits[0].numpy()
        table = model.get_input_embeddings().weight
        embeddings = (last[0].softmax(-1) @ table * table.shape[-1] ** 0.5).numpy()
    inputs = {"source_tokens": prompt[0].numpy(), "expected_embeddings": embeddings}
    weights, tokens = logits.save_weights(model), canvas[0].tolist()
    run = run_model(load(document).sizes, weights, tokens, **inputs)
    assert abs(run.logits - expected).max() < logits.TOLERANCE * abs(expected).max()
    blind = run_model(load(document).sizes, weights, tokens, source_tokens=prompt[0].numpy())
    assert abs(blind.logits - expected).max() > logits.TOLERANCE * abs(expected).max()


def test_emu3_reads_and_draws_images_of_many_codes() -> None:
    """The codebook holds the vectors of the patches themselves, so that each has a code of its own."""
    import torch

    document, cls_name = passes.make_document("emu3"), "Emu3ForConditionalGeneration"
    model = logits.build_reference(document, cls_name)
    codec, size, vectors = model.model.vqmodel, torch.tensor([[8, 8]]), []
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(5)
        for module in codec.modules():
            if isinstance(module, torch.nn.BatchNorm3d):
                module.running_mean.normal_(0, 0.3)
                module.running_var.uniform_(0.5, 2)
        pixels, codes = torch.randn(1, 3, 8, 8), torch.randint(0, 24, (1, 2, 2))
        hook = codec.quant_conv.register_forward_hook(lambda module, given, out: vectors.append(out))
        codec.encode(pixels, size)
        hook.remove()
        found = torch.cat((vectors[0][0, :, 0].flatten(1).T, torch.randn(8, 4)))
        codec.quantize.embedding.weight.copy_(found[torch.randperm(24)])
        assert codec.encode(pixels, size).image_tokens[0].unique().numel() == 16
        ids = images.insert_placeholders(passes.make_token_ids(logits.TOKENS, 1), cls_name)
        expected = model(input_ids=ids, pixel_values=pixels, image_sizes=size).logits[0].numpy()
        image = codec.decode(codes)[0].numpy()
    weights, sizes = logits.save_weights(model), load(document).sizes
    run = run_model(sizes, weights, ids[0].tolist(), pixels=pixels[0].numpy())
    assert abs(run.logits - expected).max() < logits.TOLERANCE * abs(expected).max()
    assert isinstance(sizes, Emu3)
    drawing = Evaluation(sizes.draw(), open_weights(weights, list(list_tensors(sizes))))
    drawn = drawing.run({"tokens": codes.flatten()[:0].numpy(), "codes_of_a_written_image": codes.flatten().numpy()})
    assert abs(drawn.T.reshape(image.shape) - image).max() < logits.TOLERANCE * abs(image).max()
