"""Shapes and types in annotations are checked at run time in every test."""

from jaxtyping import install_import_hook

# Before any import of salmc: only modules loaded after this are checked.
install_import_hook("salmc", "beartype.beartype")
