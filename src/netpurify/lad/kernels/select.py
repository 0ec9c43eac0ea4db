"""Order statistics for compiled code."""

from netpurify.lad.kernels.compiled import inner


@inner
def kth_smallest(values, count, k):
    """The k-th smallest (from 0) of values[:count], which are reordered."""
    low, high = 0, count - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]


@inner
def median_of_sample(values, count):
    """Median of some 256 or more of values[:count], which are reordered: enough for a scale."""
    stride = count // 512 + 1
    taken = 0
    for j in range(0, count, stride):
        values[taken] = values[j]
        taken += 1
    return kth_smallest(values, taken, taken // 2)
