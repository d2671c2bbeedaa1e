"""The maps of the package agree with it, and what the documentation tells to do works."""

import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

import salmc

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)

WALK = """
import dataclasses, sys, threading
import jax, jax.numpy as jnp, salmc, salmc.learning.fit, salmc.sampling.sampler
from salmc.kernels import FlowKernel

entered, known = [], {}


def watch(frame, event, _):
    code = frame.f_code
    if id(code) in known:  # millions of calls, of thousands of functions
        return
    known[id(code)] = code
    name = frame.f_globals.get("__name__") or ""
    inside = code.co_name not in ("<module>", "<lambda>", "<genexpr>")
    if inside and name.startswith("salmc.") and name not in entered:
        entered.append(name)


target = salmc.Target(lambda x: -0.5 * jnp.sum(x**2), dim=2)
kernel = FlowKernel(jax.random.key(0), 2, layers=1, width=4, knots=4, radial_knots=4)
small = {"steps": 4, "batch": 32}  # and a pool as in the examples of `fit` and `sal_mc`
threading.settrace(watch)
sys.settrace(watch)
sampler = salmc.fit(target, kernel=kernel, settings=small, seed=0, progress=False)
sampler = dataclasses.replace(sampler, local=1)  # as after short trainings
sampler.sample(chains=32, draws=100, seed=1, progress=False)
sys.settrace(None)
threading.settrace(None)
print(" ".join(entered))
"""


def test_the_map_lists_every_folder():
    folders = {module.name for module in pkgutil.iter_modules(salmc.__path__) if module.ispkg}
    told = set(re.findall(r"^    (?:target, )?(\w+)/", salmc.__doc__, re.MULTILINE))
    assert told == folders


def test_the_picture_has_every_module_of_one_fit_and_one_sample():
    """In a process of its own, without the checks of types, which are calls as well."""
    done = subprocess.run(
        [sys.executable, "-c", WALK], capture_output=True, text=True, check=True, timeout=300
    )
    entered = done.stdout.split()
    assert len(entered) <= 30, entered
    page = PAGE.read_text(encoding="utf-8")
    missing = [name for name in entered if name.removeprefix("salmc.") not in page]
    assert missing == []
    # And nothing stands there that is not: every dotted name is a module.
    known = {m.name for m in pkgutil.walk_packages(salmc.__path__, "salmc.")}
    picture = page[page.index("```mermaid") : page.index("Beside the way")]
    told = set(re.findall(r"\b(?:answers|learning|movers|kernels|sampling|request)\.\w+", picture))
    assert {f"salmc.{name}" for name in told} <= known


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_what_the_page_tells_to_do_works(number):
    with mock.patch.dict(salmc.kernels.KERNELS):  # one of them registers its kernel
        exec(EXAMPLES[number], {"__name__": "example"})
