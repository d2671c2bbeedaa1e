"""Data sets: found in the user's folder, the package, the cache or by a checksummed download."""
