"""The article about one model: how many parameters it has and why, as HTML.

It is the model's view of the page and its page on the site. All facts come from the functions behind the commands that
the article names. Links to other models and views are fragments of the page, "#model/ID"; the site rewrites them.
`elements` escapes; the other files are the sections.
"""

from paramcount.explore.article.article import render_article

__all__ = ["render_article"]
