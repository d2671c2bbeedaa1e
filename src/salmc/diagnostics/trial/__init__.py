"""Draws on trial: what the density itself says against them.

* `host`: the density as NumPy sees it; `frame`: the draws' own coordinates;
* `soundness`: noise, NaN and lost digits of the density;
* `tails`: whether it integrates at all;
* `orbits`: exact tests of each draw among displaced copies of it, from values alone;
* `stein`: tests by scores; `slopes`: whether those belong to the values;
* `repeats`: draws that are copies of others;
* `trial`: all of them, and the hunt.
"""
