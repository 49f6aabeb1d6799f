"""The page of `paramcount explore`: models to browse, compare, change and look into, in one file.

`models` and `structures` export what the page needs as data: `structures` reads the tensors, caches and FLOPs off the
flow with symbols in place of sizes, `conditions` does the same with the checks of sizes. `page` puts the data, the
style and the program into one file. The program is JavaScript in `src`; `npm run build` bundles it to `page.js`.
"""

from paramcount.explore.page import build_page, build_zoo_page

__all__ = ["build_page", "build_zoo_page"]
