"""The forward pass without inputs that are not given: a text without an image."""

from __future__ import annotations

from collections.abc import Collection

from paramcount.errors import ParamcountError, find_nearest, list_names, quote
from paramcount.flow import Body, Data, Input, JoinPrompt, Layers, Tuple, list_steps

ENCODER_OUTPUT = "encoder_output"


def omit_missing(out: Data, given: Collection[str]) -> Data:
    """The forward pass with these inputs alone, by `name_input`.

    A step that does not need a missing input goes without it, and so do layers that only read an image. A decoder that
    is a model of its own goes without the looks at an encoder's output. If the output needs a missing input, the pass
    stays as it is.
    """
    found = Omission(given, looks_away=ENCODER_OUTPUT in list_inputs(out) - set(given)).visit(out, {})
    return out if found is None else found


def check_inputs(out: Data, given: Collection[str]) -> None:
    """Raises: ParamcountError for an input that the forward pass does not have."""
    names = list_inputs(out) - {"input", "tokens"}
    for name in given:
        if name not in names:
            raise ParamcountError(
                f"unknown input {quote(name)}",
                expected=list_names(sorted(names), name) or "tokens alone",
                nearest=find_nearest(name, names),
            )


def list_inputs(out: Data) -> set[str]:
    """The names of what the forward pass is given."""
    return {name_input(data.operation.what) for data, *_ in list_steps(out) if isinstance(data.operation, Input)}


class Omission:
    """A walk over a forward pass that leaves out what depends on missing inputs."""

    def __init__(self, given: Collection[str], looks_away: bool) -> None:
        self.given = given
        self.looks_away = looks_away  # without cross-attention: there is nothing to look at

    def visit(self, data: Data, done: dict[int, Data | None]) -> Data | None:
        """The value without missing inputs; None if it needs one. `done`: by id, inside one body."""
        if id(data) not in done:
            done[id(data)] = self.rebuild(data, done)
        return done[id(data)]

    def rebuild(self, data: Data, done: dict[int, Data | None]) -> Data | None:
        operation = data.operation
        if isinstance(operation, Input):
            is_missing = operation.default is None and name_input(operation.what) not in self.given
            return None if is_missing else data
        inputs = [self.visit(before, done) for before in data.inputs]
        needed = len(inputs) if operation.needs is None else operation.needs
        if data.bodies or isinstance(operation, Tuple):
            needed = 1
        if self.looks_away and data.part == "cross_attention" and None in inputs:
            return inputs[0]
        if operation.of_prompt and inputs[0] is not None and None in inputs:
            return inputs[0]
        if isinstance(operation, JoinPrompt) and inputs[0] is None:
            return inputs[1]
        if any(value is None for value in inputs[:needed]):
            return None
        if isinstance(operation, Layers) and None in inputs[len(inputs) - operation.n_others :]:
            return None  # every layer returns another second value
        if isinstance(operation, Tuple) and not any(inputs[1:]):
            return inputs[0]
        if all(value is before for value, before in zip(inputs, data.inputs)):
            return data
        bodies = [self.enter(body, inputs) for body in data.bodies]
        left = tuple(body for body in bodies if body is not None)
        if len(left) < len(bodies) and not (left and isinstance(operation, Layers)):
            return None
        return Data(
            operation,
            tuple(value for value in inputs if value is not None),
            data.shape,
            data.weights,
            prefix=data.prefix,
            bodies=left,
            part=data.part,
        )

    def enter(self, body: Body, inputs: list[Data | None]) -> Body | None:
        done: dict[int, Data | None] = {id(inner): inner for inner in body.inputs}
        done.update((id(inner), None) for inner, value in zip(body.inputs, inputs) if value is None)
        out = self.visit(body.out, done)
        if out is None:
            return None
        carried = body.inputs[len(inputs) :]
        kept = [inner for inner, value in zip(body.inputs, inputs) if value is not None]
        return body._replace(inputs=(*kept, *carried), out=out)


def name_input(what: str) -> str:
    """The keyword of an input: "source_tokens"."""
    return what.replace(" ", "_").replace("-", "_")
