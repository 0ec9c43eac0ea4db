"""Families of a user's own: whatever they do wrong is said by their name, the method and the fault."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from netpurify import InputError, Unlearn, hunt
from netpurify.network import FAMILIES, TriggerFamily, register_family

IMAGES = torch.rand(60, 1, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))


@dataclass(frozen=True, slots=True, eq=False)
class Veil(TriggerFamily):
    """Adds a pattern; a right family, whose methods the cases below replace one by one."""

    parameters: torch.Tensor

    name = "veil"
    draws = 8

    @classmethod
    def draw(cls, generator, shape, near=None):
        """A pattern of random numbers."""
        del near
        return cls(torch.rand(shape, generator=generator))

    def apply(self, inputs, parameters):
        """Images with the pattern."""
        return (inputs + parameters).clamp(0, 1)

    def climb(self, slope):
        """One step along the slope."""
        return type(self)(self.parameters + slope)


def veil(**other: Any) -> type[TriggerFamily]:
    """A family in which some attributes are other than in ``Veil``."""
    return type("Odd", (Veil,), {"name": "odd", **other})


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"draw": classmethod(lambda cls, g, shape: cls(torch.rand(shape, generator=g)))},
         r"'odd' failed: draw raised TypeError: .* 4 were given; docs/extend\.md says what each method is given"),
        ({"draw": classmethod(lambda *_: 1 / 0)}, "'odd' failed: scout raised ZeroDivisionError: division by zero"),
        ({"draw": lambda self, *_: self}, "'odd' must draw .* got Generator"),
        ({"draws": "many"}, "'odd' failed: scout raised TypeError: 'str' object cannot be"),
        ({"scout": classmethod(lambda *_: None)}, "'odd' failed: scout raised TypeError: 'NoneType'"),
        ({"scout": classmethod(lambda *_: [])}, "'odd' must give some triggers to begin with"),
        ({"apply": lambda _, inputs: inputs}, "'odd' failed: apply raised TypeError"),
        ({"apply": lambda _, inputs, parameters: inputs.double() + 0.0 * parameters},
         r"'odd' must keep the dtype and shape of inputs, torch\.float32 .*; apply gave torch\.float64"),
        ({"apply": lambda _, inputs, parameters: (inputs + parameters)[:, :, 1:].clamp(0, 1)},
         r"apply gave torch\.float32 \[\d+, 1, 7, 8\]"),
        ({"apply": lambda _, inputs, parameters: inputs.mul_(parameters.detach())}, "'odd' must give a changed copy"),
        ({"climb": lambda self, _: self.foo}, "'odd' failed: climb raised AttributeError"),
        ({"climb": lambda *_: None}, "'odd' must draw and climb to triggers, Odd with .* got NoneType"),
        ({"climb": lambda self, _: Veil(self.parameters)}, "'odd' must draw and climb to triggers, Odd .* got Veil"),
        ({"climb": lambda self, _: type(self)(torch.rand(3))}, "'odd' failed: apply raised RuntimeError: The size of"),
        ({"name": 3}, "family Odd must have a name, a text; got 3; decorate it with register_family"),
        ({"name": ""}, "family Odd must have a name, a text; got ''"),
    ],
)  # fmt: skip
def test_what_a_family_does_wrong_is_said_by_name(network, other, message):
    with pytest.raises(InputError, match=message):
        hunt(network, IMAGES, families=[veil(**other)])


def test_the_fault_itself_is_the_cause(network):
    with pytest.raises(InputError) as caught:
        hunt(network, IMAGES, families=[veil(climb=lambda self, _: self.foo)])
    assert isinstance(caught.value.__cause__, AttributeError)


def test_a_family_without_a_method_is_refused_before_the_search():
    class Half(TriggerFamily):
        name = "half"

        @classmethod
        def draw(cls, generator, shape, near=None):
            del generator, shape, near
            return cls()

    with pytest.raises(InputError, match=r"'half' must have the methods .*; apply and climb is missing"):
        Unlearn([Half])


def test_two_classes_with_one_name_are_refused():
    with pytest.raises(InputError, match="two classes have the name 'odd'"):
        Unlearn([veil(), veil()])
    assert Unlearn([Veil, Veil])


def test_a_right_family_is_searched(network):
    (found,) = hunt(network, IMAGES, families=[Veil]).families
    assert found.family == "veil"


def cell():
    """What a cell of a notebook does each time it is run."""

    @register_family("veil of a cell")
    class Cell(Veil):
        pass

    return Cell


def test_a_cell_that_is_run_again_replaces_its_family(monkeypatch):
    monkeypatch.setattr("netpurify.network.hunting.families.family.FAMILIES", found := dict(FAMILIES))
    first, place = cell(), list(found)
    second = cell()
    assert first is not second
    assert found["veil of a cell"] is second
    assert list(found) == place
    with pytest.raises(InputError, match=r"'wave' is registered already, as .*wave\.Wave; choose another name"):
        register_family("wave")(Veil)
    assert Veil.name == "veil"
    with pytest.raises(InputError, match=r'must have a name, as in @register_family\("stripes"\); got <class'):
        register_family(Veil)
