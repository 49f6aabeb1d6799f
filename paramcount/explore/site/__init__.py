"""The site of `paramcount explore --site DIR`: files for any web server, with the page to explore among them.

`frame` puts a head and a navigation around a page, the other files make the pages, `write` puts them all into a folder
that `folder` moves to its place at the end. All links are relative.
"""

from paramcount.explore.site.write import write_site

__all__ = ["write_site"]
