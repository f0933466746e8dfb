"""How good something is: every measure of the product, in one place."""
