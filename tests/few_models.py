"""A zoo of a few models, for tests that compute or write whole tables."""

from __future__ import annotations

import pytest

import paramcount as pc
from paramcount.database import store


def use_models(monkeypatch: pytest.MonkeyPatch, models: list[pc.Model]) -> None:
    """Let the database consist of these models, and of those that are put into the list later, all of them computed."""
    monkeypatch.setattr(store, "IS_INSTALLED", False)
    monkeypatch.setattr(store, "list_ids", lambda own=True: [m.id for m in models if own or not m.is_own])
    monkeypatch.setattr(store, "load_entry", lambda id: next(m for m in models if m.id == id))
