"""The names of engines, checked before any work."""

from netpurify.errors import InputError


def check_engine(engine: str, jobs: int | None) -> None:
    """Refuse a name that is not that of an engine, or a number of jobs that makes no sense.

    Raises:
        InputError: There is no such engine, or ``jobs`` is below 1.
    """
    scheme, mark, address = engine.partition("://")
    host, _, port = address.rpartition(":")
    addressed = bool(mark and host and port.isdigit())
    known = engine in ("inline", "processes", "dask", "ray") or (scheme in ("dask", "ray") and addressed)
    if not known:
        raise InputError(
            'engine must be "inline", "processes", "dask", "dask://host:port", "ray" or "ray://host:port"; got '
            f"{engine!r}"
        )
    if jobs is not None and jobs < 1:
        raise InputError(f"jobs must be at least 1, or left out for all cores; got {jobs}")
