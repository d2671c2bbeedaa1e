"""A hunt for mass that the draws lack: wide starts, tempering, climbs, what a mode weighs."""

from salmc.diagnostics.hunt.search import Hunt, Mode, hunt

__all__ = ["Hunt", "Mode", "hunt"]
