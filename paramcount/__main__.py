"""python -m paramcount"""

from __future__ import annotations

from paramcount.cli import main

if __name__ == "__main__":
    main()
