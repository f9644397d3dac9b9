"""Inputs that are about right: good ones with a few pieces changed."""

PIECES = [
    *"[]{}()\"':,.=-+\\ \n\t\0", "null", "true", "1e999", "-0", "inf", "nan", "\ud7ff", "é",
    "9" * 5000, "[" * 5000, '"$"', "tau", "auto", "0x", "1_0", "lambda:0",
    "-" * 9000, "{[]: 1}", "__import__('os')",
]  # fmt: skip


def chosen(rng, items):
    """One of a list; numpy's own would make an array of it each time."""
    return items[rng.integers(len(items))]


def mutated(rng, data):
    """Bytes with a few of them changed, cut out, repeated or put in."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(data) + 1))
        to = at + int(rng.integers(1, 20))
        piece = chosen(rng, PIECES).encode("utf-8")
        kind = rng.integers(5)
        if kind == 0:
            data[at : at + 1] = bytes([rng.integers(256)])
        elif kind == 1:
            del data[at:to]
        elif kind == 2:
            data[at:at] = data[at:to]
        elif kind == 3:
            data[at:at] = piece
        else:
            data[at:to] = piece
    return bytes(data)


def mutated_text(rng, text):
    return mutated(rng, text.encode()).decode("utf-8", "replace")
