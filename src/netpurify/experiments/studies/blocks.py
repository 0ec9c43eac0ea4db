"""Parts of networks that several studies use."""

from torch import Tensor, nn


class ResidualBlock(nn.Module):
    """Two 3 x 3 convolutions with BatchNorm, added to the input."""

    def __init__(self, width: int) -> None:
        """``width`` channels come in and go out."""
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norms = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width)])

    def forward(self, inputs: Tensor) -> Tensor:
        """The output of the block, [n, width, h, w]."""
        return (inputs + self.norms[1](self.second(self.norms[0](self.first(inputs)).relu()))).relu()
