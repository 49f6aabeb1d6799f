"""GTE as it was released: model type `new`, with classes that have more heads than those of transformers."""

from typing import ClassVar

from paramcount.architectures.jina_embeddings_v3 import Gte
from paramcount.declare import parts, sizes


def packed_without_scale(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """No published model has the other forms that the code can build."""
    for key, wanted in (("pack_qkv", True), ("logn_attention_scale", False)):
        if sizes.flag(js, key, wanted) != wanted:
            raise sizes.make_value_error(not wanted, key, f"{wanted}".lower())


class New(Gte):
    """Source: arXiv:2407.19669, section 3.1; modeling.py of Alibaba-NLP/new-impl."""

    reference = "NewForMaskedLM of Alibaba-NLP/new-impl"
    task_heads = {
        "ForSequenceClassification": parts.POOLED,
        "ForTokenClassification": parts.TOKENS,
        "ForQuestionAnswering": parts.SPAN_OF_LABELS,
        "ForMultipleChoice": parts.CHOICE,
    }
    prefix = "new."
    reference_names: ClassVar[dict[str, str]] = {}
    conditions = (
        sizes.padding_in_table(0),
        sizes.one_of("position_embedding_type", ("rope",), "rope"),
        sizes.one_of("layer_norm_type", ("layer_norm",), "layer_norm"),
        packed_without_scale,
    )
    defaults: ClassVar[dict[str, object]] = {
        "vocab_size": 30528, "d_model": 768, "n_layers": 12, "n_heads": 12, "d_ff": 3072, "n_token_types": 1,
        "tie_word_embeddings": True,
    }  # fmt: skip

    pooled: sizes.Flag = sizes.derived(sizes.class_ends("ForSequenceClassification", "ForMultipleChoice"))

    rope = sizes.rotary(10_000, 2048)
