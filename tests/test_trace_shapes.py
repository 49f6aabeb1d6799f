"""A trace is a reading of the declaration: nothing is lost, nothing doubled, shapes meet; for GPT-2 it is what a real pass produces."""

from __future__ import annotations

from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import pytest

import paramcount as pc
from paramcount import flow, names, zoo
from paramcount.counting import counted
from paramcount.errors import ParamcountError
from paramcount.flow import Data, weights
from paramcount.gpt2_numpy import forward, initial
from paramcount.summing import flows
from paramcount.tracing.sending import trace, traced
from paramcount.tracing.traces import Shape, Step, Trace
from paramcount.tracing.walking import Asked
from paramcount.tracing.words import OPERATIONS
from tests import cases
from tests.test_mutants import everywhere

CASES = cases.load()
IDS = [id for id in zoo.ids() if not zoo.entry(id).estimate]
WAYS = [Asked(5), Asked(5, pad=7), Asked(2, batch=3, source=4), Asked(1, past=6), Asked(3, past=600)]
# Operations that no line describes yet, and whose they are; none may be added.
NOT_TRACED = {
    "and blocks": {"deepseek_v4"},
    "prompt in front": {"mvp"},
    "same segment": {"xlnet"},
    "sum of scores": {"xlnet"},
    "sums of blocks": {"longt5", "longt5.LongT5EncoderModel"},
    "tokens and blocks": {"longt5", "longt5.LongT5EncoderModel"},
    "with distances": {"gemma4"},
}


def models() -> list[Any]:
    """Every zoo entry, and of every supported architecture a config that the reference builds."""
    found: list[Any] = [pytest.param(zoo.entry(id), id=id) for id in IDS]
    for name, of_type in CASES.items():
        config = next((case["config"] for case in of_type if "total" in case), None)
        if config is not None:
            found.append(pytest.param(names.load(config), id=name))
    return found


MODELS = models()


def sent(model: zoo.Model) -> list[Trace]:
    """The model's traces in every way that it can be sent anything."""
    found = []
    for asked in WAYS:
        try:
            found.append(traced(model, asked))
        except ParamcountError as error:
            if "position table" not in str(error) and "keeps nothing" not in str(error):
                raise
    assert found
    return found


def numbers(shape: Shape) -> int | None:
    return None if any(isinstance(n, str) for n in shape) else prod(n for n in shape if isinstance(n, int))


@pytest.mark.parametrize("model", MODELS)
def test_in_every_product_the_inner_widths_are_equal(model: zoo.Model) -> None:
    for found in sent(model):
        for step in found.steps:
            if step.product:
                left, right, out = step.product
                assert (left[-1], right[-1]) == (right[0], out[-1])
                assert left[:-1] == out[:-1]


@pytest.mark.parametrize("model", MODELS)
def test_what_a_step_takes_is_what_the_steps_it_reads_have_given(model: zoo.Model) -> None:
    for found in sent(model):
        for i, step in enumerate(found.steps):
            if step.reads and len(step.reads) == len(step.inputs) and all(before < i for before in step.reads) and not step.under:
                given = [numbers(found.steps[before].out) for before in step.reads]
                assert [numbers(shape) for shape in step.inputs] == given, step


@pytest.mark.parametrize("model", MODELS)
def test_every_declared_weight_stands_in_one_step(model: zoo.Model) -> None:
    out, part = next(iter(flows(model.sizes, model.reading.head)))
    declared = Counter(name for name, *_ in weights(out, part))
    found = traced(model, Asked(5))
    assert Counter(held.name for step in found.steps for held in step.weights) == declared


@pytest.mark.parametrize("model", MODELS)
def test_what_the_steps_hold_sums_to_the_total(model: zoo.Model) -> None:
    total = 0
    for step in traced(model, Asked(5)).steps:
        copies = prod(under.copies for under in step.under)
        stacked = any(under.axis == "expert" for under in step.under)
        for held in step.weights:
            if held.role == "parameter" and held.tied_to is None:
                assert stacked or sorted(map(str, held.shape)) == sorted(map(str, held.stored))
                total += copies * prod(n for n in held.shape if isinstance(n, int))
    assert total == counted(model).total


def test_the_operations_that_are_not_traced_are_these_and_no_more() -> None:
    found: dict[str, set[str]] = {}
    for of_type in CASES.values():
        for model in (names.load(case["config"]) for case in of_type if "total" in case):
            for step in traced(model, Asked(5)).steps:
                if step.note == "not traced":
                    found.setdefault(step.op, set()).add(str(model.architecture))
    assert found == NOT_TRACED


def test_no_operation_is_described_that_no_declaration_has() -> None:
    root = Path(pc.__file__).parent
    folders = (root / "flow.py", *root.glob("parts/*.py"), *root.glob("architectures/*.py"), root / "tracing" / "walking.py")
    written = "".join(path.read_text(encoding="utf-8") for path in folders)
    assert [op for op in OPERATIONS if f'"{op}"' not in written and f'"{op[:-1]}{{' not in written] == []  # "the input of {letter}"


# ---- GPT-2: what really runs

SIZES: Any = names.load("gpt2-small").sizes.model_copy(
    update={"vocab_size": 29, "n_positions": 13, "d_model": 12, "n_layers": 2, "n_heads": 3, "d_head": 4, "d_ff": 20}
)
LIKE = {"attention scores": "QKᵀ", "attention pattern": "softmax", "attended": "· V"}  # an intermediate of the pass and the step that gives it


