"""What runs jobs, keeps their results and times them; the experiments and the benchmarks share it.

jobs         a job: a name, arguments and a function that returns figures and arrays
store        results on the disk, one file for each job: a stopped run goes on where it was
one_file     results of all jobs of a benchmark in one JSON file, for a repository
runner       run jobs, tell how far it is, go on after a failure
progress     how far it is
timing       contenders that take turns, so that their times can be compared
processes    measure in a process of its own, which has nothing compiled or loaded yet
"""
