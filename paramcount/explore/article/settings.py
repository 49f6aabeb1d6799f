"""The sizes of a model and the settings of its forward pass, with their config.json keys."""

from __future__ import annotations

import json

from paramcount.explaining.glossary import describe_size
from paramcount.explore.article.elements import Html, element, join, make_command, make_section, make_table
from paramcount.sizes.values import format_size
from paramcount.zoo import Model
from paramcount.zoo.what_if import get_size, list_paths


def render_sizes(model: Model) -> Html:
    rows = []
    for path in list_paths(model.sizes):
        meaning, key = describe_size(model.sizes, path)
        value = format_size(get_size(model.sizes, path))
        rows.append([element("code", path), value, meaning, element("code", key) if key else "derived"])
    table = make_table(["size", "value", "meaning", "config.json"], rows, numbers=(1,))
    return make_section("Sizes and settings", [make_command("explain", model.id)], table, render_settings(model))


def render_settings(model: Model) -> Html:
    """The config.json keys of a zoo entry that no size is read from."""
    settings = model.entry.settings if model.entry else None
    if not settings:
        return Html("")
    pairs = (
        element("div", element("dt", element("code", key)), element("dd", json.dumps(value, ensure_ascii=False)))
        for key, value in settings.items()
    )
    return join((element("p", "Settings of the forward pass:"), element("dl", *pairs, class_="settings")))
