"""What the picture of the draws says in words; see `scatter`."""

from matplotlib.figure import Figure

from salmc.report import scatter
from salmc.report.found_modes import found_modes
from salmc.report.words import Words, legend_labels, modes_in_words
from salmc.sampling.draws import Draws

HEADING = "The draws"


def words(draws: Draws, figure: Figure) -> Words:
    """What is seen: how many, of what, in which modes; and what is drawn beside the draws."""
    names, sample, _ = scatter.numbers(draws)
    drawn = legend_labels(figure)
    if len(names) == 1:
        form, captions = f"Histogram of {names[0]}", ["The bars are draws"]
    elif len(names) == 2 and draws.shown.own:
        form = f"Scatter of {names[0]} and {names[1]}"
        captions = ["Points and histograms are draws"]
    else:
        count = min(len(names), scatter.MOST_COORDINATES)
        form = f"Scatters of each pair of {', '.join(names[:count])}, histograms on the diagonal"
        captions = ["Points and filled histograms are draws"]
    if "target density" in drawn:
        captions.append("shading and lines are the density of the target")
    if "exact draws" in drawn:
        captions.append("blue points and outlines are exact draws")
    if "known mean ± sd" in drawn:
        captions.append("lines and shades on the diagonal are the known mean and sd")
    few = ""
    if len(names) > 1 and len(sample) > scatter.MOST_POINTS:
        few = " Of the points, some thousand are drawn, evenly spaced; histograms count all."
    alt = f"{form}, {len(sample):,} draws. {modes_in_words(found_modes(draws))}"
    return Words(alt, f"{'; '.join(captions)}.{few}")
