"""The command lines that start engines."""

from __future__ import annotations

import shlex
from collections.abc import Mapping


def join_command(*parts: object) -> str:
    """A line for a POSIX shell. A mapping is options with their values: none for True, left out for None and False.

    >>> join_command("vllm serve", "a model", {"--max-num-seqs": 16, "--enforce-eager": True, "--quantization": None})
    "vllm serve 'a model' --max-num-seqs 16 --enforce-eager"
    """
    words = [str(parts[0])]
    for part in parts[1:]:
        if isinstance(part, Mapping):
            for flag, value in part.items():
                if value is not None and value is not False:
                    words += [flag] if value is True else [flag, shlex.quote(str(value))]
        else:
            words.append(shlex.quote(str(part)))
    return " ".join(words)
