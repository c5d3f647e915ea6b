"""`{interface}`: what docs/openapi.json says, a section for every request."""

import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

DESCRIPTION = Path(__file__).parents[1] / "openapi.json"
Described = dict[str, Any]


def kind(schema: Described) -> str:
    """What a value is, in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))


def default(schema: Described, *, required: bool) -> str:
    """What is taken where nothing is said."""
    if required:
        return "needed"
    return json.dumps(schema["default"]) if "default" in schema else "may be left out"


def table(rows: list[tuple[str, str, str]]) -> nodes.table:
    """Name, kind, default."""
    made = nodes.table()
    group = nodes.tgroup(cols=3)
    group += [nodes.colspec(colwidth=width) for width in (25, 45, 30)]
    body = nodes.tbody()
    for row in rows:
        line = nodes.row()
        for k, cell in enumerate(row):
            text = nodes.literal(cell, cell) if k == 0 else nodes.inline(cell, cell)
            line += nodes.entry("", nodes.paragraph("", "", text))
        body += line
    group += body
    made += group
    return made


def fields_of(schema: Described) -> list[tuple[str, str, str]]:
    """The fields of a body."""
    needed = schema.get("required", [])
    return [
        (name, kind(field), default(field, required=name in needed))
        for name, field in schema.get("properties", {}).items()
    ]


class Interface(SphinxDirective):
    """The requests, then the shapes of what is sent and answered."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        self.env.note_dependency(str(DESCRIPTION))
        described = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
        self.bodies = set(described["components"]["schemas"])
        requests = [
            self._request(f"{method.upper()} {path}", operation)
            for path, methods in described["paths"].items()
            for method, operation in methods.items()
        ]
        shapes = [
            self._shape(name, schema) for name, schema in described["components"]["schemas"].items()
        ]
        return [*requests, self._section("Bodies", shapes)]

    def _request(self, title: str, operation: Described) -> nodes.section:
        parts: list[nodes.Node] = [nodes.paragraph("", operation.get("description", ""))]
        rows = [
            (
                one["name"],
                f"{one['in']}, {kind(one['schema'])}",
                default(one["schema"], required=one["required"]),
            )
            for one in operation.get("parameters", [])
        ]
        parts += [table(rows)] if rows else []
        parts.append(nodes.paragraph("", "", *self._linked(self._exchange(operation))))
        return self._section(title, parts)

    def _linked(self, text: str) -> list[nodes.Node]:
        """Text in which the name of a body leads to it."""
        return [
            nodes.reference("", word, refid=nodes.make_id(word), internal=True)
            if word in self.bodies
            else nodes.Text(word)
            for word in re.split(r"(\w+)", text)
        ]

    def _exchange(self, operation: Described) -> str:
        sent = [
            f"{media}: {kind(content['schema'])}"
            for media, content in operation.get("requestBody", {}).get("content", {}).items()
        ]
        good = [code for code in operation["responses"] if code.startswith("2")]
        answer = [
            f"{media}: {kind(content.get('schema', {}))}"
            for code in good
            for media, content in operation["responses"][code].get("content", {}).items()
        ]
        takes = f"Takes {' or '.join(sent)}. " if sent else ""
        return f"{takes}Answers {', '.join(good)} with {' or '.join(answer) or 'nothing'}."

    def _shape(self, name: str, schema: Described) -> nodes.section:
        parts: list[nodes.Node] = [nodes.paragraph("", schema.get("description", ""))]
        rows = fields_of(schema)
        return self._section(name, parts + ([table(rows)] if rows else []))

    def _section(self, title: str, parts: list[nodes.Node]) -> nodes.section:
        made = nodes.section(ids=[nodes.make_id(title)], names=[nodes.fully_normalize_name(title)])
        made += nodes.title(title, title)
        made += parts
        self.state.document.note_implicit_target(made, made)
        return made


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("interface", Interface)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
