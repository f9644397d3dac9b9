"""Names for classes: ``"truncate:tau=2"`` means ``Truncate(tau=2)``, everywhere.

A class registers itself by naming itself in its definition,
``class Poisson(Loss, name="poisson")``; estimators, command line and experiments then accept the
name, and the conformance tests run on it.
"""

from __future__ import annotations

import ast
import difflib
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, clone


class Registered(BaseEstimator):
    """Base of each family of named components (losses, robustifiers, solvers).

    A family is a direct subclass; it gets a registry of its own. Parameters nest in scikit-learn's
    way: ``robust__tau`` reaches the ``tau`` of an estimator's ``robust``.
    """

    registry: ClassVar[dict[str, type[Self]]]
    name: ClassVar[str] = "unnamed"

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        """Register the class under its name; a family opens a new registry."""
        super().__init_subclass__(**kwargs)
        if Registered in cls.__bases__:
            cls.registry = {}
        if name is not None:
            cls.name = name
            cls.registry[name] = cls

    @classmethod
    def get(cls, spec: str | Self) -> Self:
        """Return a fresh component from a name, a spec ``"name:key=value,..."`` or an instance.

        Examples
        --------
        >>> from tauten.robust import Robustifier
        >>> Robustifier.get("truncate:tau=2.5").tau
        2.5
        """
        family = cls.__name__.lower()
        if isinstance(spec, cls):
            return clone(spec)
        if not isinstance(spec, str):
            raise TypeError(
                f"{family} must be a name ({', '.join(sorted(cls.registry))}) or a "
                f"{cls.__name__} instance; got {type(spec).__name__}"
            )
        name, _, arguments = spec.partition(":")
        if name not in cls.registry:
            close = difflib.get_close_matches(name, cls.registry, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"unknown {family} {name!r}: choose from {', '.join(sorted(cls.registry))}{hint}"
            )
        return cls.registry[name](**_parse_arguments(cls.registry[name], arguments))


def is_word(value: Any, word: str) -> bool:
    """Whether a parameter is this word; it may be an array, which ``==`` would compare by entry.

    Examples
    --------
    >>> import numpy as np
    >>> is_word("auto", "auto"), is_word(np.ones(2), "auto")
    (True, False)
    """
    return isinstance(value, str) and value == word


def _parse_arguments(cls: type[Registered], text: str) -> dict[str, Any]:
    """Read ``key=value,key=value``; values are Python literals, ``inf``, or else plain strings."""
    allowed = sorted(cls._get_param_names())
    arguments = {}
    for item in filter(None, text.split(",")):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or key not in allowed:
            raise ValueError(
                f"{item!r} is not a parameter of {cls.name!r}: write key=value with a key among "
                f"{', '.join(allowed) or '(it has none)'}"
            )
        arguments[key] = _parse_value(value)
    return arguments


def _parse_value(text: str) -> Any:
    if text in {"inf", "+inf"}:
        return float("inf")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # all it may raise
        return text
