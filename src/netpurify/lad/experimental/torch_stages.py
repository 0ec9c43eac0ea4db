"""Identification and polishing through torch, for a device on which compiled code does not run.

The same steps as ``identify`` and ``polish``, for all columns of a panel at once: ADMM in float32, then rounds of
trimmed least squares and duals in float64, with batched Cholesky factorisations of Q_F'Q_F. Columns that stay open
are finished on the CPU by the caller.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.lad.design import Design
from netpurify.lad.kernels.clock import Clock
from netpurify.lad.kernels.lapack import SMALLEST_DIAGONAL
from netpurify.lad.stages.identify import RELAXATION, THRESHOLD, schedule
from netpurify.lad.stages.judge import BIMODAL, NOISE_TAIL, PINNED, PROVEN, STANDS_OUT
from netpurify.lad.stages.polish import ROUNDS, Polish

_GRAM_BYTES = 256 << 20


@dataclass(slots=True)
class _Columns:
    """Columns being worked on, [n, rows] or [n]; the counterpart of ``Polish`` on a device."""

    index: Tensor
    data: Tensor
    erased: Tensor
    floor: Tensor
    detectable: Tensor
    left_out: Tensor
    anchor: Tensor
    target: Tensor
    spread: Tensor
    fits: Tensor

    def take(self, chosen: Tensor) -> "_Columns":
        return _Columns(*(getattr(self, name)[chosen] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class TorchStages:
    """The stages on one device; calling it has the form that ``solve_panel`` asks for."""

    basis: Tensor

    @classmethod
    def prepare(cls, design: Design, device: str) -> "TorchStages":
        """Move the design's basis to ``device``."""
        return cls(torch.from_numpy(design.compact).to(device))

    def __call__(self, work: Polish, design: Design, clock: Clock) -> NDArray[np.float64]:
        """Work on the columns that are not proven, in place, and return estimates of their residuals."""
        rows, rank, device = design.live.size, design.rank, self.basis.device
        todo = np.flatnonzero(work.state != PROVEN)
        data = torch.from_numpy(work.data[todo, :rows]).to(device)
        erased = torch.from_numpy(work.erased[todo, :rows]).to(device)
        floor, detectable = (torch.from_numpy(part[todo]).to(device) for part in (work.floor, work.detectable))
        guess = np.zeros(work.data.shape)
        mean = data.abs().mean(dim=1, keepdim=True)
        scale = torch.where(mean > 0, mean, 1.0)
        state = _start((data / scale).float())
        left = torch.arange(todo.size, device=device)
        for attempt, steps in enumerate(schedule(rows, rank)):
            state = self._iterate(state, erased[left], steps)
            guess[todo[left.cpu().numpy()], :rows] = (state[1] * scale[left]).cpu().numpy()
            clock.book("identify")
            columns = _suspect(left, data, erased, floor, detectable, state, rank, anchored=attempt > 0)
            for place, coordinates, dual, cut in self._polish(columns, anchored=attempt > 0):
                chosen = todo[place.cpu().numpy()]
                work.coordinates[chosen, :rank] = coordinates.cpu().numpy()
                work.dual[chosen, :rows] = dual.cpu().numpy()
                work.floor[chosen] = cut.cpu().numpy()
                work.state[chosen] = PROVEN
            clock.book("polish")
            still = torch.from_numpy(work.state[todo[left.cpu().numpy()]] != PROVEN).to(device)
            left, state = left[still], tuple(part[still] for part in state)
            if not left.numel():
                break
        return guess

    def _iterate(self, state: tuple[Tensor, ...], erased: Tensor, steps: int) -> tuple[Tensor, ...]:
        data, residual, sparse, dual = state
        basis = self.basis.float()
        bound = torch.where(erased, 0.0, float(THRESHOLD)).float()
        for _ in range(steps):
            residual = data + ((sparse - dual) @ basis) @ basis.T
            value = float(RELAXATION) * residual + (1.0 - float(RELAXATION)) * sparse + dual
            sparse = (value - bound).clamp(min=0.0) + (value + bound).clamp(max=0.0)
            dual = value - sparse
        return data, residual, sparse, dual

    def _polish(self, columns: _Columns, *, anchored: bool):
        """Rounds as in ``polish.polish``; yields (index, coordinates, dual, floor) of the columns proven in each."""
        rank = self.basis.shape[1]
        for _ in range(ROUNDS):
            if not columns.index.numel():
                return
            coordinates, pull = self._solve(columns)
            residual = columns.data - coordinates @ self.basis.T
            moved = torch.where(columns.left_out, 0.0, pull @ self.basis.T)
            dual = columns.target - moved
            size = torch.where(columns.left_out, torch.nan, residual.abs())
            kept = (~columns.left_out).sum(dim=1)
            worst = torch.where(columns.left_out, -1.0, residual.abs()).amax(dim=1)
            noise = 1.4826 * size.nanmedian(dim=1).values / (1.0 - rank / kept).clamp(min=0.01).sqrt()
            settled = (worst <= STANDS_OUT * noise) | ((worst <= NOISE_TAIL * noise) & (noise > 0.5 * columns.spread))
            cut = torch.where((columns.detectable > 0) & settled, NOISE_TAIL * noise, 0.0).maximum(columns.floor)
            fits = (worst <= cut) & (kept >= rank)
            fitting = (~columns.erased & (residual.abs() <= cut[:, None])).sum(dim=1)
            grown = fits & (cut > columns.floor) & ~columns.fits & (fitting > kept + kept // 50)
            trimmed = (~fits & (noise <= 0.7 * columns.spread)) | grown
            fits &= ~grown
            altered = ~columns.erased & (residual.abs() > cut[:, None])
            typical = torch.where(altered, residual.abs(), torch.nan).nanmedian(dim=1).values * BIMODAL
            fits &= (cut <= columns.floor) | (
                cut <= torch.where(altered.any(dim=1), typical, torch.inf).minimum(columns.detectable)
            )
            wrong = (altered & (columns.target != residual.sign())).any(dim=1)
            beyond = ~columns.left_out & (dual.abs() > 1.0)
            proven = fits & ~wrong & ~beyond.any(dim=1)
            yield columns.index[proven], coordinates[proven], dual[proven], cut[proven]
            idle = (columns.left_out & ~columns.erased & ~altered).any(dim=1)
            anew = fits & (wrong | (idle & ~columns.fits))
            self._next(
                columns, residual, dual, cut, noise, (trimmed, anew, fits & ~anew), anchored=anchored, grown=grown
            )
            columns = columns.take((fits | trimmed) & ~proven)

    def _solve(self, columns: _Columns) -> tuple[Tensor, Tensor]:
        """Primal and dual coordinates of every column; NaN where Q_F has not full rank."""
        keep = (~columns.left_out).to(self.basis.dtype)
        right = torch.stack(((keep * columns.data) @ self.basis, columns.target @ self.basis), dim=2)
        solved = torch.full_like(right, torch.nan)
        batch = max(1, _GRAM_BYTES // (8 * max(1, self.basis.numel())))
        for part in torch.arange(right.shape[0], device=right.device).split(batch):
            gram = (self.basis.T * keep[part, None, :]) @ self.basis
            factor, info = torch.linalg.cholesky_ex(gram)
            good = (info == 0) & (factor.diagonal(dim1=1, dim2=2) > SMALLEST_DIAGONAL).all(dim=1)
            solved[part[good]] = torch.cholesky_solve(right[part[good]], factor[good])
        return solved[:, :, 0], solved[:, :, 1]

    def _next(
        self,
        columns: _Columns,
        residual: Tensor,
        dual: Tensor,
        cut: Tensor,
        noise: Tensor,
        cases: tuple[Tensor, Tensor, Tensor],
        *,
        anchored: bool,
        grown: Tensor,
    ) -> None:
        """Choose S and targets of the next round: trim, start the dual anew, or pin what is beyond the box."""
        trim, anew, pin = (case[:, None] for case in cases)
        enough = min(residual.shape[1], int(1.25 * self.basis.shape[1]) + 1)
        size = torch.where(columns.erased, torch.inf, residual.abs())
        stands_out = torch.where(grown, 4.0 * cut, torch.maximum(columns.floor, STANDS_OUT * noise))
        cutoff = stands_out[:, None].maximum(size.kthvalue(enough, dim=1, keepdim=True).values)
        altered = size > cut[:, None]
        pinned = columns.anchor.abs() > PINNED
        beyond = ~columns.left_out & (dual.abs() > 1.0)
        left_out = torch.where(trim, size > cutoff, torch.where(anew, altered | pinned, columns.left_out | beyond))
        target = torch.where(trim, torch.where(size > cutoff, residual.sign(), columns.anchor), columns.target)
        fresh = torch.where(altered, residual.sign(), torch.where(pinned, columns.anchor.sign(), columns.anchor))
        onward = torch.where(beyond, dual.sign(), dual if anchored else columns.target)
        onward = torch.where(columns.left_out, columns.target, onward)
        target = torch.where(anew, fresh, torch.where(pin, onward, target))
        columns.left_out = left_out | columns.erased
        columns.target = torch.where(columns.erased, 0.0, target)
        columns.spread = torch.where(cases[0], noise, columns.spread)
        columns.fits = cases[1] | cases[2]


def _start(data: Tensor) -> tuple[Tensor, ...]:
    return data, data, torch.zeros_like(data), torch.zeros_like(data)


def _suspect(
    left: Tensor,
    data: Tensor,
    erased: Tensor,
    floor: Tensor,
    detectable: Tensor,
    state: tuple[Tensor, ...],
    rank: int,
    *,
    anchored: bool,
) -> _Columns:
    """Leave out what identification takes for outliers, but keep at least 1.25 rank rows."""
    _, residual, sparse, dual = state
    erased = erased[left]
    anchor = (dual / float(THRESHOLD)).double() if anchored else torch.zeros_like(data[left])
    anchor = torch.where(erased, 0.0, anchor)
    size = torch.where(erased, torch.inf, residual.abs())
    least = size.kthvalue(min(size.shape[1], int(1.25 * rank) + 1), dim=1, keepdim=True).values
    few = ((sparse == 0) & ~erased).sum(dim=1, keepdim=True) < 1.1 * rank
    left_out = torch.where(few, size > least, sparse != 0) | erased
    target = torch.where(erased, 0.0, torch.where(left_out, residual.sign().double(), anchor))
    infinite = torch.full_like(floor[left], torch.inf)
    return _Columns(
        index=left,
        data=data[left],
        erased=erased,
        floor=floor[left],
        detectable=detectable[left],
        left_out=left_out,
        anchor=anchor,
        target=target,
        spread=infinite,
        fits=torch.zeros_like(infinite, dtype=torch.bool),
    )