def ran(n_tokens: int) -> list[tuple[str, tuple[int, ...]]]:
    """The intermediates of a real pass, in order."""
    seen: list[tuple[str, tuple[int, ...]]] = []
    forward(initial(SIZES), range(n_tokens), n_heads=SIZES.n_heads, look=lambda name, x: seen.append((name, x.shape)))
    return seen


def layer_by_layer(found: Trace) -> list[Step]:
    from paramcount.tracing.telling import with_every_layer

    return list(with_every_layer(found).steps)


@pytest.mark.parametrize("n_tokens", [1, 5, 13])
def test_the_trace_of_gpt2_is_shape_by_shape_what_a_forward_pass_produces(n_tokens: int) -> None:
    told = layer_by_layer(trace({"architecture": "gpt2", "config": SIZES.model_dump()}, tokens=n_tokens))
    made = ran(n_tokens)
    # The pass makes no array of the mask alone and none of the last row; its logits are of every row.
    expected = [step.out for step in told if step.op not in ("tokens", "mask", "last row")]
    assert [shape for _, shape in made[:-1]] == expected[:-1]
    assert (n_tokens, *expected[-1]) == made[-1][1]
    for (name, _), step in zip(made, [step for step in told if step.op not in ("tokens", "mask", "last row")]):
        word = name.rpartition(".")[2]
        assert LIKE.get(word, step.op) == step.op


# ---- what a person works out by hand


def by_text(found: Trace, text: str) -> list[Step]:
    return [step for step in found.steps if step.text == text]


def test_grouped_queries_share_their_keys_while_decoding() -> None:
    """Llama 3.1 8B: 32 heads on 8 of keys and values, each 128 wide (arXiv:2407.21783, table 3)."""
    found = trace("llama-3.1-8b", past=99)
    (queries,), (keys,) = by_text(found, "queries"), by_text(found, "keys")
    assert (queries.out, keys.out) == ((1, 32, 128), (1, 8, 128))
    assert [step.out for step in found.steps if step.op == "cache"] == [(100, 8, 128), (100, 8, 128)]
    (scores,) = [step for step in found.steps if step.op == "QKᵀ"]
    assert (scores.inputs, scores.out, scores.heads) == (((1, 32, 128), (100, 8, 128)), (32, 1, 100), 32)


def test_a_latent_cache_holds_576_numbers_a_token_and_layer() -> None:
    """DeepSeek-V3: a latent of 512 and a rotated key of 64 (arXiv:2412.19437, section 4.2), 61 layers."""
    assert trace("deepseek-v3", tokens=10).cached_elements == 10 * 61 * (512 + 64)


def test_a_window_bounds_what_a_token_sees_and_what_is_kept() -> None:
    """Mistral 7B v0.1: a window of 4,096 (arXiv:2310.06825, table 1), in which the next token stands itself."""
    found = trace("mistral-7b-v0.1", past=9999)
    assert {step.out for step in found.steps if step.op == "QKᵀ"} == {(32, 1, 4096)}
    assert found.cached_elements == 32 * 2 * 8 * 128 * 4095


def test_an_encoder_sees_all_of_its_text_and_its_decoder_what_was_written() -> None:
    found = trace("t5-small", tokens=3, source=4)
    patterns = {(step.part, step.out) for step in found.steps if step.op == "softmax"}
    assert patterns == {("encoder", (8, 4, 4)), ("decoder", (8, 3, 3)), ("cross_attention", (8, 3, 4))}
    assert {step.part for step in found.steps if step.op == "mask"} == {"decoder"}


def test_a_state_space_layer_keeps_as_much_whatever_has_passed() -> None:
    """Mamba 2: a state of 128 x 64 for each head, a window of three inputs (arXiv:2405.21060, section 7)."""
    short, long = (trace("codestral-mamba-7b", past=past).cached_elements for past in (1, 100_000))
    assert short == long == 64 * (128 * 64 * 128 + 3 * (8192 + 2 * 8 * 128))


# ---- a declaration that is wrong


def test_a_changed_declaration_is_another_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    before = trace("llama-3.1-8b").steps
    original = flow.linear
    everywhere(monkeypatch, original, lambda x, name, component, width, **k: original(x, name, component, width + 1 if component == "mlp.up" else width, **k))
    with pytest.raises(ParamcountError, match="meets"):  # gate and up no longer fit each other
        trace("llama-3.1-8b")
    monkeypatch.undo()
    everywhere(monkeypatch, flow.rope, lambda x: Data("turn", (x,), x.shape))
    after = trace("llama-3.1-8b").steps
    assert [step.op for step in before].count("rope") == [step.op for step in after].count("turn") == 2
    assert {step.note for step in after if step.op == "turn"} == {"not traced"}


# ---- what cannot be sent


@pytest.mark.parametrize("wrong", [0, -1, True, 2.0, "5", 10**10])
@pytest.mark.parametrize("name", ["tokens", "pad", "batch", "past", "source"])
def test_what_is_no_number_of_tokens_is_refused(name: str, wrong: object) -> None:
    if (name, wrong) == ("past", 0) and wrong is not True:
        return
    with pytest.raises(ParamcountError, match=f"^{name} = "):
        trace("llama-3.1-8b", **{name: wrong})  # type: ignore[arg-type]


def test_a_model_that_reads_a_text_at_once_cannot_decode() -> None:
    with pytest.raises(ParamcountError, match="reads a text at once and keeps nothing of it"):
        trace({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, past=3)


def test_an_estimate_has_nothing_to_trace() -> None:
    with pytest.raises(ParamcountError, match="is an estimate"):
        trace("gpt-4")
