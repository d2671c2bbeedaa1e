import numpy as np
import pytest

from salmc.report import style
from salmc_paper.experiments import faces, mnist
from salmc_paper.experiments.image_jobs import images_of, parts_of
from salmc_paper.harness.jobs import NotAvailableError, Plan, Record, Results, in_order

COPIES = {
    "share_of_copies": 0.002,
    "limit": 0.0167,
    "copies": False,
    "median_distance_of_draws": 4.0,
    "median_distance_of_held_out": 4.1,
    "draws_per_second": 900.0,
    "frechet": 3.0,
    "frechet_floor": 0.5,
    "frechet_first": 3.25,
    "frechet_last": 3.5,
}


def mnist_record(job, wait, shares, visited):
    figures = {**COPIES, "shares": shares, "steps_between_changes": wait}
    figures |= {"steps_if_independent": 1.11, "digits_per_chain": visited}
    arrays = {
        "strip": np.zeros((10, 50, 28, 28, 1), np.uint8),
        "transitions": np.full((10, 10), 0.1),
    }
    return Record(job, "done", figures, arrays)


def mnist_results(noisy_wait, quiet_wait, shares, visited=8.0):
    records = []
    for job in mnist.jobs(Plan()):
        if job.arguments["part"] == "classifier":
            known = {"accuracy": 0.993, "seconds": 100.0, "real_shares": [0.1] * 10}
            records.append(Record(job, "done", known))
        else:
            wait = noisy_wait if job.arguments["noise"] else quiet_wait
            records.append(mnist_record(job, wait, shares, visited))
    return Results(records)


def test_chains_of_both_settings_share_training_and_classifier():
    jobs = mnist.jobs(Plan(quick=True))
    chains = [job for job in jobs if job.arguments["part"] == "chain"]
    for kernel in mnist.KERNELS:
        noisy, quiet = (job for job in chains if job.arguments["kernel"] == kernel)
        assert {noisy.arguments["noise"], quiet.arguments["noise"]} == {0.0, 0.5}
        assert [need.key for need in noisy.needs] == [need.key for need in quiet.needs]
    # One classifier, and for each kernel one training and two chains.
    assert len(in_order(jobs)) == 1 + 3 * len(mnist.KERNELS)
    full = [job for job in mnist.jobs(Plan()) if job.arguments["part"] == "chain"]
    assert all(job.arguments["chains"] * job.arguments["draws"] == 100_000 for job in full)
    assert len({job.key for job in [*jobs, *mnist.jobs(Plan())]}) == 2 * len(jobs)


def test_words_follow_the_numbers():
    seen = " ".join(mnist.words(mnist_results(1.2, 14.0, [0.1] * 10)))
    assert "99.30 %" in seen
    assert "is seen: the digit changes every 1.2 steps with noise" in seen
    assert "every 14 steps without, where a chain of 1000 draws visits 8 digits" in seen
    assert "even by the measure" in seen
    assert "3.25 at the chains' beginning and 3.5 at their end" in seen
    assert "not even" not in seen
    other = " ".join(mnist.words(mnist_results(3.0, 2.0, [0.2, 0.0, *[0.1] * 8])))
    assert "is not seen" in other
    assert "not even by the measure" in other


def test_chain_that_stands_still_is_not_a_smooth_one():
    # JSON has no infinity: it is kept as nothing.
    results = mnist_results(1.2, None, [0.1] * 10, visited=1.0)
    assert "is not seen" in " ".join(mnist.words(results))
    stuck = mnist_results(1.2, 60.0, [0.1] * 10, visited=1.5)
    assert "is not seen" in " ".join(mnist.words(stuck))
    assert any("never changes" in row for row in mnist.tables(results)[0].rows)
    assert "the digit never changes without" in " ".join(mnist.words(results))


def test_figure_of_mnist_has_strips_bars_and_both_matrices():
    with style.look():
        figure = mnist.figure(mnist_results(1.2, 14.0, [0.1] * 10))
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles.count("ξ = 0") == titles.count("ξ ~ N(0, 0.5 I)") == 2
    assert "Classes of the draws" in titles


def faces_results(travel):
    records = []
    for job in faces.jobs(Plan()):
        length = 6.0 if job.arguments["noise"] else 0.9
        known = {"data": "faces", "training_images": 360, "held_out_images": 40}
        known |= {"step_length": length, "far_length": 7.0, "real_length": 8.0, "travel": travel}
        arrays = {"strip": np.zeros((10, 50, 32, 32, 1), np.uint8)}
        records.append(Record(job, "done", {**known, **COPIES}, arrays))
    return Results(records)


def test_faces_are_told_from_their_figures():
    results = faces_results(travel=6.5)
    told = " ".join(faces.words(results))
    assert "is seen: consecutive draws are 6 apart with noise and 0.9 without" in told
    assert "3.25 at the chains' beginning and 3.5 at their end" in told
    assert "360 training images of faces" in faces.tables(results)[0].note
    with style.look():
        assert len(faces.figure(results).axes) == 2
    assert "is not seen" in " ".join(faces.words(faces_results(travel=0.5)))


def test_celeba_is_preferred_where_the_user_has_it(tmp_path, monkeypatch):
    monkeypatch.setenv("SALMC_DATA", str(tmp_path))
    (tmp_path / "faces").mkdir()
    assert faces.jobs(Plan())[0].needs[0].arguments["data"] == "faces"
    (tmp_path / "img_align_celeba").mkdir()
    arguments = faces.jobs(Plan())[0].needs[0].arguments
    assert (arguments["data"], arguments["size"], arguments["colour"]) == (
        "img_align_celeba",
        64,
        True,
    )


def test_missing_folder_is_not_available(tmp_path, monkeypatch):
    monkeypatch.setenv("SALMC_DATA", str(tmp_path))
    arguments = faces.jobs(Plan())[0].needs[0].arguments
    with pytest.raises(NotAvailableError, match="no folder of images called faces"):
        images_of(arguments, "train")


def test_the_ends_of_chains_are_told_apart():
    """Draws that carry their number: parts hold those of all, of the first tenth, of the last."""
    numbers = np.broadcast_to(
        np.arange(200, dtype=np.uint8)[None, :, None, None, None], (4, 200, 1, 1, 1)
    )
    everything, first, last = parts_of(numbers, 40)
    assert [len(part) for part in (everything, first, last)] == [40, 40, 40]
    assert np.ptp(everything) > 150
    assert first.max() < 20
    assert last.min() >= 180
