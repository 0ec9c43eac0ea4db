"""Experimental: identification and polishing through torch, for a device on which compiled code does not run.

The same steps as the stage ``identify``, for all columns of a panel at once: ADMM in float32, then rounds of trimmed
least squares and duals in float64, with batched Cholesky factorisations of Q_F'Q_F. The next stage finishes columns
that stay open on the CPU, and every answer passes the same check as those of compiled code.

Never measured: speed or memory on any GPU, and whether this is faster there than compiled code on the CPU. The tests
run it on the CPU only. Its answers agree with compiled ones to rounding, not to the bit.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from netpurify.lad.design import Design
from netpurify.lad.kernels.cholesky import SMALLEST_DIAGONAL
from netpurify.lad.stages.admm import RELAXATION, THRESHOLD, schedule
from netpurify.lad.stages.columns import SOLVED, Columns
from netpurify.lad.stages.judge import BIMODAL, NOISE_TAIL, PINNED, STANDS_OUT
from netpurify.lad.stages.panel import Panel
from netpurify.lad.stages.polish import ROUNDS

_GRAM_BYTES = 256 << 20


@dataclass(slots=True)
class _DeviceColumns:
    """Columns being worked on, [n, rows] or [n]; the counterpart of ``Columns`` on a device, changed in place."""

    index: Tensor
    data: Tensor
    missing: Tensor
    noise_floor: Tensor
    largest_floor: Tensor
    left_out: Tensor
    dual_guess: Tensor
    dual_target: Tensor
    noise: Tensor
    reached_floor: Tensor

    @classmethod
    def load(cls, columns: Columns, chosen: NDArray[np.intp], rows: int, device: torch.device) -> "_DeviceColumns":
        """Copy the chosen columns to ``device``."""
        index = torch.arange(chosen.size, device=device)
        names = ("data", "missing", "noise_floor", "largest_floor", "left_out", "dual_guess", "dual_target")
        names += ("noise", "reached_floor")
        arrays = (getattr(columns, name)[chosen] for name in names)
        return cls(
            index, *(torch.from_numpy(array[..., :rows] if array.ndim > 1 else array).to(device) for array in arrays)
        )

    def take(self, chosen: Tensor) -> "_DeviceColumns":
        return _DeviceColumns(*(getattr(self, name)[chosen] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class TorchStages:
    """The stage ``identify`` on one device."""

    basis: Tensor

    @classmethod
    def prepare(cls, design: Design, device: str) -> "TorchStages":
        """Move the design's basis to ``device``."""
        return cls(torch.from_numpy(design.compact).to(device))

    def run(self, panel: Panel, unsolved: NDArray[np.intp]) -> NDArray[np.intp]:
        """Solve what can be recovered, in place; returns the columns that were solved."""
        rows, rank, device = panel.design.live.size, panel.design.rank, self.basis.device
        columns = panel.columns
        problem = _DeviceColumns.load(columns, unsolved, rows, device)
        panel.estimate = np.zeros(columns.data.shape)
        mean = problem.data.abs().mean(dim=1, keepdim=True)
        scale = torch.where(mean > 0, mean, 1.0)
        state = _start((problem.data / scale).float())
        left = torch.arange(unsolved.size, device=device)
        for attempt, steps in enumerate(schedule(rows, rank)):
            state = self._iterate(state, problem.missing[left], steps)
            panel.estimate[unsolved[left.cpu().numpy()], :rows] = (state[1] * scale[left]).cpu().numpy()
            with panel.clock.step("polish"):
                suspected = _leave_out_suspects(problem.take(left), state, rank, with_guess=attempt > 0)
                for index, coordinates, dual, cut in self._polish(suspected, with_guess=attempt > 0):
                    chosen = unsolved[index.cpu().numpy()]
                    columns.coordinates[chosen, :rank] = coordinates.cpu().numpy()
                    columns.dual[chosen, :rows] = dual.cpu().numpy()
                    columns.noise_floor[chosen] = cut.cpu().numpy()
                    columns.state[chosen] = SOLVED
            still = torch.from_numpy(columns.state[unsolved[left.cpu().numpy()]] != SOLVED).to(device)
            left, state = left[still], tuple(part[still] for part in state)
            if not left.numel():
                break
        return unsolved[columns.state[unsolved] == SOLVED]

    def _iterate(self, state: tuple[Tensor, ...], missing: Tensor, steps: int) -> tuple[Tensor, ...]:
        data, residual, sparse, dual = state
        basis = self.basis.float()
        bound = torch.where(missing, 0.0, float(THRESHOLD)).float()
        for _ in range(steps):
            residual = data + ((sparse - dual) @ basis) @ basis.T
            value = float(RELAXATION) * residual + (1.0 - float(RELAXATION)) * sparse + dual
            sparse = (value - bound).clamp(min=0.0) + (value + bound).clamp(max=0.0)
            dual = value - sparse
        return data, residual, sparse, dual

    def _polish(self, columns: _DeviceColumns, *, with_guess: bool):
        """Rounds as in ``polish.polish``; yields (index, coordinates, dual, floor) of the columns proven in each."""
        rank = self.basis.shape[1]
        for _ in range(ROUNDS):
            if not columns.index.numel():
                return
            coordinates, correction = self._solve(columns)
            residual = columns.data - coordinates @ self.basis.T
            moved = torch.where(columns.left_out, 0.0, correction @ self.basis.T)
            dual = columns.dual_target - moved
            size = torch.where(columns.left_out, torch.nan, residual.abs())
            kept = (~columns.left_out).sum(dim=1)
            worst = torch.where(columns.left_out, -1.0, residual.abs()).amax(dim=1)
            noise = 1.4826 * size.nanmedian(dim=1).values / (1.0 - rank / kept).clamp(min=0.01).sqrt()
            settled = (worst <= STANDS_OUT * noise) | ((worst <= NOISE_TAIL * noise) & (noise > 0.5 * columns.noise))
            cut = torch.where((columns.largest_floor > 0) & settled, NOISE_TAIL * noise, 0.0).maximum(
                columns.noise_floor
            )
            fits = (worst <= cut) & (kept >= rank)
            fitting = (~columns.missing & (residual.abs() <= cut[:, None])).sum(dim=1)
            grown = fits & (cut > columns.noise_floor) & ~columns.reached_floor & (fitting > kept + kept // 50)
            trimmed = (~fits & (noise <= 0.7 * columns.noise)) | grown
            fits &= ~grown
            altered = ~columns.missing & (residual.abs() > cut[:, None])
            typical = torch.where(altered, residual.abs(), torch.nan).nanmedian(dim=1).values * BIMODAL
            fits &= (cut <= columns.noise_floor) | (
                cut <= torch.where(altered.any(dim=1), typical, torch.inf).minimum(columns.largest_floor)
            )
            wrong = (altered & (columns.dual_target != residual.sign())).any(dim=1)
            beyond = ~columns.left_out & (dual.abs() > 1.0)
            proven = fits & ~wrong & ~beyond.any(dim=1)
            yield columns.index[proven], coordinates[proven], dual[proven], cut[proven]
            idle = (columns.left_out & ~columns.missing & ~altered).any(dim=1)
            anew = fits & (wrong | (idle & ~columns.reached_floor))
            self._next(
                columns, residual, dual, cut, noise, (trimmed, anew, fits & ~anew), with_guess=with_guess, grown=grown
            )
            columns = columns.take((fits | trimmed) & ~proven)

    def _solve(self, columns: _DeviceColumns) -> tuple[Tensor, Tensor]:
        """Primal and dual coordinates of every column; NaN where Q_F has not full rank."""
        keep = (~columns.left_out).to(self.basis.dtype)
        right = torch.stack(((keep * columns.data) @ self.basis, columns.dual_target @ self.basis), dim=2)
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
        columns: _DeviceColumns,
        residual: Tensor,
        dual: Tensor,
        cut: Tensor,
        noise: Tensor,
        cases: tuple[Tensor, Tensor, Tensor],
        *,
        with_guess: bool,
        grown: Tensor,
    ) -> None:
        """Choose S and dual targets of the next round: trim, start the dual anew, or pin what is beyond the box."""
        trim, anew, pin = (case[:, None] for case in cases)
        enough = min(residual.shape[1], int(1.25 * self.basis.shape[1]) + 1)
        size = torch.where(columns.missing, torch.inf, residual.abs())
        stands_out = torch.where(grown, 4.0 * cut, torch.maximum(columns.noise_floor, STANDS_OUT * noise))
        cutoff = stands_out[:, None].maximum(size.kthvalue(enough, dim=1, keepdim=True).values)
        altered = size > cut[:, None]
        pinned = columns.dual_guess.abs() > PINNED
        beyond = ~columns.left_out & (dual.abs() > 1.0)
        left_out = torch.where(trim, size > cutoff, torch.where(anew, altered | pinned, columns.left_out | beyond))
        target = torch.where(trim, torch.where(size > cutoff, residual.sign(), columns.dual_guess), columns.dual_target)
        fresh = torch.where(
            altered, residual.sign(), torch.where(pinned, columns.dual_guess.sign(), columns.dual_guess)
        )
        onward = torch.where(beyond, dual.sign(), dual if with_guess else columns.dual_target)
        onward = torch.where(columns.left_out, columns.dual_target, onward)
        target = torch.where(anew, fresh, torch.where(pin, onward, target))
        columns.left_out = left_out | columns.missing
        columns.dual_target = torch.where(columns.missing, 0.0, target)
        columns.noise = torch.where(cases[0], noise, columns.noise)
        columns.reached_floor = cases[1] | cases[2]


