"""What the terminal shows: help with examples, an example of a spec, completion, tables of 80 columns."""

import re
from importlib import resources

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sidestep.cli.main import EXIT_CODES, app
from sidestep.errors import InputError
from sidestep.experiments.spec import PolicySpec, Spec, WorldSpec, jobs_of, parse_spec


def leaves(command, path=()):
    """Every command that does something, by its words."""
    below = getattr(command, "commands", None)
    return (
        [path]
        if not below
        else [leaf for name, inner in below.items() for leaf in leaves(inner, (*path, name))]
    )


def names_in(model):
    """Keys of a table of a spec."""
    return set(model.model_fields)


def test_the_example_has_every_key_and_can_be_read():
    text = resources.files("sidestep.cli").joinpath("example.toml").read_text(encoding="utf-8")
    spec = parse_spec(text, "example.toml")
    said = set(re.findall(r"^(?:# )?(\w+) = ", text, re.MULTILINE)) | {"worlds", "policies"}
    assert said == names_in(Spec) | names_in(WorldSpec) | names_in(PolicySpec)
    shown, tuning = 3 * 3 + 2 * 4, 2 * 2 * 3  # two points of a grid, two worlds, three seeds
    assert len(jobs_of(spec)) == shown + tuning
    assert max(map(len, text.splitlines())) <= 106


def test_run_prints_the_example_and_wants_a_file_otherwise(capsys):
    app(["run", "--example"], standalone_mode=False)
    assert parse_spec(capsys.readouterr().out, "example").name == "mine"
    with pytest.raises(InputError, match="run needs a SPEC, got none"):
        app(["run"], standalone_mode=False)


@pytest.mark.full
@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("path", sorted(leaves(get_command(app))), ids=" ".join)
def test_every_command_explains_itself_in_80_columns_with_an_example(path, flag):
    shown = CliRunner().invoke(app, [*path, flag], terminal_width=80)
    assert shown.exit_code == 0
    assert "  Example: sidestep" in shown.output
    assert max(map(len, shown.output.splitlines())) <= 80


@pytest.mark.parametrize("path", [(), ("study",), ("user",), ("token",)], ids=" ".join)
def test_no_line_of_a_list_of_commands_is_cut(path):
    shown = CliRunner().invoke(app, [*path, "-h"], terminal_width=80)
    assert "..." not in shown.output.partition("Commands:")[2]
    assert max(map(len, shown.output.splitlines())) <= 80


@pytest.mark.parametrize("words", ["run none.toml", "report nothere"])
def test_a_file_or_folder_that_is_not_there_exits_as_not_found(words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        app(words.split(), standalone_mode=False)
    assert next(code for kind, code in EXIT_CODES if isinstance(caught.value, kind)) == 3


def test_a_shell_completes_commands_and_options(monkeypatch):
    monkeypatch.setenv("_SIDESTEP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "sidestep rep")
    monkeypatch.setenv("COMP_CWORD", "1")
    shown = CliRunner().invoke(app, prog_name="sidestep")
    assert {"reproduce", "report"} <= set(shown.output.split())


@pytest.mark.parametrize("command", ["policies", "environments"])
def test_a_catalog_fits_80_columns(command, capsys):
    app([command], standalone_mode=False)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
