"""Pictures of classes and of how they follow each other."""

import numpy as np

from salmc.report import style
from salmc_paper.display.image_figures import class_bars, transition_map
from salmc_paper.images.classes import class_distribution, transition_matrix


def test_bars_show_the_shares_and_the_map_the_transitions():
    classes = np.array([[0, 1, 2, 0, 1, 2, 0, 0]])
    names = ["a", "b", "c"]
    with style.look():
        bars, heat = style.new_figure(6.0, 3.0).subplots(1, 2)
        class_bars(bars, {"chain": class_distribution(classes, 3)}, names, (0.2, 0.5))
        transition_map(heat, transition_matrix(classes, 3), names)
    heights = sorted(patch.get_height() for patch in bars.containers[0])
    np.testing.assert_allclose(heights, [25, 25, 50])
    assert [text.get_text() for text in heat.texts if text.get_text() == "67"] == ["67"]
    np.testing.assert_allclose(heat.images[0].get_array(), 100 * transition_matrix(classes, 3))
