"""A job whose function counts its calls, for tests of the harness."""

from salmc_paper.harness.jobs import Job


class Counter:
    """A job's function that counts its calls."""

    def __init__(self, result=None, error=None):
        self.calls, self.result, self.error = 0, result, error

    def __call__(self, context):
        self.calls += 1
        self.context = context
        if self.error is not None:
            raise self.error
        return self.result if self.result is not None else {"value": 2 * context["x"]}


def job(function, x=1, needs=(), version=1, **more):
    return Job("trial", f"job {x}", {"x": x, **more}, function, version, tuple(needs))
