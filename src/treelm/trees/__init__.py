"""What a tree is: the immutable tree, its labels, heads, constituents, and batches of trees."""
