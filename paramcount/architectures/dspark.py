"""DSpark: DFlash with a head that corrects logits by the token before, and one that predicts what is accepted."""

from paramcount.architectures.dflash import BLOCK, DFlash, projects_as
from paramcount.declare import Data, ops, sizes
from paramcount.errors import FieldName, ParamcountError, make_choice_error

KINDS = ("vanilla", "gated", "rnn")


def attends_as(js: sizes.ConfigJson, c: sizes.FieldValues) -> None:
    """SpecForge takes as many KV heads as heads only if the config says so."""
    mode, heads = str((js.get(BLOCK) or {}).get("attention_mode", "gqa")).lower(), (c["n_heads"], c["n_kv_heads"])
    if mode not in ("gqa", "mha"):
        raise sizes.make_value_error(mode, f"{BLOCK}.attention_mode", "gqa or mha")
    if (heads[0] == heads[1]) != (mode == "mha"):
        expected = f"{heads[0]}" if mode == "mha" else f"less than {heads[0]}, or {BLOCK}.attention_mode = mha"
        raise sizes.make_value_error(heads[1], "num_key_value_heads", expected)


def predicts_confidence(js: sizes.ConfigJson, c: sizes.FieldValues) -> bool:
    block = js.get(BLOCK) or {}
    return bool(block.get("enable_confidence_head", float(block.get("confidence_head_alpha") or 0) > 0))


class DSpark(DFlash):
    """Source: DSparkDraftModel of SpecForge, dspark.py."""

    reference = "DSparkDraftModel of sgl-project/SpecForge"
    conditions = (*DFlash.conditions, lambda js, c: projects_as(js, c, "dspark"), attends_as)

    d_markov: sizes.Natural = sizes.hf(f"{BLOCK}.markov_rank", absent=0, null=0)
    has_markov: sizes.Flag = sizes.derived(lambda js, c: c["d_markov"] > 0)
    markov_kind: sizes.Word = sizes.hf(f"{BLOCK}.markov_head_type", absent="vanilla")
    confidence: sizes.Flag = sizes.derived(predicts_confidence)
    confidence_by_token: sizes.Flag = sizes.hf(f"{BLOCK}.confidence_head_with_markov", absent=False)

    def forward(c, tokens: Data) -> Data:
        """An embedded block to its logits: those that the target's LM head makes of the states, corrected."""
        out = x = c.transform_block(ops.given("embedded block", c.block_size, c.d_model))
        if c.has_markov:
            ids = ops.given("tokens before", c.block_size)
            before = ops.lookup(ids, "markov_head.markov_w1.weight", "other_embedding", c.vocab_size, c.d_markov)
            h = ops.linear(c.correct(x, before), "markov_head.markov_w2", "other", c.vocab_size)
            out = ops.given("target logits", c.block_size, c.vocab_size) + h
            x = ops.join(x, before) if c.confidence_by_token else x
        if not c.confidence:
            return out
        return ops.bundle(out, ops.linear(x, "confidence_head.proj", "other", 1, bias=True))

    def correct(c, x: Data, before: Data) -> Data:
        """The embedded token before, gated by the state, or in a recurrent state."""
        if c.markov_kind == "rnn":
            return ops.markov_state(before, x, "markov_head.joint_proj")
        if c.markov_kind == "gated":
            gate = ops.linear(ops.join(x, before), "markov_head.gate_proj", "other", c.d_markov, bias=True)
            return before * ops.activate(gate, "sigmoid")
        return before

    def check(c) -> None:
        sizes.check_flag(c, "has_markov", "d_markov")
        if c.has_markov and c.markov_kind not in KINDS:
            raise make_choice_error(c.markov_kind, KINDS, where=FieldName("markov_kind"))
        if c.confidence and c.confidence_by_token and not c.has_markov:
            expected = "more than 0, because the confidence head reads the token before"
            raise ParamcountError("= 0", where=FieldName("d_markov"), expected=expected)

    def unused_fields(c) -> tuple[str, ...]:
        return () if c.has_markov else ("vocab_size",)
