"""The command line program, also run as `python -m paramcount`.

Ctrl-C and SIGTERM end it without a traceback, even during imports, and temporary files are removed.
"""

from __future__ import annotations

import signal
import sys

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Run the command line. A signal ends it with exit code 128 + its number: 130 for Ctrl-C."""
    received: list[int] = []

    def stop(number: int, _: object) -> None:
        received.append(number)
        raise SystemExit(128 + number)

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup and `&` in a script ignore signals
            signal.signal(number, stop)
    try:
        from paramcount.cli import main as run

        run()
    except BaseException:  # an import that is interrupted may raise anything
        if received:
            sys.exit(128 + received[0])
        raise


if __name__ == "__main__":
    main()
