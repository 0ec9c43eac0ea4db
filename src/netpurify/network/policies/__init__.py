"""What can be done to a network: each policy is a value that holds its own options and knows how to run."""
