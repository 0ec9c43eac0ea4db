"""JSON records of results that have no page: plans, contaminations, differences, and the theory as tables."""
