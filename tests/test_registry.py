"""Names and specs for components."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tauten.losses import Huber as HuberLoss
from tauten.losses import Loss, Poisson
from tauten.registry import Registered
from tauten.robust import Adaptive, HodgesLehmann, Huber, Robustifier, Truncate
from tauten.solver import GradientDescent, Newton, Solver

FAMILIES = [Loss, Robustifier, Solver]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_name_makes_its_class(family):
    assert family.registry
    for name, cls in family.registry.items():
        component = family.get(name)
        assert type(component) is cls
        assert cls.name == name
        assert component.get_params() == cls().get_params()


def test_families_share_names_but_no_registry():
    assert type(Loss.get("huber")) is HuberLoss
    assert type(Robustifier.get("huber")) is Huber
    assert "newton" in Solver.registry
    assert "newton" not in Loss.registry


@pytest.mark.parametrize(
    ("spec", "cls", "parameters"),
    [
        ("truncate", Truncate, {"tau": "auto"}),
        ("truncate:", Truncate, {"tau": "auto"}),
        ("truncate:tau=2", Truncate, {"tau": 2}),
        ("truncate:tau=2.5", Truncate, {"tau": 2.5}),
        ("truncate:tau=1e-3", Truncate, {"tau": 1e-3}),
        ("truncate:tau=inf", Truncate, {"tau": math.inf}),
        ("truncate:tau=+inf", Truncate, {"tau": math.inf}),
        ("truncate: tau = 2 ", Truncate, {"tau": 2}),
        ("truncate:tau=auto", Truncate, {"tau": "auto"}),
        ("truncate:tau='auto'", Truncate, {"tau": "auto"}),
        ("rank:n_blocks=7", HodgesLehmann, {"n_blocks": 7}),
        ("auto:nu=1,tau=inf", Adaptive, {"omega": "auto", "nu": 1, "tau": math.inf}),
    ],
)
def test_specs(spec, cls, parameters):
    component = Robustifier.get(spec)
    assert type(component) is cls
    assert component.get_params() == parameters


def test_specs_of_the_other_families():
    assert Loss.get("huber:nu=3").nu == 3
    solver = Solver.get("gd:step_size=0.1,b=2,n_iter=7")
    assert (type(solver), solver.step_size, solver.b, solver.n_iter) == (GradientDescent, 0.1, 2, 7)
    assert Solver.get("newton:tol=1e-9").tol == 1e-9


@pytest.mark.parametrize(
    ("family", "name", "meant"),
    [
        (Robustifier, "truncat", "truncate"),
        (Robustifier, "norm_clip:tau=1", "normclip"),
        (Loss, "possion", "poisson"),
        (Solver, "Newton", "newton"),
    ],
)
def test_unknown_names_are_corrected(family, name, meant):
    with pytest.raises(
        ValueError, match=f"unknown {family.__name__.lower()} .*did you mean '{meant}'"
    ):
        family.get(name)


def test_names_that_are_like_no_other():
    with pytest.raises(ValueError, match="unknown loss 'xyz': choose from gamma, huber") as caught:
        Loss.get("xyz")
    assert "did you mean" not in str(caught.value)
    with pytest.raises(ValueError, match="unknown loss ''"):
        Loss.get("")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("truncate:nu=2", "'nu=2' is not a parameter of 'truncate': .* among tau"),
        ("truncate:2", "'2' is not a parameter of 'truncate'"),
        ("truncate:tau", "'tau' is not a parameter of 'truncate'"),
        ("none:tau=2", r"'tau=2' is not a parameter of 'none': .* \(it has none\)"),
        ("auto:nu=1,tauu=3", "'tauu=3' is not a parameter of 'auto': .* among nu, omega, tau"),
    ],
)
def test_bad_parameters_are_named(spec, message):
    with pytest.raises(ValueError, match=message):
        Robustifier.get(spec)


def test_values_are_literals_and_run_nothing():
    assert Robustifier.get("truncate:tau=__import__('os')").tau == "__import__('os')"


@pytest.mark.parametrize("spec", [None, 3, ["truncate"], Truncate, Poisson()])
def test_neither_name_nor_instance(spec):
    with pytest.raises(
        TypeError, match=r"robustifier must be a name \(auto, .*\) or a Robustifier"
    ):
        Robustifier.get(spec)


def test_instances_are_cloned():
    tau = [np.ones(2), np.ones((3, 2))]
    mine = Truncate(tau)
    fresh = Robustifier.get(mine)
    assert fresh is not mine
    np.testing.assert_equal(fresh.get_params(), mine.get_params())
    calibrated = mine.calibrate()
    assert not hasattr(Robustifier.get(calibrated), "tau_")


def test_parameters_can_be_set():
    assert Newton().set_params(tol=1e-3).tol == 1e-3
    with pytest.raises(ValueError, match="Invalid parameter"):
        Newton().set_params(tau=1)


def test_a_class_registers_by_naming_itself():
    class Family(Registered):
        pass

    class Member(Family, name="member"):
        def __init__(self, size=1):
            self.size = size

    class Unnamed(Member):
        pass

    assert Family.registry == {"member": Member}
    assert Family.get("member:size=3").size == 3
    assert type(Family.get(Unnamed())) is Unnamed


@pytest.mark.parametrize("value", ["-" * 9000, "[" * 5000, "9" * 5000, "{[]: 1}"])
def test_values_that_the_parser_cannot_take_are_plain_text(value):
    assert Robustifier.get(f"truncate:tau={value}").tau == value
