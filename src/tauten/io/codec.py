"""Models as plain data, JSON and a list of arrays, and back.

A value that JSON has no word for is an object whose ``"$"`` says what it is. The words are those
below and no others: a file can ask for nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from .._archive import KINDS
from .._labels import Labels, is_labelled
from ..estimators import TensorClassifier, TensorPCA, TensorRegressor
from ..estimators.base import PARTS
from ..losses import Loss
from ..preprocessing import Tensorize, TensorScaler
from ..registry import Registered
from ..robust import Robustifier
from ..select import RankPath, RidgePath, ThresholdPath
from ..solver import Iteration, Result
from ..tucker import Affine, Tucker
from .models import ModelFileError

ESTIMATORS = {
    cls.__name__: cls
    for cls in (TensorRegressor, TensorClassifier, TensorPCA, TensorScaler, Tensorize)
}
RECORDS: dict[str, type] = {
    cls.__name__: cls
    for cls in (Tucker, Affine, Iteration, Result, RankPath, RidgePath, ThresholdPath, Labels)
}
FAMILIES = {family.__name__: family for family in PARTS.values()}
BIT_GENERATORS = {"MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"}

STATE = re.compile(r"[A-Za-z]\w*_|_[a-z]\w*")  # names of what fit adds to an object
LEFT_OUT = {"_metadata_request"}  # scikit-learn's own object, of the session and not of the fit


class Encoder:
    """From a model to JSON and arrays; an array that occurs twice is kept once."""

    def __init__(self) -> None:
        self.arrays: list[np.ndarray] = []
        self._known: dict[int, int] = {}

    def model(self, model: Any) -> Any:
        """Encode a whole model."""
        if type(model).__name__ in ESTIMATORS or isinstance(model, Tucker):
            return self.encode(model, "model")
        raise TypeError(
            f"model must be one of {', '.join(ESTIMATORS)} or Tucker; got {type(model).__name__}"
        )

    def encode(self, value: Any, where: str) -> Any:
        """Encode a value; `where` it is, for messages."""
        if isinstance(value, np.generic):
            return {"$": "scalar", "value": self._array(np.asarray(value), where)}
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$": "float", "value": str(value)}
        if isinstance(value, (list, tuple, Mapping)):
            return self._collection(value, where)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        return self._object(value, where)

    def _collection(self, value: Any, where: str) -> Any:
        if isinstance(value, Mapping):
            pairs = [[self.encode(k, where), self.encode(v, where)] for k, v in value.items()]
            return {"$": "dict", "items": pairs}
        items = [self.encode(v, f"{where}[{k}]") for k, v in enumerate(value)]
        return items if isinstance(value, list) else {"$": "tuple", "items": items}

    def _array(self, value: np.ndarray, where: str) -> Any:
        words = value.dtype == object and all(isinstance(v, str) for v in value.flat)
        if not words and value.dtype.kind not in KINDS:
            raise TypeError(f"cannot save {where}: an array of {value.dtype}")
        if id(value) not in self._known:
            self._known[id(value)] = len(self.arrays)
            self.arrays.append(value.astype(str) if words else value)
        return {"$": "words" if words else "array", "index": self._known[id(value)]}

    def _object(self, value: Any, where: str) -> Any:
        if isinstance(value, PurePath):  # of a checkpoint; a text names the same file
            return str(value)
        kind = type(value)
        for family, base in FAMILIES.items():
            if isinstance(value, base) and base.registry.get(value.name) is kind:
                return {"$": family, "name": value.name, **self._state(value, where)}
        if ESTIMATORS.get(kind.__name__) is kind:
            return {"$": kind.__name__, **self._state(value, where)}
        if is_dataclass(value) and RECORDS.get(kind.__name__) is kind:
            values = {f.name: getattr(value, f.name) for f in fields(value)}
            return {"$": kind.__name__, "fields": self._named(values, where)}
        if is_labelled(value):
            labels = self.encode(Labels.of(value, first=0), where)
            return {"$": "labelled", "labels": labels, "values": self.encode(value.values, where)}
        if isinstance(value, np.random.Generator):
            return {"$": "Generator", "state": self.encode(value.bit_generator.state, where)}
        raise TypeError(f"cannot save {where}: a {kind.__name__} has no place in a file")

    def _state(self, value: Any, where: str) -> dict[str, Any]:
        """Parameters, and what fit has added to them."""
        parameters = value.get_params(deep=False)
        rest = {k: v for k, v in vars(value).items() if k not in parameters and k not in LEFT_OUT}
        return {"params": self._named(parameters, where), "state": self._named(rest, where)}

    def _named(self, values: Mapping[str, Any], where: str) -> dict[str, Any]:
        return {name: self.encode(value, f"{where}.{name}") for name, value in values.items()}


class Decoder:
    """From JSON and arrays to a model: data go into known classes, and nothing else happens."""

    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self.arrays = arrays

    def model(self, tree: Any) -> Any:
        """Decode a whole model, and check that its parts fit together."""
        model = self.decode(tree)
        if type(model) in ESTIMATORS.values():
            check_fit(model)
        elif not isinstance(model, Tucker):
            raise ModelFileError("it holds no model")
        return model

    def decode(self, tree: Any) -> Any:
        """Decode a value."""
        if isinstance(tree, list):
            return [self.decode(item) for item in tree]
        if not isinstance(tree, dict):
            return tree
        kind = tree["$"]
        if kind in ESTIMATORS:
            return self._restore(ESTIMATORS[kind], tree)
        if kind in FAMILIES:
            return self._restore(_registered(FAMILIES[kind], tree["name"]), tree)
        if kind in RECORDS:
            return RECORDS[kind](**self._named(tree["fields"]))
        return self._plain(kind, tree)

    def _plain(self, kind: Any, tree: dict[str, Any]) -> Any:
        match kind:
            case "float":
                value: Any = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[tree["value"]]
            case "array":
                value = self.arrays[tree["index"]]
            case "scalar":
                value = self.decode(tree["value"])[()]
            case "words":
                value = self.arrays[tree["index"]].astype(object)
            case "labelled":
                value = self.decode(tree["labels"]).wrap(self.decode(tree["values"]))
            case "tuple":
                value = tuple(self.decode(tree["items"]))
            case "dict":
                value = {self.decode(k): self.decode(v) for k, v in tree["items"]}
            case "Generator":
                value = _generator(self.decode(tree["state"]))
            case _:
                raise ModelFileError(f"it asks for {kind!r:.80}, which this version does not know")
        return value

    def _restore(self, cls: type, tree: dict[str, Any]) -> Any:
        value = cls(**self._named(tree["params"]))
        for name, state in self._named(tree["state"]).items():
            inherited = getattr(cls, name, None)
            if not STATE.fullmatch(name) or callable(inherited) or isinstance(inherited, property):
                raise ModelFileError(f"{cls.__name__} has no attribute {name!r:.80}")
            setattr(value, name, state)
        return value

    def _named(self, trees: dict[str, Any]) -> dict[str, Any]:
        return {name: self.decode(tree) for name, tree in trees.items()}


def _registered(family: type[Registered], name: Any) -> type[Registered]:
    if not isinstance(name, str) or name not in family.registry:
        raise ModelFileError(
            f"unknown {family.__name__.lower()} {name!r:.80}: import the module that defines it, "
            f"then load again"
        )
    return family.registry[name]


def _generator(state: dict[str, Any]) -> np.random.Generator:
    if state["bit_generator"] not in BIT_GENERATORS:
        raise ModelFileError(f"unknown random generator {state['bit_generator']!r:.80}")
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)


def check_fit(model: Any) -> None:
    """Raise unless the parts of a fitted estimator fit together; one not fitted has no parts."""
    state = {name: value for name, value in vars(model).items() if STATE.fullmatch(name)}
    if isinstance(model, (TensorScaler, Tensorize)) or not state:
        return
    point = state["tucker_"]
    if not (isinstance(point, Tucker) and isinstance(state["robust_"], Robustifier)):
        raise ModelFileError("its fit has no coefficients")
    shapes = [np.shape(state["coef_"]) == point.shape, isinstance(state["loss_"], Loss)]
    if not isinstance(model, TensorPCA):
        responses = state["intercept_"].shape
        shapes += [
            state["sample_shape_"] + responses == point.shape,
            state["covariate_coef_"].shape[1:] == responses,
        ]
    if not all(shapes):
        raise ModelFileError("the parts of its fit do not go together")
