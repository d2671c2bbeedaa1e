"""Coordinates in which funnels and bends are straight (`salmc.straight` is the map).

search            of draws: one bend or funnel after the other, as long as each gains
shapes            the funnel that makes draws narrowest
turns             centres that turn with another coordinate
funnel            one funnel: which coordinates it governs, with which powers
curvature         the same by the density's derivatives
weighted_moments  moments of draws that a search needs again and again
"""
