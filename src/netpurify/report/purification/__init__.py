"""The report of a purification: summary, page, JSON record and SARIF log."""
