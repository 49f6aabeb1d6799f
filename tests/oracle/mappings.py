"""The rows of the mappings of language, speech and audio as transformers has them.

`python -m tests.oracle.mappings` writes them anew.
"""

from __future__ import annotations

import sys

from paramcount.sizes.settings import AUTO
from tests.mapping_states import (
    BODY,
    EXACT,
    LANGUAGE_MODEL,
    REFUSED,
    UNREACHABLE,
    UNSUPPORTED,
    Row,
    find_state,
    save_mappings,
)
from tests.oracle.differential import build_model, silence
from tests.oracle.settings import config_class, list_sections, list_supported

MAPPINGS = {
    "causal": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "masked": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "image-text-to-text": "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",
    "multimodal": "MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES",
    "pretraining": "MODEL_FOR_PRETRAINING_MAPPING_NAMES",
    "ctc": "MODEL_FOR_CTC_MAPPING_NAMES",
    "speech-seq2seq": "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",
    "audio-classification": "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES",
    "audio-frame-classification": "MODEL_FOR_AUDIO_FRAME_CLASSIFICATION_MAPPING_NAMES",
    "audio-x-vector": "MODEL_FOR_AUDIO_XVECTOR_MAPPING_NAMES",
    "text-to-spectrogram": "MODEL_FOR_TEXT_TO_SPECTROGRAM_MAPPING_NAMES",
    "text-to-waveform": "MODEL_FOR_TEXT_TO_WAVEFORM_MAPPING_NAMES",
}


def list_classes() -> list[tuple[str, str, str]]:
    """(mapping, model type, class), one for each class that a mapping names."""
    from transformers.models.auto import modeling_auto

    found = []
    for mapping, name in MAPPINGS.items():
        for model_type, cls in sorted(getattr(modeling_auto, name).items()):
            found += [(mapping, model_type, one) for one in (cls if isinstance(cls, tuple) else (cls,))]
    return sorted(found)


def find_own_error(model_type: str, cls: str) -> str:
    """The error with which the reference refuses its own default config.

    Empty if it builds it, or would with another library.
    """
    try:
        build_model({"model_type": model_type, "architectures": [cls]}, cls)
    except ImportError:
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
    return ""


def explain_unsupported(model_type: str) -> str:
    """What is not declared of a model type: its layers, or what is around a language model that is supported."""
    language = list_sections(config_class(model_type)).get("text_config", "").removeprefix(AUTO)
    types = {config_class(name).__name__: name for name in list_supported()}
    language = types.get(language, language)
    if language in list_supported():
        return f"its parts around the language model ({language}, which is supported alone) are not declared"
    inner = [key.removesuffix("_config") for key in list_sections(config_class(model_type))]
    return (
        f"its {' and '.join(inner)} {'is' if len(inner) == 1 else 'are'} not declared"
        if inner
        else "its layers are not declared"
    )


def make_row(mapping: str, model_type: str, cls: str) -> Row:
    found = Row(mapping, model_type, cls, UNSUPPORTED, "")
    now = find_state(found)
    if now in (EXACT, UNREACHABLE):
        return found._replace(state=now)
    if now == LANGUAGE_MODEL:
        return found._replace(state=now, reason="its vision or audio encoder is not declared")
    if now == BODY:
        return found._replace(state=now, reason="the head of this class is not declared")
    error = find_own_error(model_type, cls)
    return (
        found._replace(state=REFUSED, reason=error) if error else found._replace(reason=explain_unsupported(model_type))
    )


def freeze(names: list[str]) -> None:
    """Freeze the rows of some model types, or of all."""
    save_mappings([make_row(*found) for found in list_classes() if not names or found[1] in names])


if __name__ == "__main__":
    silence()
    freeze(sys.argv[1:])
