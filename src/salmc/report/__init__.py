"""Pictures of draws, one file for each idea; `run_pictures` draws all that apply."""
