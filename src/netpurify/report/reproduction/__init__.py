"""The report of the reproduction of the paper: plots, page and Markdown."""
