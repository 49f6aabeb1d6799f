"""FlauBERT: XLM for French, in the reference with learned positions always."""

from paramcount.architectures.xlm import XLM, plain_encoder
from paramcount.declare import sizes
from paramcount.errors import ParamcountError


def norms_after(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """The reference builds layers whose norms come first, but cannot run them."""
    if sizes.flag(js, "pre_norm", absent=False):
        raise ParamcountError("= true", where="pre_norm", expected="false")


class Flaubert(XLM):
    """Source: arXiv:1912.05372, section 3; FlaubertModel of the reference."""

    reference = "FlaubertWithLMHeadModel"
    task_heads = "XLM"
    conditions = (plain_encoder, norms_after, sizes.not_null("pad_token_id"), sizes.padding_in_table(2))
