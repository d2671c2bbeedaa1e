"""What targets are made of beside a JAX function of a vector: pytrees, black boxes of NumPy."""

from collections.abc import Callable
from typing import Any

from jaxtyping import PyTree

from salmc.black_box import black_box
from salmc.errors import NotDifferentiableError
from salmc.evaluation import Evaluation
from salmc.truth import Scalar


class TargetSources:
    """The constructors of `salmc.Target` beside its own."""

    @classmethod
    def from_pytree(
        cls: Any,
        log_density: Callable[[PyTree], Scalar],
        example: PyTree,
        *,
        constrain: Any = None,
        bounds: Any = None,
        **options: Any,
    ) -> Any:
        """A target whose parameter is any pytree of arrays, such as a dictionary.

        Args:
            log_density: tree ↦ log p(tree) up to a constant.
            example: a tree of the right structure and shapes; its values do not matter.
            constrain: tree ↦ a dictionary of what you want to see; the tree itself if left out.
            bounds: {leaf: (lower, upper)} of the leaves that have bounds, with None for no bound
                and "a.b" for the leaf b within a; or a pair for each number of the tree.
            options: as for `Target`, but for `dim` and `names`, which follow.
        """
        from salmc.pytrees import flattened

        return cls(**flattened(log_density, example, constrain, bounds, options))

    @classmethod
    def from_numpy(
        cls: Any,
        log_prob: Any,
        dim: int,
        *,
        vectorized: bool = True,
        executor: Any = None,
        keep: Any = None,
        **options: Any,
    ) -> Any:
        """A black box: a NumPy function without a gradient.

        Args:
            log_prob: array (n, dim) ↦ array (n,) of log p up to a constant, called with whole
                batches, once for each step of a method.
            dim: number of coordinates.
            vectorized: False for a function of one point (dim,), as emcee takes it.
            executor: a pool that shares the points of a batch among its workers: anything that
                speaks `concurrent.futures`, or has `apply_async`; see `salmc.evaluation`.
            keep: a file in which every value is kept as soon as it is here, for functions that take
                seconds. A run that was ended goes on where it was when it is started again.
            options: as for `Target`, such as `bounds`.
        """
        evaluate = Evaluation(
            log_prob, vectorized=vectorized, executor=executor, keep=keep, dim=dim
        )
        refusal = no_gradient("jax.grad", options.get("name", "target"))
        function = black_box(evaluate, dim, refusal)
        return cls(function, dim, **{**options, "differentiable": False})


def no_gradient(method: str, name: str) -> NotDifferentiableError:
    """What is raised where a method asks for a gradient that is not there."""
    return NotDifferentiableError(
        f"{method} needs the gradient of the log density, which the target `{name}` does not "
        "have. Use a gradient-free method such as ag-svgd."
    )
