"""Small experiments, work and networks for tests; a package, so that worker processes can import it."""
