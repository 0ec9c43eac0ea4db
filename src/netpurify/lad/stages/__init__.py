"""The steps that solve one panel of columns, in the order in which they run (``STAGES``)."""
