"""Coordinates in which funnels and bends are straight (`salmc.straight` is the map).

search            of draws: one bend or funnel after the other, as long as each gains
shapes            the funnel that makes draws narrowest
turns             centres that turn with another coordinate
funnel            one funnel: which coordinates it governs, with which powers
spreads           which coordinates govern the spread of others, by the density's derivatives
curvature         the funnels that these make
weighted_moments  moments of draws that a search needs again and again
"""
