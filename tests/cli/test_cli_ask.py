"""`salmc run --effective`: draws until there are enough, and options that it has no use for."""

from command import call, refused
from salmc.sampling.files.folder import open_run


def test_effective_draws_are_written_with_their_kernel():
    result = call("run", "mog2", "--effective", 500, "--no-plots", "--out", "out")
    assert result.exit_code == 0, result.output
    run = open_run("out")
    assert run.settings["settings"]["effective"] == 500
    assert run.diagnostics["smallest_ess"] >= 500
    again = call("sample", "out", "--draws", 20, "--no-plots", "--out", "more")
    assert again.exit_code == 0, again.output


def test_options_of_other_runs_are_refused():
    refused(call("run", "mog2", "--effective", 500, "--draws", 10), "--draws", "--effective")
    refused(call("run", "mog2", "--effective", 0), "effective", "0")
    refused(call("run", "mog2", "--method", "sgld", "--effective", 5), "--effective", "sgld")
