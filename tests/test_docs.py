"""The notebooks run, and the site is built without a broken link and without asking anything of other machines."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
sys.path.append(str(ROOT / "docs" / "site"))

from build_site import RESULTS, build, configuration, page_places, render  # noqa: E402
from site_links import relinked  # noqa: E402
from site_notebooks import as_page, carried_out, opened  # noqa: E402


@pytest.fixture(scope="module")
def pages() -> dict[str, str | bytes]:
    """The notebooks for the site: as they stand, and with outputs once the tests below have run them."""
    return {name: page for path in NOTEBOOKS for name, page in with_itself(path, opened(path)).items()}


def with_itself(path: Path, notebook: Any) -> dict[str, str | bytes]:
    return {**as_page(notebook, path.stem), f"notebooks/{path.name}": path.read_bytes()}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, pages: dict[str, str | bytes]) -> None:
    assert not any(cell.get("outputs") for cell in opened(path).cells), "keep it without outputs"
    made = with_itself(path, carried_out(path))
    pages |= made
    page = made[f"notebooks/{path.stem}.md"]
    assert isinstance(page, str)
    assert "HR@10" in page
    assert "Traceback" not in page
    assert "\x1b" not in page
    if path.stem == "own-method":  # its last cell is a command of its own
        assert re.search(r"│ 1 .* yes .*\n.*\n│ 4 .* yes ", page)


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-steps", "own-data", "own-method"]


def test_the_site_is_whole(pages: dict[str, str | bytes], tmp_path: Path) -> None:
    """Links are checked by the builder, which ends with an error where one is broken."""
    build(tmp_path, tmp_path / "site", pages)
    made = {path.relative_to(tmp_path / "site").as_posix(): path for path in (tmp_path / "site").rglob("*.html")}
    for page in ("index", "reference/methods/fedavg", "reference/commands/run", "reference/python", "project/security"):
        assert f"{page}.html" in made
    assert len(made) > 80
    for name, path in made.items():
        text = path.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]* src=\"?(https?:[^\" >]+)", text)
        loaded += re.findall(r"<link[^>]* rel=\"?(?:stylesheet|preconnect)[^>]* href=\"?(https?:[^\" >]+)", text)
        assert not loaded, f"{name} loads {loaded}"
    for sheet in (tmp_path / "site").rglob("*.css"):
        assert not re.findall(r"url\([\"']?(https?:[^)]+)", sheet.read_text(encoding="utf-8")), sheet
    assert "--participation" in made["reference/commands/run.html"].read_text(encoding="utf-8")
    assert "local epochs per round" in made["reference/methods/fedavg.html"].read_text(encoding="utf-8")


def test_a_broken_link_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "index.md").write_text("# Broken\n\n[nowhere](gone.md)\n")
    with pytest.raises(subprocess.CalledProcessError):
        render(tmp_path, tmp_path / "site")
    said = "".join(capfd.readouterr())
    assert "gone.md" in re.sub(r"\x1b\[[0-9;]*m", "", said)


def test_links_follow_pages_that_stand_elsewhere() -> None:
    places = page_places()
    assert relinked("[a](docs/index.md)", "README.md", places) == "[a](../index.md)"
    assert relinked("[a](../../SECURITY.md#x)", "docs/how-to/deploy.md", places) == "[a](../project/security.md#x)"
    fenced = "```\n[a](docs/index.md)\n```"
    assert relinked(fenced, "README.md", places) == fenced


def test_every_picture_is_shown() -> None:
    texts = [path.read_text(encoding="utf-8") for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]]
    pictures = [path.name for path in (ROOT / "docs" / "images").iterdir()]
    assert [name for name in pictures if not any(f"images/{name}" in text for text in texts)] == []


def test_every_page_is_in_the_contents(tmp_path: Path) -> None:
    for place in [*page_places().values(), *RESULTS]:
        (tmp_path / "pages" / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pages" / place).touch()
    listed = str(configuration(tmp_path / "pages", tmp_path)["nav"])
    assert [place for place in page_places().values() if place.endswith(".md") and f"'{place}'" not in listed] == []
