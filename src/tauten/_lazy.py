"""Properties that are worked out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - a decorator, like property
    """A property that is worked out when first asked for, and kept.

    As ``functools.cached_property``, which before Python 3.12 makes threads wait for each other
    that ask it of different objects.

    Examples
    --------
    >>> class Circle:
    ...     @lazy
    ...     def area(self):
    ...         print("working")
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area, circle.area
    working
    (3.14, 3.14)
    """

    def __init__(self, fn: Callable[[Any], T]) -> None:
        self._fn, self.__doc__ = fn, fn.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        found = self._fn(instance)
        vars(instance)[self._name] = found  # from now on this is not called
        return found
