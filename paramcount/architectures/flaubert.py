"""FlauBERT: XLM for French, in the reference with learned positions always."""

from paramcount.architectures.xlm import XLM, plain_encoder
from paramcount.errors import ParamcountError
from paramcount.sizes import ConfigJson, FieldValues, flag
from paramcount.sizes.conditions import not_null, padding_in_table


def norms_after(js: ConfigJson, c: FieldValues) -> None:
    """The reference builds layers whose norms come first, but cannot run them."""
    if flag(js, "pre_norm", absent=False):
        raise ParamcountError("= true", where="pre_norm", expected="false")


class Flaubert(XLM):
    """Source: arXiv:1912.05372, section 3; FlaubertModel of the reference."""

    reference = "FlaubertWithLMHeadModel"
    task_heads = "XLM"
    conditions = (plain_encoder, norms_after, not_null("pad_token_id"), padding_in_table(2))
