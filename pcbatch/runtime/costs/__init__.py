"""The costs of blocks, and the choices that follow from them."""
