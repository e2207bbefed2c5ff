#!/usr/bin/env python3
"""An example device: mmaprobe characterize --device "exec:python3 examples/device.py"

It offers one instruction, dot4: d = c + a0*b0 + a1*b1 + a2*b2 + a3*b3, summed exactly and
rounded once. To make a device of your own, describe your instruction below and replace dot_add().
"""
import json, math, struct, sys
from fractions import Fraction

NAME = "example-dot4"
INSTRUCTION = {"name": "dot4", "m": 1, "n": 1, "k": 4, "a": "fp16", "b": "fp16", "c": "fp32", "d": "fp32"}


def dot_add(c, a, b):
    """One element of D = A*B + C: bit patterns in (c; a row of A; a column of B), bit pattern out.

    The exact sum, rounded toward zero to fp32; subnormals are kept, 2**128 and above is infinity.
    Every NaN is 0x7FFFFFFF. A sum of zero is +0, or -0 if all its summands are -0.
    """
    summands = [number(x, 2) * number(y, 2) for x, y in zip(a, b)] + [number(c, 4)]  # floats hold them exactly
    special = [x for x in summands if not math.isfinite(x)]
    if special:
        x = sum(special)  # NaN, if there is one or if the infinities disagree
        return 0x7FFFFFFF if math.isnan(x) else 0x7F800000 if x > 0 else 0xFF800000
    total = sum(map(Fraction, summands))
    if total == 0:
        return 0x80000000 if all(math.copysign(1, x) < 0 for x in summands) else 0
    return round_toward_zero(total)


def round_toward_zero(x):
    """The fp32 bit pattern of a Fraction that is not zero and has a power of two as denominator."""
    sign, x = (0x80000000, -x) if x < 0 else (0, x)
    exponent = max(x.numerator.bit_length() - x.denominator.bit_length(), -126)
    if exponent > 127:
        return sign | 0x7F800000
    significand = int(x * Fraction(2) ** (23 - exponent))  # int() cuts off the rest
    return sign | ((exponent + 126 << 23) + significand)  # the hidden bit adds the 1 missing in 126


def number(bits, size):
    return struct.unpack({2: "<e", 4: "<f"}[size], bits.to_bytes(size, "little"))[0]


# The protocol: nothing below knows what is computed.
CODES = {"fp64": "Q", "fp32": "I", "tf32": "I", "fp16": "H", "bf16": "H"}  # the others: one byte, "B"


def read(elements, kind):
    code = f"<{elements}{CODES.get(kind, 'B')}"
    return struct.unpack(code, sys.stdin.buffer.read(struct.calcsize(code)))


def run(instruction, dot_add, count):
    m, n, k, *kinds = (instruction[x] for x in "mnkabcd")
    a, b, c = (read(count * size, kind) for size, kind in zip((m * k, k * n, m * n), kinds))
    d = [dot_add(c[(p * m + i) * n + j], a[(p * m + i) * k:][:k], b[(p * n + j) * k:][:k])
         for p in range(count) for i in range(m) for j in range(n)]
    reply({"ok": True}, struct.pack(f"<{len(d)}{CODES.get(kinds[3], 'B')}", *d))


def reply(line, payload=b""):
    sys.stdout.buffer.write(json.dumps(line).encode() + b"\n" + payload)
    sys.stdout.buffer.flush()


def serve(name, instructions, functions):
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["op"] == "hello":
            reply({"protocol": 1, "name": name, "instructions": instructions})
        elif request["op"] == "run" and request["instruction"] in functions:
            run(*functions[request["instruction"]], request["count"])
        else:  # the end, in any case: nobody knows how long the payload of something else is
            sys.exit(None if request["op"] == "bye" else reply({"error": f"unknown: {request}"}))


if __name__ == "__main__":
    serve(NAME, [INSTRUCTION], {INSTRUCTION["name"]: (INSTRUCTION, dot_add)})
