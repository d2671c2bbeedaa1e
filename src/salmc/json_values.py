"""JSON as salmc writes it: values that every reader accepts."""

import json
import math
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """JSON values: NumPy becomes Python, and NaN and infinities, which JSON lacks, become None."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic) or (hasattr(value, "tolist") and hasattr(value, "dtype")):
        return plain(np.asarray(value).tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def to_text(content: dict[str, Any], indent: int = 2) -> str:
    """A JSON file's text, cleaned by `plain`."""
    cleaned = plain(content)
    return json.dumps(cleaned, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
