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
    """Median of about 256 or more of values[:count], which are reordered: enough for a scale."""
    stride = count // 512 + 1
    taken = 0
    for j in range(0, count, stride):
        values[taken] = values[j]
        taken += 1
    return kth_smallest(values, taken, taken // 2)


@inner
def weighted_select(kink, weight, row, count, excess):
    """Position of the first kink, in ascending order, at which the weights passed reach ``excess``; reorders."""
    low, high = 0, count - 1
    left = excess
    while low < high:
        pivot = kink[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while kink[i] < pivot:
                i += 1
            while kink[j] > pivot:
                j -= 1
            if i <= j:
                kink[i], kink[j] = kink[j], kink[i]
                weight[i], weight[j] = weight[j], weight[i]
                row[i], row[j] = row[j], row[i]
                i += 1
                j -= 1
        below = 0.0
        for c in range(low, j + 1):
            below += weight[c]
        if below >= left:
            high = j
            continue
        middle = 0.0
        for c in range(j + 1, i):
            middle += weight[c]
        if below + middle >= left:
            return j + 1 if i > j + 1 else i
        left -= below + middle
        low = i
        if low > high:
            return count - 1
    return low
