"""Commands of other packages: found by entry points, and one sentence where they are missing."""

from importlib.metadata import EntryPoint

import pytest
import typer

from command import call, refused
from salmc.cli import further


@pytest.fixture
def installed(monkeypatch):
    """As if only these entry points were installed."""

    def install(**values):
        points = [EntryPoint(name, value, further.GROUP) for name, value in values.items()]
        monkeypatch.setattr(further, "entry_points", lambda group: points)

    return install


def hello(name: str) -> None:
    """Say hello."""
    typer.echo(f"Hello {name}!")


def test_a_command_of_another_package_is_run_and_listed(installed):
    installed(hello=f"{__name__}:hello")
    assert call("hello", "you").stdout == "Hello you!\n"
    told = call("--help").stdout
    assert "Say hello." in told
    assert "reproduce" not in told


def test_a_command_whose_package_is_missing_says_what_to_install(installed):
    installed()
    words = ("reproduce comes with the package salmc_paper", "pip install")
    refused(call("reproduce", "table1", "--quick"), *words)
    refused(call("reproduce"), *words)


def test_a_package_that_cannot_be_loaded_costs_its_own_command_only(installed):
    installed(broken="no_such_package.command:run")
    refused(call("broken", "--any"), "cannot be loaded", "no_such_package")
    assert call("--help").exit_code == 0
    assert call("targets").exit_code == 0


def test_our_own_commands_cannot_be_replaced(installed):
    installed(targets=f"{__name__}:hello")
    assert "mog6" in call("targets").stdout


def test_a_command_that_nobody_has_is_refused(installed):
    installed()
    result = call("reprodcue")
    assert result.exit_code == 2
    assert "No such command" in result.stderr
