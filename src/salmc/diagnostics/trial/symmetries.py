"""Maps that a model may have as symmetries: mirrors, flips, exchanges of coordinates and labels.

Where a density has modes that such a map takes into each other, draws of one of them show where the
others are.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from salmc.diagnostics.trial.frame import Frame

_MOST_SYMMETRIES = 60


def symmetries(
    frame: Frame, names: Sequence[str], generator: np.random.Generator
) -> Iterator[tuple[str, np.ndarray, tuple[np.ndarray, np.ndarray]]]:
    """(name, what orders the two, (offset, matrix)) of mirrors, flips and exchanges."""
    dim, eye = frame.dim, np.eye(frame.dim)
    main = np.linalg.svd(frame.factor)[0][:, 0] / frame.scale
    yield "mirror about the centre", main, (2.0 * frame.centre, -eye)
    # Ordered along the way to the mirrored place, in which draws of one mode are all on one side.
    across = frame.centre / frame.scale**2
    yield "mirror about 0", across if np.any(across) else main, (np.zeros(dim), -eye)
    flips = list(range(dim))
    pairs = list(itertools.combinations(range(dim), 2))
    for i in generator.permutation(flips)[:_MOST_SYMMETRIES]:
        flipped = eye.copy()
        flipped[i, i] = -1.0
        yield f"flip {names[i]}", eye[i], (np.zeros(dim), flipped)
        offset = np.zeros(dim)
        offset[i] = 2.0 * frame.centre[i]
        yield f"mirror {names[i]}", eye[i], (offset, flipped)
    for number in generator.permutation(len(pairs))[:_MOST_SYMMETRIES]:
        i, j = pairs[number]
        exchanged = eye.copy()
        exchanged[[i, j]] = eye[[j, i]]
        yield f"exchange {names[i]} {names[j]}", eye[i] - eye[j], (np.zeros(dim), exchanged)
    for name, first, permutation in label_exchanges(names):
        yield name, first, (np.zeros(dim), eye[permutation])


def label_exchanges(names: Sequence[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Exchanges of two labels in all vectors of one length: mu[0] ↔ mu[1] with sd[0] ↔ sd[1].

    Yields a name, the functional that orders the two, and the permutation of the coordinates.
    """
    vectors: dict[str, dict[str, int]] = {}
    for position, name in enumerate(names):
        stem, bracket, label = name.partition("[")
        if bracket and label.endswith("]"):
            vectors.setdefault(stem, {})[label[:-1]] = position
    labels = [tuple(sorted(vector)) for vector in vectors.values()]
    for shared in sorted(set(labels)):
        members = [vector for vector in vectors.values() if tuple(sorted(vector)) == shared]
        if len(members) < 2 or len(shared) > 6:
            continue
        for first, second in itertools.combinations(shared, 2):
            permutation = np.arange(len(names))
            order = np.zeros(len(names))
            for vector in members:
                a, b = vector[first], vector[second]
                permutation[[a, b]] = b, a
            order[members[0][first]], order[members[0][second]] = 1.0, -1.0
            yield f"exchange labels {first} and {second}", order, permutation
