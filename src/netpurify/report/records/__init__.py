"""JSON records of results that have no page: plans, contaminations, differences and examinations of the theory."""
