"""Where salmc keeps what it need not fetch or make twice."""

import os
from pathlib import Path

CACHE_VARIABLE = "SALMC_CACHE"


def cache_folder() -> Path:
    """The folder that SALMC_CACHE names, or the place that the operating system has for it."""
    given = os.environ.get(CACHE_VARIABLE, "").strip()
    if given:
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("salmc"))
