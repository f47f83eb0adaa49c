"""`/docs`: the OpenAPI document as a page that needs nothing from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: .4rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { background: color-mix(in srgb, currentColor 6%, transparent); overflow-x: auto; padding: .8rem; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
b { display: inline-block; min-width: 3.4rem; }
"""


def page(document: Mapping[str, Any]) -> str:
    """The page of an OpenAPI document."""
    info = document["info"]
    parts = [f"<h1>{_text(info['title'])}</h1>", f"<pre>{_text(info.get('description', ''))}</pre>"]
    groups: dict[str, list[str]] = {}
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            group = (operation.get("tags") or ["other"])[0]
            groups.setdefault(group, []).append(_operation(path, verb, operation))
    first = [name for name in ("inference",) if name in groups]
    for name in (*first, *(name for name in groups if name not in first)):
        parts += [f"<h2>{_text(name)}</h2>", *groups[name]]
    schemas = document.get("components", {}).get("schemas", {})
    parts += ["<h2>schemas</h2>", *(_details(name, schema) for name, schema in schemas.items())]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>{_text(info["title"])}: routes</title><style>{_STYLE}</style>'
        f'{"".join(parts)}<p><a href="openapi.json">openapi.json</a></p></html>'
    )


def _operation(path: str, verb: str, operation: Mapping[str, Any]) -> str:
    body = [f"<p>{_text(operation['description'])}</p>"] if operation.get("description") else []
    for parameter in operation.get("parameters", ()):
        about = parameter.get("description", "")
        body.append(f"<p><code>{_text(parameter['name'])}</code> ({parameter['in']}) {_text(about)}</p>")
    asked = operation.get("requestBody", {}).get("content", {})
    body += [_details(f"request, {kind}", content.get("schema", {})) for kind, content in asked.items()]
    for status, answer in operation.get("responses", {}).items():
        name = f"{status} {answer.get('description', '')}"
        contents = answer.get("content", {}).items()
        body += [_details(f"{name}, {kind}", content.get("schema", {})) for kind, content in contents]
        if not answer.get("content"):
            body.append(f"<p>{_text(name)}</p>")
    head = f"<b>{verb.upper()}</b> <code>{_text(path)}</code> {_text(operation.get('summary', ''))}"
    return f"<details><summary>{head}</summary>{''.join(body)}</details>"


def _details(name: str, schema: Any) -> str:
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    return f"<details><summary>{_text(name)}</summary><pre>{_text(text)}</pre></details>"


def _text(value: object) -> str:
    return html.escape(str(value))
