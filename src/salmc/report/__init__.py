"""Stage 7: pictures of draws, one file for each idea; `write` draws all that apply."""
