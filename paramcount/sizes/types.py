"""Types of sizes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

LARGEST = 2**31
MOST_NAMED = 10_000  # layers that can be listed one by one
Positive = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
Natural = Annotated[int, Field(strict=True, ge=0, le=LARGEST)]
Flag = Annotated[bool, Field(strict=True)]
Word = Annotated[str, Field(strict=True, min_length=1, max_length=40)]
Indices = Annotated[tuple[Natural, ...], Field(max_length=MOST_NAMED)]
Words = Annotated[tuple[Word, ...], Field(max_length=MOST_NAMED)]
Widths = Annotated[tuple[Positive, ...], Field(min_length=1, max_length=MOST_NAMED)]
