"""``tauten completion``: a script that lets a shell complete commands, options and their values."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from typing import Any

from .options import Parser

EPILOG = """examples:
  eval "$(tauten completion bash)"                                    # in ~/.bashrc
  eval "$(tauten completion zsh)"                                     # in ~/.zshrc
  tauten completion fish > ~/.config/fish/completions/tauten.fish
"""
BASH = """_tauten() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
    local words=""
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        words="{commands} --help --version"
    else
        case "${{COMP_WORDS[1]}} $previous" in
{values}
        esac
        if [[ -z $words && $current == -* ]]; then
            case "${{COMP_WORDS[1]}}" in
{options}
            esac
        fi
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _tauten tauten
"""
ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"


def add(commands: Any) -> Parser:
    """Add the command."""
    command: Parser = commands.add_parser(
        "completion",
        help="print a script for completion in a shell",
        description="Print a script that completes commands, options, values and files.",
        epilog=EPILOG,
    )
    command.add_argument("shell", choices=tuple(SCRIPTS))
    command.set_defaults(commands=commands)
    return command


def run(options: argparse.Namespace) -> None:
    """Print the script."""
    sys.stdout.write(SCRIPTS[options.shell](options.commands))


def _bash(commands: Any) -> str:
    values, options = [], []
    for name, command in commands.choices.items():
        flags = [flag for action in _shown(command) for flag in action.option_strings]
        options.append(f"                {name}) words='{' '.join(flags)}' ;;")
        for action in filter(_values, _shown(command)):
            for before in action.option_strings or [name]:  # positionals follow the command
                words = " ".join(_values(action))
                values.append(f"            '{name} {before}') words='{words}' ;;")
    return BASH.format(
        commands=" ".join(commands.choices), values="\n".join(values), options="\n".join(options)
    )


def _zsh(commands: Any) -> str:
    return ZSH + _bash(commands)


def _fish(commands: Any) -> str:
    lines = ["complete -c tauten -n __fish_use_subcommand -f -l version -l help"]
    for about in commands._choices_actions:
        told = f"-f -a {about.dest} -d {shlex.quote(about.help)}"
        lines.append(f"complete -c tauten -n __fish_use_subcommand {told}")
        for action in _shown(commands.choices[about.dest]):
            lines.append(" ".join(_fish_parts(about.dest, action)))
    return "\n".join(lines) + "\n"


def _fish_parts(name: str, action: argparse.Action) -> Iterator[str]:
    yield f"complete -c tauten -n '__fish_seen_subcommand_from {name}'"
    for flag in action.option_strings:
        yield f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
    if action.option_strings and action.nargs != 0:
        yield "-r"
    if values := _values(action):
        yield f"-f -a {shlex.quote(' '.join(values))}"
    if action.option_strings:  # fish says it of the values as well
        yield f"-d {shlex.quote(_briefly(action))}"


def _briefly(action: argparse.Action) -> str:
    """The help of an option, up to where it lists the values that are offered anyway."""
    text = (action.help or "").partition(" (")[0]
    return text.partition(":")[0] if _values(action) else text


def _shown(command: Parser) -> list[argparse.Action]:
    return [action for action in command._actions if action.help != argparse.SUPPRESS]


def _values(action: argparse.Action) -> list[str]:
    """Values to offer, whether or not they are the only ones."""
    return list(getattr(action, "suggestions", action.choices) or [])


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
