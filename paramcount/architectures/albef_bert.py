"""The text encoders of ALBEF and BLIP as their repositories have them: BERT whose layers, or the later ones, attend to
the vectors of an image, which may be wider or narrower. Their configs say that they are BERT's.
"""

from collections.abc import Hashable
from typing import Any, ClassVar

from paramcount.architectures.bert import Bert
from paramcount.declare import Data, ops, parts, sizes
from paramcount.errors import FieldName, ParamcountError


class AlbefBert(Bert):
    """Source: arXiv:2107.07651, section 3.1; xbert.py of salesforce/ALBEF."""

    reference = "BertForMaskedLM of salesforce/ALBEF"
    model_types = ("albef_bert",)
    released_as = {"bert": ("fusion_layer",)}
    task_heads: ClassVar[sizes.TaskHeads] = "BERT_SENTENCES"
    equivalent_classes: ClassVar[tuple[str, ...]] = ("BertLMHeadModel",)
    is_found_by_class = False
    gguf = ""
    conditions = (
        sizes.padding_inside(0),
        sizes.one_of("position_embedding_type", ("absolute",), "absolute"),
    )

    is_decoder: sizes.Flag = sizes.derived(lambda js, c: (js.get("architectures") or [""])[0] == "BertLMHeadModel")
    n_text_layers: sizes.Natural = sizes.derived(lambda js, c: min(js["fusion_layer"], c["n_layers"]))
    n_fusion_layers: sizes.Natural = sizes.derived(lambda js, c: c["n_layers"] - c["n_text_layers"])
    d_memory: sizes.Positive = sizes.hf("encoder_width")
    cross_attention: sizes.Flag = sizes.derived(lambda js, c: c["n_fusion_layers"] > 0, late=True)

    def check(c) -> None:
        """Each layer is of one of the two kinds."""
        super().check()
        if c.n_layers != (n := c.n_text_layers + c.n_fusion_layers):
            found = (
                f"= {c.n_layers} is not "
                + FieldName("n_fusion_layers")
                + " + "
                + FieldName("n_text_layers")
                + f" = {n}"
            )
            fitting = (n, c.n_layers - c.n_text_layers, c.n_layers - c.n_fusion_layers)
            raise ParamcountError(found, where=FieldName("n_layers"), expected=str(n), sizes=fitting)

    def memory(c) -> tuple[Data, ...]:
        return (parts.source_states(c.d_memory),) if c.cross_attention else ()

    def kinds(c) -> list[tuple[Hashable, ops.Size]]:
        return [("text", c.n_text_layers), ("fusion", c.n_fusion_layers)]

    def layer_of(c, kind: Any, x: Data, *memory: Data) -> Data:
        return c.layer(x, *(memory if kind == "fusion" else ()))


class BlipBert(AlbefBert):
    """Every layer attends to the image, and tokens have no segments. Source: arXiv:2201.12086; med.py of
    salesforce/BLIP.
    """

    reference = "BertLMHeadModel of salesforce/BLIP"
    model_types = ("blip_bert",)
    released_as = {"bert": ("encoder_width",)}
    task_heads = {}
    equivalent_classes = ()
    base_model = "BertModel"
    unused_keys = ("type_vocab_size",)

    n_text_layers: sizes.Natural = sizes.derived(lambda js, c: 0 if js.get("add_cross_attention") else c["n_layers"])
    n_token_types = sizes.constant(None)
