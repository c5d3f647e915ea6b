"""`{commands}`: every command of `sidestep` with its --help, as the terminal prints it."""

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command
from typer.testing import CliRunner

from sidestep.cli.main import app as sidestep

WIDTH = 80


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command that does something, by its words."""
    below = getattr(command, "commands", None)
    if not below:
        yield path
        return
    for name, inner in below.items():
        yield from leaves(inner, (*path, name))


def help_of(path: tuple[str, ...]) -> str:
    """What `sidestep ... --help` prints."""
    shown = CliRunner().invoke(
        sidestep, [*path, "--help"], prog_name="sidestep", terminal_width=WIDTH
    )
    return shown.output.rstrip()


class Commands(SphinxDirective):
    """A section for every command."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        return [self._section(path) for path in [(), *leaves(get_command(sidestep))]]

    def _section(self, path: tuple[str, ...]) -> nodes.section:
        words = " ".join(("sidestep", *path))
        made = nodes.section(ids=[nodes.make_id(words)], names=[nodes.fully_normalize_name(words)])
        text = help_of(path)
        block = nodes.literal_block(text, text, language="text")
        made += [nodes.title(words, words), block]
        self.state.document.note_implicit_target(made, made)
        return made


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
