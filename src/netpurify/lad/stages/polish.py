"""Second stage: from suspected outliers to an exact fit and the dual that proves it.

A column is described by the set S of rows left out of the fit (F are the others) and a target t for the dual on S.
One round solves, for the same factorisation,

    primal   x = argmin |b_F - Q_F x|_2,          r = b - Q x,
    dual     y = t on S, and the smallest change of ``t`` on F with Q'y = 0.

While some residual in F stands out of the rest, S becomes the rows that stand out. Once none does, F fits to the noise
floor; then rows with |y| > 1 are pinned at +-1, joined to S, and solved again. With |y| <= 1 everywhere and y = sign(r)
off zero the fit is optimal: A'y = 0 bounds every other fit from below.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from netpurify.lad.design import Design
from netpurify.lad.odds.limits import tolerance
from netpurify.lad.stages import judge
from netpurify.lad.stages.identify import THRESHOLD, Estimate
from netpurify.lad.stages.judge import ACTIVE, OPEN, PROVEN
from netpurify.lad.stages.restricted import Restricted, solve_restricted

ROUNDS, ROUNDS_TO_FIT = 10, 3
"""At most so many rounds, and so many until F fits; more identification is cheaper than more trimming."""


@dataclass(frozen=True, slots=True)
class Polish:
    """What the rounds work on and return, for a panel; [panel, rows] unless said otherwise.

    Attributes:
        data: The regressed columns, orthogonal to the basis.
        erased: Entries that are missing.
        left_out: The set S; erased rows belong to it for good.
        anchor: A guess of the dual, from which the dual on F is to move as little as possible; zero where unknown.
        target: Dual wanted on S; on F, where its way starts.
        residual: Residuals.
        dual: The dual found.
        coordinates: Coefficients in the basis, [panel, rank].
        floor: Residuals up to this are zero, [panel]; raised where dense rounding noise is detected.
        detectable: Largest floor that may be detected, [panel]; 0 for none.
        spread: Noise seen in the round before, [panel].
        fits: Whether F already fitted to the floor, [panel].
        vouched: Whether each row that fits was seen to be missed by the others, [panel].
        state: ``ACTIVE``, ``PROVEN`` or ``OPEN``, [panel].
    """

    data: NDArray[np.float64]
    erased: NDArray[np.bool_]
    left_out: NDArray[np.bool_]
    anchor: NDArray[np.float64]
    target: NDArray[np.float64]
    residual: NDArray[np.float64]
    dual: NDArray[np.float64]
    coordinates: NDArray[np.float64]
    floor: NDArray[np.float64]
    detectable: NDArray[np.float64]
    spread: NDArray[np.float64]
    fits: NDArray[np.bool_]
    vouched: NDArray[np.bool_]
    state: NDArray[np.int8]

    @classmethod
    def start(
        cls,
        design: Design,
        data: NDArray[np.float64],
        erased: NDArray[np.bool_],
        floor: NDArray[np.float64],
        detectable: NDArray[np.float64],
    ) -> "Polish":
        """Make room for a panel of columns; ``suspect`` then says where to begin."""
        width = data.shape[0]
        return cls(
            data=data,
            erased=erased,
            left_out=np.zeros(data.shape, np.bool_),
            anchor=np.zeros(data.shape),
            target=np.zeros(data.shape),
            residual=data.copy(),
            dual=np.zeros(data.shape),
            coordinates=np.zeros((width, design.basis.shape[1])),
            floor=floor,
            detectable=detectable,
            spread=np.full(width, np.inf),
            fits=np.zeros(width, np.bool_),
            vouched=np.zeros(width, np.bool_),
            state=np.full(width, ACTIVE, np.int8),
        )

    def take(self, chosen: NDArray[np.intp], width: int) -> "Polish":
        """Copy of the chosen columns, followed by idle ones up to ``width``."""
        picked = np.zeros(width, np.intp)
        picked[: chosen.size] = chosen
        part = Polish(*(getattr(self, name)[picked] for name in self.__slots__))
        part.state[chosen.size :] = OPEN
        return part

    def solve(self, design: Design, *, anchored: bool, with_dual: bool) -> Restricted:
        """Solve for the active columns and the sets S as they are."""
        return solve_restricted(
            design, self.data, self.target, self.left_out, self.state, anchored=anchored, with_dual=with_dual
        )

    def put(self, chosen: NDArray[np.intp], part: "Polish") -> None:
        """Write back what ``take`` took."""
        for name in self.__slots__:
            if name not in ("data", "erased", "anchor", "detectable"):
                getattr(self, name)[chosen] = getattr(part, name)[: chosen.size]


def suspect(panel: Polish, design: Design, estimate: Estimate, *, anchored: bool) -> None:
    """Begin anew for the columns not yet proven: leave out what ``estimate`` takes for outliers."""
    rows, rank = design.live.size, design.rank
    begun = panel.state != PROVEN
    erased, sparse = panel.erased[begun], estimate.sparse[begun]
    anchor = np.where(erased, 0.0, estimate.dual[begun] / THRESHOLD) if anchored else np.zeros(erased.shape)
    left_out = erased | (sparse != 0.0)
    target = np.where(left_out & ~erased, np.sign(sparse), anchor)
    kept = rows - left_out[:, :rows].sum(axis=1)
    # With half the outliers that can be tolerated a column is hard: worth more identification before a factorisation,
    # unless that is a small one.
    hard = np.inf if anchored else max(0.5 * tolerance(rows, rank) * rows, 0.5 * rank)
    least, most = judge.kept_rows(rank)
    # Too few rows for a fit, or more than it needs: keep those of the smallest estimated residuals instead.
    wanted = np.where(kept < 1.1 * rank, least, np.where(np.minimum(kept, rows - kept) > 4 * rank, most, 0))
    wanted[rows - kept > hard] = 0
    sizes = np.where(erased, np.inf, np.abs(estimate.residual[begun]))[:, :rows]
    for number in (least, most):
        chosen = np.flatnonzero(wanted == number)
        if chosen.size and number <= rows:
            cut = np.partition(sizes[chosen], number - 1, axis=1)[:, number - 1 : number]
            left_out[chosen, :rows] = erased[chosen, :rows] | (sizes[chosen] > cut)
        elif chosen.size:
            left_out[chosen] = erased[chosen]
        estimated = np.where(left_out[chosen], np.sign(estimate.residual[begun][chosen]), anchor[chosen])
        target[chosen] = np.where(erased[chosen], 0.0, estimated)
    panel.anchor[begun], panel.target[begun], panel.left_out[begun] = anchor, target, left_out
    panel.spread[begun], panel.fits[begun] = np.inf, False
    panel.state[begun] = np.where(rows - kept > hard, OPEN, ACTIVE)


def polish(panel: Polish, design: Design, *, anchored: bool) -> None:
    """Work on every active column of ``panel``, in place, until each is proven or left open.

    ``anchored`` says whether ``anchor`` holds a guess.
    """
    began = panel.state == ACTIVE
    columns = np.flatnonzero(began)
    part = panel
    for number in range(ROUNDS):
        active = np.flatnonzero(part.state == ACTIVE)
        width = design.width(active.size)
        if active.size and 2 * width <= part.state.size:
            if part is not panel:
                panel.put(columns, part)
                active = columns[active]
            columns, part = active, panel.take(active, width)
        if not active.size:
            break
        # Before the first trim the fit is seldom exact, so its dual would prove nothing; small ones cost nothing.
        with_dual = anchored or number > 0 or design.live.size <= 256
        _round(part, design, anchored=anchored, with_dual=with_dual)
        if number + 1 >= ROUNDS_TO_FIT:
            part.state[(part.state == ACTIVE) & ~part.fits] = OPEN
    part.state[part.state == ACTIVE] = OPEN
    if part is not panel:
        panel.put(columns, part)
    _refit(panel, design, began)


def _refit(panel: Polish, design: Design, began: NDArray[np.bool_]) -> None:
    """Fit once more through every row at the floor where few were used: pinned rows fit as well as the others.

    With them the fit is better conditioned, and its rounding as small as the data allow.
    """
    used = design.live.size - panel.left_out[:, : design.live.size].sum(axis=1)
    chosen = np.flatnonzero(began & (panel.state == PROVEN) & (used < 1.5 * design.rank))
    if not chosen.size:
        return
    part = panel.take(chosen, design.width(chosen.size))
    part.state[: chosen.size] = ACTIVE
    part.left_out[:] = (np.abs(part.residual) > part.floor[:, None]) | part.erased
    coordinates = part.solve(design, anchored=False, with_dual=False).coordinates
    solved = np.flatnonzero(part.state == ACTIVE)
    panel.coordinates[chosen[solved]] = coordinates[solved]


def settle(panel: Polish, design: Design, chosen: NDArray[np.intp]) -> None:
    """Fit vertices that have more zeros than the rank through all of them.

    A vertex fits through the rows that the walk ended with; if many more rows fit, the fit through all of them is
    better conditioned, and rounded data are averaged. The dual stays what it is.
    """
    part = panel.take(chosen, design.width(chosen.size))
    part.state[: chosen.size] = ACTIVE
    _leave_out_all_but_zeros(part, design)
    coordinates = part.solve(design, anchored=False, with_dual=False).coordinates
    residual = part.data - design.fitted(coordinates)
    kept = np.where(part.left_out, 0.0, np.abs(residual))[:, : design.live.size].max(axis=1, initial=0.0)
    for i in np.flatnonzero(part.state == ACTIVE):
        panel.coordinates[chosen[i]] = coordinates[i]
        panel.floor[chosen[i]] = max(part.floor[i], 2.0 * kept[i])


def _leave_out_all_but_zeros(part: Polish, design: Design) -> None:
    """Leave out all but the residuals below the widest gap, if these are more than the rank; else leave open."""
    rows, rank = design.live.size, design.rank
    if rows < rank + 2:
        part.state[part.state == ACTIVE] = OPEN
        return
    residual = np.abs(part.data - design.fitted(part.coordinates))[:, :rows]
    erased, floor = part.erased[:, :rows], part.floor[:, None]
    ordered = np.sort(np.where(erased, np.inf, residual), axis=1)
    present = rows - erased.sum(axis=1, keepdims=True)
    place = np.arange(rank, rows - 1)
    # So many beyond the rank do not lie below a detected floor by chance.
    enough = (part.detectable[:, None] > 0.0) & (place - rank >= 5 + rank // 20)
    typical = np.take_along_axis(ordered, np.minimum((place + 1 + present) // 2, rows - 1), axis=1)
    detected = np.minimum(judge.BIMODAL * typical, part.detectable[:, None])
    limit = np.where(enough, np.maximum(30.0 * floor, detected), 30.0 * floor)
    below, above = ordered[:, rank : rank + place.size], ordered[:, rank + 1 : rank + 1 + place.size]
    # Where even the floor is zero, any residual above it is a gap, and a further zero is none.
    least = np.maximum(below, floor)
    gap = np.where((least == 0.0) & (above > 0.0), np.inf, 1e3)
    looked_at = (below <= limit) & (place < present - 1)
    gap[~looked_at] = 1e3
    np.divide(above, least, out=gap, where=looked_at & (least > 0.0))
    part.state[(part.state == ACTIVE) & ~(gap.max(axis=1) > 1e3)] = OPEN
    largest = np.take_along_axis(below, gap.argmax(axis=1)[:, None], axis=1)
    part.left_out[:, :rows] = erased | (residual > largest)


def _round(panel: Polish, design: Design, *, anchored: bool, with_dual: bool) -> None:
    """Solve for the sets S as they are, then judge."""
    active = panel.state == ACTIVE
    solved = panel.solve(design, anchored=anchored, with_dual=with_dual)
    panel.coordinates[active] = solved.coordinates[active]
    moved = design.fitted(solved.pull) if with_dual else np.zeros_like(panel.data)
    free = solved.start - design.fitted(solved.loose) if with_dual else moved
    judge.judge(
        panel.data, design.fitted(solved.coordinates), moved, free, design.rows.are_distinct, design.live.size,
        design.rank, *judge.kept_rows(design.rank), anchored, with_dual, panel.erased, panel.fits, panel.spread, panel.residual,
        panel.left_out, panel.anchor, panel.target, panel.dual, panel.floor, panel.detectable, panel.vouched,
        panel.state,
    )  # fmt: skip
