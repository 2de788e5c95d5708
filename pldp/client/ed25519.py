"""Checking a signature, after RFC 8032 (Ed25519). It verifies only: nothing here is secret, so nothing has to be fast
or to take the same time for every input.

The curve is −x² + y² = 1 + d x² y² over the integers modulo p; points are (X, Y, Z, T) with x = X/Z, y = Y/Z and
xy = T/Z. Held to the vectors of RFC 8032, section 7.1, and to the library that signs.
"""

from __future__ import annotations

import hashlib

Point = tuple[int, int, int, int]

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)
"""A square root of −1."""
_NEUTRAL: Point = (0, 1, 1, 0)


def _recover(y: int, odd: int) -> int | None:
    """The x of this parity on the curve; None where there is none."""
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * _ROOT % _P
    if x * x % _P != square or (x == 0 and odd):
        return None
    return _P - x if x % 2 != odd else x


def _point(encoded: bytes) -> Point | None:
    number = int.from_bytes(encoded, "little")
    y = number & (1 << 255) - 1
    x = _recover(y, number >> 255)
    return None if x is None else (x, y, 1, x * y % _P)


def _add(one: Point, two: Point) -> Point:
    a = (one[1] - one[0]) * (two[1] - two[0])
    b = (one[1] + one[0]) * (two[1] + two[0])
    c, d = 2 * one[3] * two[3] * _D, 2 * one[2] * two[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(number: int, point: Point) -> Point:
    total = _NEUTRAL
    while number:
        if number & 1:
            total = _add(total, point)
        point, number = _add(point, point), number >> 1
    return total


_BASE = _point((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))


def verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the holder of the key signed exactly these bytes: S·B = R + k·A with k = SHA-512(R, A, message)."""
    if len(public) != 32 or len(signature) != 64 or _BASE is None:
        return False
    key, commitment = _point(public), _point(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or commitment is None or scalar >= _ORDER:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    challenge = int.from_bytes(digest, "little") % _ORDER
    left, right = _times(scalar, _BASE), _add(commitment, _times(challenge, key))
    # Equal as fractions: X/Z and Y/Z.
    return all((left[i] * right[2] - right[i] * left[2]) % _P == 0 for i in (0, 1))
