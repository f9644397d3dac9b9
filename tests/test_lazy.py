"""Properties that are worked out once."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tauten._lazy import lazy


class Counted:
    def __init__(self, work=lambda: 3):
        self.work, self.times = work, 0

    @lazy
    def value(self):
        """What it is."""
        self.times += 1
        return self.work()


def test_once_for_each_object():
    one, other = Counted(), Counted(lambda: 4)
    assert (one.value, one.value, other.value) == (3, 3, 4)
    assert (one.times, other.times) == (1, 1)
    assert Counted.value.__doc__ == "What it is."


def test_threads_do_not_wait_for_each_other():
    """Each is let go when both are inside."""
    barrier = threading.Barrier(2, timeout=20)
    pair = [Counted(barrier.wait) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(lambda each: each.value, pair)) == [0, 1]
