"""The 8 × 8 digits: 1,797 handwritten digits that ship with the package.

The test part of "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, 1998), UCI
Machine Learning Repository, licensed CC BY 4.0; as bundled with scikit-learn. Each pixel counts the
ink in a block of 4 × 4, from 0 to 16; here it is scaled to 0–255.
"""

import numpy as np
from jaxtyping import UInt8

from salmc.datasets.fetch import SHIPPED

_MOST_INK = 16


def digits() -> tuple[UInt8[np.ndarray, "n 8 8"], UInt8[np.ndarray, " n"]]:
    """The images and their digits, in the order of the original file."""
    with np.load(SHIPPED / "digits.npz", allow_pickle=False) as archive:
        ink, labels = archive["images"], archive["labels"]
    return np.rint(ink * (255.0 / _MOST_INK)).astype(np.uint8), labels
