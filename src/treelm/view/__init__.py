"""Pictures of trees: text for the terminal, SVG for the page, LaTeX for the paper."""
