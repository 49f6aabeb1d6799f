"""Models that read a sound and no text: what the reference is given in the place of tokens.

`listen` puts it into the functions that give every other model its tokens. They are not changed themselves, because
the proofs of all model types depend on their source.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import wraps
from types import SimpleNamespace
from typing import Any

TOKENS = 13
FRAMES = 60  # that the layers of a model get, more than the kernels of the small configs reach
SAMPLES, MELS = "samples", "log-mel frames"
# {model type: what its encoder reads}
READS = {
    "audio-spectrogram-transformer": MELS, "clap": MELS, "clap_audio_model": MELS, "data2vec-audio": SAMPLES,
    "hubert": SAMPLES, "parakeet_ctc": MELS, "sew": SAMPLES, "sew-d": SAMPLES, "speech-encoder-decoder": SAMPLES,
    "speecht5": SAMPLES, "unispeech": SAMPLES, "unispeech-sat": SAMPLES, "wav2vec2": SAMPLES, "wav2vec2-bert": MELS,
    "wav2vec2-conformer": SAMPLES, "wavlm": SAMPLES,
}  # fmt: skip


def reads_sound(model: Any) -> bool:
    return model.config.model_type in READS


def count_samples(config: Any, n: int) -> int:
    """How many samples become n frames."""
    for width, stride in reversed([*zip(config.conv_kernel, config.conv_stride)]):
        n = (n - 1) * stride + width
    return n


def make_sound(model: Any, n: int = FRAMES) -> dict[str, Any]:
    """A random sound that becomes n frames, and what else the class reads."""
    import torch

    config, cls = model.config, type(model).__name__
    heard, text = getattr(config, "encoder", config), getattr(config, "decoder", config)
    given = {}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        if model.main_input_name == "input_values" or cls.startswith(("SpeechT5ForSpeech", "SpeechEnc")):
            given["input_values"] = torch.randn(1, count_samples(heard, n))
        if cls.startswith("Clap"):
            audio = getattr(config, "audio_config", config)
            given["input_features"] = torch.randn(1, 4 if audio.enable_fusion else 1, 20, audio.num_mel_bins)
            given["is_longer"] = torch.ones(1, 1, dtype=torch.bool)
        if cls == "ClapModel":
            given["input_ids"] = torch.randint(2, config.text_config.vocab_size, (1, TOKENS))
        if cls == "SpeechT5ForTextToSpeech":
            given = {"input_ids": torch.randint(2, config.vocab_size, (1, TOKENS))}
        if cls in ("SpeechT5ForSpeechToText", "SpeechEncoderDecoderModel"):
            given["decoder_input_ids"] = torch.randint(2, text.vocab_size, (1, TOKENS))
        if cls.startswith("SpeechT5") and cls.endswith("ToSpeech"):
            given["decoder_input_values"] = torch.randn(1, n, config.num_mel_bins)
            given["speaker_embeddings"] = torch.randn(1, config.speaker_embedding_dim)
    return given


# {argument of the reference: input of the flow}
INPUTS = {
    "input_values": "samples", "input_ids": "tokens", "decoder_input_ids": "tokens",
    "decoder_input_values": "mel_frames", "speaker_embeddings": "speaker",
}  # fmt: skip


def name_inputs(given: dict[str, Any]) -> dict[str, Any]:
    """The same as inputs of the flow."""
    found = {INPUTS[key]: value[0].numpy() for key, value in given.items()}
    if "samples" in found:
        found["samples"] = found["samples"][:, None]
    return found | ({"speaker": found["speaker"][None]} if "speaker" in found else {})


TABLES = ("prenet.embed_tokens", "embeddings.word_embeddings")


def find_any_table(model: Any) -> Any:
    """The token embedding of a part that reads text; without one a kernel, as that of a vision encoder."""
    import torch

    tables = (module for name, module in model.named_modules() if name.endswith(TABLES))
    return next(tables, SimpleNamespace(weight=torch.empty(1, 1, 1)))


def run_sound(model: Any, dead: Collection[str]) -> Exception | None:
    """What goes wrong if the reference runs a sound through a model; None if nothing does."""
    import torch

    try:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.normal_(0, 0.1)
                if name.removeprefix(f"{model.base_model_prefix}.") in dead:
                    parameter.fill_(torch.nan)
            out = model.eval()(**make_sound(model))
        read = [value for value in out.values() if isinstance(value, torch.Tensor) and value.is_floating_point()]
        assert read, "nothing comes out"
        assert not dead or all(value.isfinite().all() for value in read), f"{', '.join(dead)} is read"
    except Exception as error:
        return error
    return None


def with_sounds(find_table: Any, module: dict[str, Any]) -> Any:
    @wraps(find_table)
    def find(model: Any) -> Any:
        is_pair = model.config.model_type == "speech-encoder-decoder"
        return find_any_table(model) if reads_sound(model) and not is_pair else find_table(model)

    return find


def run_with_sounds(run_tokens: Any, module: dict[str, Any]) -> Any:
    @wraps(run_tokens)
    def run(document: dict[str, Any], cls_name: str, dead: Collection[str] = (), **options: Any) -> Exception | None:
        if document["model_type"] not in READS:
            found: Exception | None = run_tokens(document, cls_name, dead, **options)
            return found
        try:
            model = module["build_model"](document, cls_name, "cpu")
        except Exception as error:
            return error
        return run_sound(model, dead)

    return run


def make_documents(make_document: Any, module: dict[str, Any]) -> Any:
    """Of a type without a config of its own, the first one that is counted: no text can be tried with it."""

    @wraps(make_document)
    def make(name: str) -> dict[str, Any]:
        if name.partition(".")[0] not in READS or name in module["CONFIGS"]:
            found: dict[str, Any] = make_document(name)
            return found
        known = [case["config"] for case in module["cases"].load_cases()[name] if "refused" not in case]
        return {"architectures": [module["MODEL_TYPES"][name].cls], **known[0]}

    make.cache_clear = make_document.cache_clear  # type: ignore[attr-defined]  # it is cached
    return make


def expect_of_sounds(expect_logits: Any, module: dict[str, Any]) -> Any:
    @wraps(expect_logits)
    def expect(model: Any, document: dict[str, Any], cls_name: str, sizes: Any) -> Any:
        if document["model_type"] not in READS:
            return expect_logits(model, document, cls_name, sizes)
        inputs, found = hear(model, make_sound(model))
        return module["Expected"](list(inputs.pop("tokens", [0] * FRAMES)), inputs, found, None)

    return expect


def hear(model: Any, given: dict[str, Any], **options: Any) -> tuple[dict[str, Any], Any]:
    """(inputs of the flow, the reference's output) of a sound."""
    import torch

    for module in model.modules():
        if hasattr(module, "_consistent_dropout"):  # which is at random when the model is evaluated, too
            module._consistent_dropout = lambda x, p: x
    with torch.no_grad():
        output = model(**given, **options)
    names = ("projected_states", "logits", "spectrogram", "last_hidden_state")
    found = next(output[key] for key in names if key in output)
    inputs = name_inputs(given)
    if any(name.endswith("masked_spec_embed") for name, _ in model.named_parameters()):
        masked = options.get("mask_time_indices", torch.zeros(1, FRAMES, dtype=torch.bool))
        inputs["masked_frames"] = masked[0].long().numpy()
    return inputs, found[0].float().numpy()


REPLACED = {
    "find_table": with_sounds,
    "run_tokens": run_with_sounds,
    "make_document": make_documents,
    "expect_logits": expect_of_sounds,
}


def listen(module: dict[str, Any], *names: str) -> None:
    """Replace functions of a module that need a text by ones that know of sounds, too."""
    for name in names:
        module[name] = REPLACED[name](module[name], module)
