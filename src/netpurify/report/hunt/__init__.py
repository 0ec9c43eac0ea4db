"""The hunt for a backdoor in words, on a page with pictures of triggers, and as a record."""
