"""The documentation as a site: ``python docs/site/build_site.py`` writes it to ``build/site``; ``make docs`` calls it.

Pages of ``docs/`` and of the top of the repository, the notebooks with their outputs, and a reference made from the
code. A link that leads nowhere is an error. The site asks nothing of other machines: no fonts, no scripts from outside.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from site_links import relinked
from site_notebooks import notebook_pages
from site_reference import reference_pages

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
AT_THE_TOP = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
}
SECTIONS = {
    "Tutorial": ("tutorial", "notebooks"),
    "How-to": ("how-to",),
    "Reference": ("reference",),
    "Explanation": ("explanation",),
    "Results": ("results",),
    "Project": ("project",),
}
RESULTS = ("reference/benchmarks.md", "reference/results.md", "reference/leaderboard.md")
"""Pages that report figures; they stand among the results."""


def page_places() -> dict[str, str]:
    """By file of the repository: where the site has it. Files that a page links to are part of the site."""
    kept = (path for path in DOCS.rglob("*") if path.is_file() and "site" not in path.relative_to(DOCS).parts)
    places = {path.relative_to(ROOT).as_posix(): path.relative_to(DOCS).as_posix() for path in kept}
    places = {path: place.replace(".ipynb", ".md") for path, place in places.items()}
    packaged = (path.relative_to(ROOT).as_posix() for path in (ROOT / "packaging").rglob("*") if path.is_file())
    return {**places, **AT_THE_TOP, **{path: path for path in packaged}}


def assemble(source: Path, notebooks: Mapping[str, str | bytes]) -> None:
    """Write all pages into a folder, with links that fit it."""
    places = page_places()
    for path, place in places.items():
        target = source / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".ipynb"):
            text = str(notebooks[place])
            target.write_text(relinked(text, path, places), encoding="utf-8")
        elif path.endswith(".md"):
            text = (ROOT / path).read_text(encoding="utf-8")
            target.write_text(relinked(text, path, places), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / path, target)
    more = {place: content for place, content in notebooks.items() if place not in places.values()}
    for place, content in {**reference_pages(), **more}.items():
        target = source / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)


def navigation(source: Path) -> list[object]:
    """The contents: sections, and their pages in the order of their names."""

    def under(folder: Path) -> list[object]:
        parts: list[object] = []
        for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name != "index.md", path.name)):
            place = path.relative_to(source).as_posix()
            if path.is_dir() and any(path.rglob("*.md")):
                parts.append({path.name.replace("-", " ").capitalize(): under(path)})
            elif path.suffix == ".md" and place not in RESULTS:
                parts.append(place)
        return parts

    contents: list[object] = ["index.md"]
    for title, folders in SECTIONS.items():
        pages = [page for folder in folders if (source / folder).is_dir() for page in under(source / folder)]
        contents.append({title: pages + [place for place in RESULTS if title == "Results"]})
    return contents


def configuration(source: Path, out: Path) -> dict[str, object]:
    return {
        "site_name": "fedrec",
        "site_description": "Personalised federated recommendation that people can trust, run and ship",
        "docs_dir": source.name,
        "site_dir": out.as_posix(),
        "use_directory_urls": False,  # pages open from a folder, without a server
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.tabs", "navigation.top", "content.code.copy", "toc.follow"],
        },
        "markdown_extensions": [
            "admonition",
            "attr_list",
            "tables",
            "toc",
            "pymdownx.highlight",
            "pymdownx.superfences",
        ],
        "extra": {"generator": False},
        "nav": navigation(source),
    }


def build(work: Path, out: Path, notebooks: Mapping[str, str | bytes]) -> None:
    """Assemble the pages in ``work/pages`` and build the site in ``out``."""
    shutil.rmtree(work / "pages", ignore_errors=True)
    assemble(work / "pages", notebooks)
    render(work, out)


def render(work: Path, out: Path) -> None:
    """The pages in ``work/pages`` as a site; ends with an error where a link is broken."""
    source = work / "pages"
    settings = work / "mkdocs.yml"
    settings.write_text(yaml.safe_dump(configuration(source, out.resolve()), sort_keys=False), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(settings)],
        cwd=work, check=True,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="where the site is written")
    out = parser.parse_args().out
    work = ROOT / "build" / "site-pages"
    work.mkdir(parents=True, exist_ok=True)
    build(work, out, notebook_pages(DOCS / "notebooks"))
    print(f"{out}/index.html")


if __name__ == "__main__":
    main()
