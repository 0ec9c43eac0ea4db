"""The report of a defence: summary, page and JSON record."""
