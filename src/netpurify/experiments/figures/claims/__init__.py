"""How claims are judged: their rules, and the functions that apply them to the rows of a table."""
