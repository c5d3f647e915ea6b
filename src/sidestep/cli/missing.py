"""The message for a missing argument: what the command needs, what is missing, an example."""

from typing import Any


def missing_text(error: Any) -> str | None:
    """One sentence for a missing argument or option; None for any other error of the parser."""
    if type(error).__name__ != "MissingParameter" or not error.ctx or not error.param:
        return None
    command, absent = error.ctx.command, error.param
    path = _words_after_program(error.ctx)
    needed = [_label(param) for param in command.params if param.required]
    about = (getattr(absent, "help", None) or "").rstrip(".")
    about = f" ({about[0].lower()}{about[1:]})" if about else ""
    got = f"no {_label(absent)}" if len(needed) > 1 else "none"
    return f"{path} needs {' '.join(needed)}, got {got}{about}; for example: {_example(command)}"


def _words_after_program(context: Any) -> str:
    """The command without the program: study tell."""
    words: list[str] = []
    while context.parent is not None:
        words.insert(0, context.info_name)
        context = context.parent
    return " ".join(words)


def _label(param: Any) -> str:
    """An argument in capitals, an option with its name."""
    options = [option for option in param.opts if option.startswith("--")]
    word = (param.metavar or param.name).upper()
    return f"{options[0]} {word}" if options else word


def _example(command: Any) -> str:
    """The first example of the command's help."""
    return (command.help or "").partition("Example:")[2].strip().partition("\n")[0]
