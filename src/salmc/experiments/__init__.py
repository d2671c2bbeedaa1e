"""The paper's tables and figures, run by `salmc reproduce`, with the published numbers beside ours.

    registry     what there is, by name; nothing is imported before it is asked for
    jobs         a job: a name, arguments and a function that returns figures and arrays
    store        results of jobs on the disk, one file each: a stopped run goes on where it was
    runner       run jobs, tell how far it is, go on after a failure
    training     the job that trains a kernel; experiments that need the same kernel share it
    judging      what is measured on draws, the same for every method
    published    the paper's numbers, and where they stand
    outcome      what an experiment writes: JSON, Markdown and a picture
    page         the page that collects all of them

and one file for each table or figure.
"""
