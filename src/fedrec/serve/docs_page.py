"""The service's own description as a page: from its OpenAPI document, and with nothing fetched from elsewhere."""

from __future__ import annotations

from html import escape
from typing import Any

from fedrec.report.page.parts import Section, attributes, join
from fedrec.report.page.render import Page, render


def docs_page(openapi: dict[str, Any]) -> str:
    """Every route with what it takes."""
    routes = [
        (path, f"{verb.upper()} {path.replace(':path', '')}", about)
        for path, verbs in openapi["paths"].items()
        for verb, about in verbs.items()
    ]
    sections = [
        Section(f"route-{number}", route, _body(route, about, openapi), path)
        for number, (path, route, about) in enumerate(routes)
    ]
    lead = 'Errors are one line of JSON: {"error": "..."}. The same as a document for programs: /openapi.json'
    return render(Page(f"fedrec {openapi['info']['version']}: what this service answers", lead, sections))


def _body(route: str, about: dict[str, Any], openapi: dict[str, Any]) -> str:
    rows = [
        (p["name"], p["in"], p.get("required", False), p["schema"], p.get("description", ""))
        for p in about.get("parameters", [])
    ]
    content = about.get("requestBody", {}).get("content", {}).get("application/json")
    if content:
        schema = openapi["components"]["schemas"][content["schema"]["$ref"].rsplit("/", 1)[1]]
        needed = schema.get("required", [])
        rows += [(n, "body", n in needed, s, s.get("description", "")) for n, s in schema["properties"].items()]
    lines = join(
        f'<tr><th scope="row">{escape(name)}</th><td class="left">{escape(place)}</td>'
        f'<td class="left">{"needed" if needed else escape(_default(schema))}</td>'
        f'<td class="left">{escape(text)}</td></tr>'
        for name, place, needed, schema, text in rows
    )
    region = attributes(cls="scroll", role="region", tabindex=0, aria_label=f"what {route} takes")
    table = f"<div{region}><table><tbody>{lines}</tbody></table></div>" if rows else ""
    return f"<p>{escape(about.get('summary', ''))}</p>{table}"


def _default(schema: dict[str, Any]) -> str:
    return f"else {schema['default']}" if schema.get("default") not in (None, []) else ""
