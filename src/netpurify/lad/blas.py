"""One BLAS thread while panels, not products, are the parallel work."""

from contextlib import AbstractContextManager
from functools import cache

import numpy as np
import scipy.linalg
from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    # Finding the libraries takes a millisecond; they must be loaded by then, and these two calls see to it.
    np.linalg.qr(np.eye(2))
    scipy.linalg.qr(np.eye(2))
    return ThreadpoolController()


def one_thread() -> AbstractContextManager:
    """Keep BLAS to one thread: a product split over cores would add in another order, and so give other bits."""
    return _controller().limit(limits=1, user_api="blas")