def _start(data: Tensor) -> tuple[Tensor, ...]:
    return data, data, torch.zeros_like(data), torch.zeros_like(data)


def _leave_out_suspects(
    columns: _DeviceColumns, state: tuple[Tensor, ...], rank: int, *, with_guess: bool
) -> _DeviceColumns:
    """Leave out what identification takes for outliers, but keep at least 1.25 rank rows."""
    _, residual, sparse, dual = state
    missing = columns.missing
    guess = (dual / float(THRESHOLD)).double() if with_guess else torch.zeros_like(columns.data)
    guess = torch.where(missing, 0.0, guess)
    size = torch.where(missing, torch.inf, residual.abs())
    least = size.kthvalue(min(size.shape[1], int(1.25 * rank) + 1), dim=1, keepdim=True).values
    few = ((sparse == 0) & ~missing).sum(dim=1, keepdim=True) < 1.1 * rank
    left_out = torch.where(few, size > least, sparse != 0) | missing
    target = torch.where(missing, 0.0, torch.where(left_out, residual.sign().double(), guess))
    return replace(
        columns,
        left_out=left_out,
        dual_guess=guess,
        dual_target=target,
        noise=torch.full_like(columns.noise, torch.inf),
        reached_floor=torch.zeros_like(columns.reached_floor),
    )
