"""R-hat: do the chains agree? Rank-normalised and split (Vehtari et al. 2021), through ArviZ.

It is near 1 when the spread between chains is what the spread within them explains. It cannot
see a mode that no chain has visited: chains that all stay in the same wrong place agree.
"""

import numpy as np
from jaxtyping import Float

from salmc.diagnostics.arrays import ChainsLike, as_chains


def rhat(chains: ChainsLike) -> Float[np.ndarray, " k"]:
    """R-hat of each quantity of (chain, draw, k).

    Each chain is split in two, so one chain alone can be judged. Chains that never move give
    infinity if they stand apart, and NaN if all stand at one value.
    """
    values = as_chains("chains", chains, at_least=4)
    # Imported here: see `ess`.
    from arviz_stats.base import array_stats

    with np.errstate(divide="ignore", invalid="ignore"):
        result = array_stats.rhat(values, chain_axis=0, draw_axis=1, method="rank")
    return np.asarray(result, dtype=np.float64)
