"""``python -m netpurify``."""

from netpurify.cli import main

main()
