"""What is measured, on what, and against what.

problems     targets by name, and random splits of data sets
judging      figures of draws, the same for every method
nuts         the sampler that users would pick instead
references   moments by long runs of NUTS, where there are no exact draws
"""
