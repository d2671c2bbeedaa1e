"""Programs are forgotten when they take too much, and only then."""

import jax

from salmc.compiled import make_room


def test_programs_are_forgotten_only_when_they_take_too_much():
    traces = []

    @jax.jit
    def program(x):
        traces.append(None)
        return x + 1

    program(1.0)
    assert not make_room(share=1.0)
    program(2.0)
    assert len(traces) == 1
    assert make_room(share=0.0)
    program(3.0)
    assert len(traces) == 2


def test_a_system_that_does_not_tell(monkeypatch):
    def missing(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr("pathlib.Path.read_bytes", missing)
    assert not make_room(share=0.0)
