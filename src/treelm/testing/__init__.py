"""Tools for testing programs that work on trees: random trees and random bracket files."""
