"""What is kept on disk: written atomically, read without pickle, refused where it is damaged.

atomic         a temporary file of its own name, flushed, then renamed
abandoned      what a killed process left behind
lock           one writer for a folder
archive        arrays and texts in one file, their sizes checked before memory is taken
kernel_file    a kernel's structure and weights
coordinates    a kernel's coordinates: whitened, without bounds, straight
symmetry_arrays  symmetries that chains make use of
saved          a whole sampler: `save` and `load`
store          draws, as Zarr or one file
zarr_arrays    arrays of a Zarr store
growing_store  draws that are larger than memory
stream_state   where a stream of draws goes on
folder         a run: settings, draws, summary, report
"""
