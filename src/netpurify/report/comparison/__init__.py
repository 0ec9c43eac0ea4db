"""What ``scan`` shows: findings tensor by tensor, in words, as a page, a JSON record and a SARIF log."""
