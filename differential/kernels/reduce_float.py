"""Exact sums of floats, so that a sum does not depend on the order in which its terms come and go.

A float is an integer of 53 bits times a power of two, at least 2**-1074. The sum is an integer in units of 2**-1074,
kept in limbs of 32 bits. Each limb is an int64 with room to spare, so that adding or subtracting a float touches three
limbs and propagates no carry; carries are settled now and then, and when the sum is read. It is rounded once, when it
is read, to the nearest float (ties to even), as `math.fsum` does. Infinities and NaNs are counted separately.

A float is passed as its code: the int64 with its bits, in which all bits but the sign are flipped if it is negative.
So codes have the order of their floats. Every NaN sum has one code, `NAN`; a sum of zeros is +0.0.

Adding a float with a diff of at most 16 bits costs three multiplications; reading a sum costs a pass over the limbs.
"""

from __future__ import annotations

from differential.kernels.compile import Ints, bare

_LIMBS = 72
_ADDITIONS, _POSITIVE, _NEGATIVE, _UNDEFINED = _LIMBS, _LIMBS + 1, _LIMBS + 2, _LIMBS + 3
SUM_WIDTH = _LIMBS + 4
"""How many int64 hold a sum; all zero is the empty sum."""

_LOW_32 = 0xFFFFFFFF
_ALL_BUT_SIGN = 0x7FFFFFFFFFFFFFFF
_INFINITY = 0x7FF0000000000000
NAN = 0x7FF8000000000000
"""The code of a sum that is not a number."""

_PATIENCE = 1 << 14
"""After this many products carries are settled."""


@bare
def add_float(total: Ints, code: int, diff: int) -> None:
    """Add to a sum `diff` times the float with this code."""
    bits = code ^ ((code >> 63) & _ALL_BUT_SIGN)
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & 0xFFFFFFFFFFFFF
    if exponent == 0x7FF:
        which = _UNDEFINED if mantissa != 0 else (_NEGATIVE if bits < 0 else _POSITIVE)
        total[which] += diff
        return
    if exponent > 0:
        mantissa |= 1 << 52
        exponent -= 1
    sign = -1 if (bits < 0) != (diff < 0) else 1
    rest = -diff if diff < 0 else diff
    while rest != 0:
        # A product has 48 bits, and an int64 holds the sum of 2**15: twice as many as `_PATIENCE` lets a limb get.
        factor = sign * (rest & 0xFFFF)
        limb, shift = exponent >> 5, exponent & 31
        # 53 bits moved by up to 31 span three limbs; the top one is what the first shift would push out of 64 bits.
        total[limb] += ((mantissa << shift) & _LOW_32) * factor
        total[limb + 1] += ((mantissa >> (32 - shift)) & _LOW_32) * factor
        total[limb + 2] += (mantissa >> (63 - shift) >> 1) * factor
        rest = (rest >> 16) & 0xFFFFFFFFFFFF
        exponent += 16
    total[_ADDITIONS] += 4  # at most four products reach one limb
    if total[_ADDITIONS] > _PATIENCE:
        _carry(total)


@bare
def _carry(total: Ints) -> None:
    """Bring every limb but the last into 32 bits; the last then has the sign of the sum."""
    for limb in range(_LIMBS - 1):
        total[limb + 1] += total[limb] >> 32
        total[limb] &= _LOW_32
    total[_ADDITIONS] = 0


@bare
def float_sum(total: Ints) -> int:
    """Return the code of a sum, rounded to the nearest float."""
    if total[_UNDEFINED] != 0 or (total[_POSITIVE] != 0 and total[_NEGATIVE] != 0):
        return NAN
    if total[_POSITIVE] != 0:
        return _INFINITY
    if total[_NEGATIVE] != 0:
        return _code(_INFINITY, True)
    _carry(total)
    negative = bool(total[_LIMBS - 1] < 0)
    if negative:
        _negate(total)
    code = _code(_rounded(total), negative)
    if negative:
        _negate(total)
    return code


@bare
def _negate(total: Ints) -> None:
    for limb in range(_LIMBS):
        total[limb] = -total[limb]
    _carry(total)


@bare
def _code(magnitude: int, negative: bool) -> int:
    """Return the code of the float whose bits but for the sign are `magnitude`."""
    return ~magnitude if negative else magnitude


@bare
def _rounded(total: Ints) -> int:
    """Return the bits of the float nearest to a sum that is not negative."""
    top = _LIMBS - 1
    while top > 0 and total[top] == 0:
        top -= 1
    highest = 32 * top
    while total[top] >> (highest - 32 * top + 1) != 0:
        highest += 1
    if highest <= 52:  # the sum in units of 2**-1074 is its own bits: subnormal, or of the smallest normal exponent
        return int(total[0] | (total[1] << 32))
    lowest = highest - 52
    if lowest >= 2046:
        return _INFINITY
    limb, shift = lowest >> 5, lowest & 31
    mantissa = (total[limb] >> shift) | (total[limb + 1] << (32 - shift))
    if shift > 11:
        mantissa |= total[limb + 2] << (64 - shift)
    half = (total[(lowest - 1) >> 5] >> ((lowest - 1) & 31)) & 1
    bits = ((highest - 52) << 52) + mantissa
    if half != 0 and (mantissa & 1 != 0 or _has_below(total, lowest - 1)):
        bits += 1
    return int(bits)


@bare
def _has_below(total: Ints, bit: int) -> bool:
    """Whether any bit of a sum below `bit` is set."""
    limb = bit >> 5
    if total[limb] & ((1 << (bit & 31)) - 1) != 0:
        return True
    lower = 0
    while lower < limb and total[lower] == 0:
        lower += 1
    return lower < limb
