"""Where work runs: in this process, on local processes, or on a Dask or Ray cluster that is already there.

    for position, result in engine.run(work, tasks, engine="dask://host:8786"):
        ...

Every engine gives the same results, to the bit, on the same kind of processor: a piece of work has one thread of BLAS
and torch wherever it runs, because a sum that is split over threads is added in another order.

An engine is a module with ``open_pool``. Libraries are loaded by the engine that needs them: naming and checking an
engine, as the command line does, loads none.
"""

from netpurify.engine.names import check_engine
from netpurify.engine.streaming import run, workers

__all__ = ["check_engine", "run", "workers"]
