#!/usr/bin/env python3
"""A stand-in for a gfx950 where there is none:
mmaprobe onboard cdna4 --isa gfx950 --device "exec:python3 examples/standin.py"

It offers three of CDNA4's instructions by name, shape and formats. What they compute here is made
up, to have something to find: it says nothing about AMD's hardware. The README walks through it.
"""
from device import serve

F = 26  # fraction bits kept below the largest exponent


def decoder(exponent_bits, fraction_bits):
    """From bit pattern to (sign * significand, exponent of its last bit, nominal exponent);
    None for NaN, and an infinity as a float."""
    bias, top = (1 << exponent_bits - 1) - 1, (1 << exponent_bits) - 1

    def decode(bits):
        sign = -1 if bits >> exponent_bits + fraction_bits else 1
        field, fraction = bits >> fraction_bits & top, bits & (1 << fraction_bits) - 1
        if field == top:
            return None if fraction else sign * float("inf")
        exponent = max(field, 1) - bias
        return sign * (fraction | (field > 0) << fraction_bits), exponent - fraction_bits, exponent

    return decode


FP32 = decoder(8, 23)
FP16, BF16 = (list(map(decoder(*bits), range(1 << 16))).__getitem__ for bits in ((5, 10), (8, 7)))


def fused(decode):
    """d = c + sum of a*b: every summand is cut to F bits below the largest exponent, toward zero, and
    the sum is rounded to fp32, to nearest even. NaNs are 0x7fc00000; a sum of zero is +0."""

    def dot_add(c, a, b):
        c, a, b = FP32(c), list(map(decode, a)), list(map(decode, b))
        if not all(type(x) is tuple for x in (c, *a, *b)):
            return special(c, a, b)
        terms = [(x[0] * y[0], x[1] + y[1], x[2] + y[2]) for x, y in zip(a, b)] + [c]
        terms = [term for term in terms if term[0]]
        if not terms:
            return 0
        last = max(exponent for _, _, exponent in terms) - F
        return rounded(sum(cut(value, lsb - last) for value, lsb, _ in terms), last)

    return dot_add


def cut(value, shift):
    """value * 2**shift without its fraction."""
    if shift >= 0:
        return value << shift
    return value >> -shift if value > 0 else -(-value >> -shift)


def rounded(value, lsb):
    """The fp32 bit pattern of value * 2**lsb, to nearest even."""
    sign, value = (1 << 31, -value) if value < 0 else (0, value)
    shift = max(value.bit_length() - 24, -149 - lsb)
    if shift > 0:
        half = value + (1 << shift - 1)
        value, lsb = (half >> shift) - (half & (1 << shift) - 1 == 0 and half >> shift & 1), lsb + shift
    elif shift < 0:
        value, lsb = value << -shift, lsb + shift
    if value >> 24:
        value, lsb = value >> 1, lsb + 1
    if value >> 23 == 0:
        return sign | value  # subnormal, or zero
    return sign | min(lsb + 149 << 23, 254 << 23) + value if lsb <= 104 else sign | 255 << 23


def special(c, a, b):
    """The result where an operand is infinite or NaN."""
    number = lambda x: x if x is None or type(x) is float else float((x[0] > 0) - (x[0] < 0))
    pairs = [(number(x), number(y)) for x, y in zip(a, b)]
    if number(c) is None or any(None in pair for pair in pairs):
        return 0x7FC00000
    total = sum((x * y for x, y in pairs), number(c))  # 0 * inf and inf - inf are NaN
    return 0x7FC00000 if total != total else 0x7F800000 if total > 0 else 0xFF800000


def unit(k, operand, name, decode):
    """An instruction, one of whose 16 problems is asked at a time, and its function."""
    instruction = {"name": f"v_mfma_f32_4x4x{k}_16b_{name}", "m": 4, "n": 4, "k": k,
                   "a": operand, "b": operand, "c": "fp32", "d": "fp32"}
    return instruction, fused(decode)


UNITS = [unit(4, "fp16", "f16", FP16), unit(4, "bf16", "bf16", BF16), unit(1, "fp32", "f32", FP32)]
serve("gfx950-standin", [unit[0] for unit in UNITS], {unit[0]["name"]: unit for unit in UNITS})
