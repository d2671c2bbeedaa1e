"""Answers without training: samplers of a target in seconds, where one of three ways suits it.

mixture/   a mixture that adapts by importance sampling, bound as an exact kernel
gradient/  chains that follow the gradient, in coordinates in which funnels are straight
replicas/  chains with replicas at several temperatures beside them, where modes keep them apart
hunted     modes that a cloud lacks, before anything rests on it
work       how much work a density is
"""
