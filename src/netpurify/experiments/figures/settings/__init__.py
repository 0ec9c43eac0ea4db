"""The settings of a figure beside the paper's words, and the reasons for choices."""
