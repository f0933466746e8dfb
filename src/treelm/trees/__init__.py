"""What a tree is: the immutable tree, its labels, heads, constituents, and trees in bulk."""
