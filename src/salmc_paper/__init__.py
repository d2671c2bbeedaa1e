"""The paper's tables and figures, run by `salmc reproduce`, with the published numbers beside ours.

This package imports the library, and the library knows nothing of it: the command is found by its
entry point.

    command      `salmc reproduce`
    registry     what there is, by name; nothing is imported before it is asked for
    experiments  one file for each table or figure
    measures     what is measured on draws, NUTS, and reference moments
    images       classifier, Fréchet distance and nearest neighbours, for chains over images
    display      tables, pictures and the paper's numbers
    outcome      what an experiment writes: JSON, Markdown and a picture
    page         the page that collects all of them
    harness      jobs, results on the disk, timing; the benchmarks run on it, too
"""
