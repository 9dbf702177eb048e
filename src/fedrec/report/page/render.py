"""One self-contained HTML file: nothing is fetched, so it can be mailed, archived and opened anywhere.

Tables and figures are drawn here and read well without scripts; the script adds sorting, values under the pointer and
the choice of colours. The page forbids itself every request (Content-Security-Policy) and names its one style sheet and
one script by their checksums.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files

from fedrec.report.model.colours import DARK, LIGHT
from fedrec.report.page.parts import Section, join


@dataclass(frozen=True)
class Page:
    """What a page says, its parts already HTML."""

    title: str
    lead: str
    """One line below the title, plain text."""
    sections: Sequence[Section]
    opening: str = ""
    """Banners and headline figures, before the contents."""
    footer: str = ""
    """Plain text."""


def render(page: Page, more_script: str = "", connect: str = "'none'") -> str:
    """The file; ``more_script`` runs after the page's own, ``connect`` is whom it may ask (a source of a policy)."""
    style, script = page_style(), asset("page.js") + asset("take.js") + more_script
    contents = join(f'<li><a href="#{s.id}">{escape(s.short or s.title)}</a></li>' for s in page.sections)
    body = join(
        f'<section id="{s.id}" aria-labelledby="{s.id}-title"><h2 id="{s.id}-title">{escape(s.title)}</h2>\n{s.body}'
        "\n</section>"
        for s in page.sections
    )
    return f"""{head(page.title, style, script, connect)}<body>
<a class="skip" href="#main">Skip to the results</a>
<header class="top">
<h1>{escape(page.title)}</h1>
<p class="lead">{escape(page.lead)}</p>
{page.opening}
</header>
<nav class="contents" aria-label="Contents"><div><ul>
{contents}
</ul><button class="theme" type="button" hidden>Dark</button></div></nav>
<main id="main">
{body}
</main>
<footer>{escape(page.footer)}</footer>
<script>{script}</script>
</body>
</html>
"""


def head(title: str, style: str, script: str, connect: str = "'none'") -> str:
    """A file up to its body: its policy allows this style, this script, and no request but to ``connect``."""
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src '{checksum(style)}'",
            f"script-src '{checksum(script)}'",
            "img-src data:",
            f"connect-src {connect}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
"""


@cache
def page_style() -> str:
    """The style sheet, with the colours of methods that figures have too."""
    style = asset("page.css")
    for name, (shades, grey) in {"light": LIGHT, "dark": DARK}.items():
        found = "".join(f"--s{number}: {shade}; " for number, shade in enumerate(shades))
        style = style.replace(f"/* {name} series */", f"{found}--sc: {grey};")
    return style


@cache
def asset(name: str) -> str:
    return (files("fedrec") / "report" / "page" / "assets" / name).read_text(encoding="utf-8")


def checksum(text: str) -> str:
    """The source expression by which a policy allows an inline script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
