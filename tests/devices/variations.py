"""examples/device.py with something changed: python3 variations.py MODE [SEED].

It offers the example's dot4, as a 2x2 matrix of results.
"""
import os, random, sys, time

mode = sys.argv[1]
example = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "device.py")
arithmetic, protocol = open(example).read().split("# The protocol")
exec(arithmetic)

INSTRUCTION |= {"m": 2, "n": 2}
exact, asked = dot_add, 0
chance = random.Random(sys.argv[2] if sys.argv[2:] else 0)


def dot_add(c, a, b):
    global asked
    place = asked % 4
    asked += 1
    d = exact(c, a, b)
    if mode == "chance":
        return d ^ chance.randrange(2)
    if mode == "noise":
        return d ^ (chance.randrange(500) == 0)
    if mode == "place":
        return d ^ (place == 3)
    if mode == "place-of-subnormals":
        # Two of the units are cheaper: they flush the results that are subnormal.
        return d & 0x80000000 if place > 1 and d & 0x7F800000 == 0 else d
    if mode == "slow":
        time.sleep(0.0005)
    return d


if mode == "other-formats":
    INSTRUCTION |= {"c": "fp16", "d": "fp16"}
elif mode == "other-name":
    INSTRUCTION |= {"name": "dot4-of-another"}
if mode == "second-fails":
    # The example answers a second instruction, which it does not know, with an error.
    protocol = protocol.replace("[INSTRUCTION]", '[INSTRUCTION, INSTRUCTION | {"name": "dot5"}]')
exec("#" + protocol)
