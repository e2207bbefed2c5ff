"""Devices that misbehave, one for each mode: python3 misbehave.py MODE.

Each offers `dot1` (m = n = k = 1, all e2m1), and answers with D = C unless its mode says otherwise.
"""
import json, os, signal, sys, time

mode = sys.argv[1]
stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
dot1 = {"name": "dot1", "m": 1, "n": 1, "k": 1, "a": "e2m1", "b": "e2m1", "c": "e2m1", "d": "e2m1"}


def say(raw):
    stdout.write(raw if isinstance(raw, bytes) else json.dumps(raw).encode() + b"\n")
    stdout.flush()


def sleep():
    time.sleep(1000)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def hello(instructions=None, **more):
    return {"protocol": 1, "name": "misbehaving", "instructions": instructions or [dot1], **more}


def without(field):
    return [{key: value for key, value in dot1.items() if key != field}]


HELLOS = {
    "hello-no-json": b"Welcome to the accelerator!\n",
    "hello-array": b"[1, 2]\n",
    "hello-no-utf8": b'{"protocol":1,"name":"\xff\xfe"}\n',
    "hello-cut": b'{"protocol":1,"na\n',
    "hello-empty": b"\n",
    "hello-error": {"error": "the board is\x1b[31m busy"},
    "hello-without-protocol": {"name": "x", "instructions": [dot1]},
    "hello-without-name": {"protocol": 1, "instructions": [dot1]},
    "hello-terminal-name": hello(name="\x1b[2J"),
    "hello-without-instructions": {"protocol": 1, "name": "x"},
    "hello-no-instructions": {"protocol": 1, "name": "x", "instructions": []},
    "hello-without-k": hello(without("k")),
    "hello-without-d": hello(without("d")),
    "hello-instruction-number": hello([7]),
    "version-2": {"protocol": 2, "fields": "unknown"},
    "version-text": hello(protocol="1"),
    "format-unknown": hello([dot1 | {"b": "posit8"}]),
    "format-scale": hello([dot1 | {"c": "ue8m0"}]),
    "scale-unknown": hello([dot1 | {"scale": "fp32", "block": 1}]),
    "scale-no-block": hello([dot1 | {"scale": "ue8m0"}]),
    "block-no-scale": hello([dot1 | {"block": 1}]),
    "block-zero": hello([dot1 | {"scale": "ue8m0", "block": 0}]),
    "block-uneven": hello([dot1 | {"k": 48, "scale": "ue8m0", "block": 32}]),
    "m-zero": hello([dot1 | {"m": 0}]),
    "k-negative": hello([dot1 | {"k": -4}]),
    "k-fraction": hello([dot1 | {"k": 1.5}]),
    "m-large": hello([dot1 | {"m": 1 << 21}]),
    "mk-overflows": hello([dot1 | {"m": 1 << 62, "k": 1 << 62}]),
    "k-huge": hello([dot1 | {"k": 1 << 80}]),
    "names-twice": hello([dot1, dot1]),
    "name-empty": hello([dot1 | {"name": ""}]),
    "hello-long": json.dumps(hello()).encode() + b"\nmore",
}

if mode == "dies-at-once":
    sys.exit(3)
elif mode == "silent-at-hello":
    sleep()
elif mode == "floods":
    while True:
        say(b"x" * 65536)
elif mode == "closes-output":
    os.close(1)
    sleep()

stdin.readline()
if mode == "dies-before-hello":
    die()
elif mode == "dies-in-hello":
    say(b'{"protocol":1,')
    sys.exit(0)
elif mode == "silent-in-hello":
    say(b'{"protocol":1,')
    sleep()
say(HELLOS.get(mode, hello()))
if mode in HELLOS:
    sleep()
elif mode == "never-reads":
    sleep()
elif mode == "closes-input":
    os.close(0)
    sleep()
elif mode == "replies-unread":
    stdin.readline()
    os.close(0)
    say(b'{"ok":true}\n' + bytes(1 << 20))
    sleep()

runs = 0
while True:
    line = stdin.readline()
    request = json.loads(line) if line else {"op": "bye"}
    if request["op"] == "bye":
        if mode == "leftover-at-bye":
            say(b"!")
        elif mode == "stays-at-bye":
            sleep()
        sys.exit(0)
    count = request["count"]
    if mode == "dies-in-run":
        die()
    a, b, c = stdin.read(count), stdin.read(count), stdin.read(count)
    runs += 1
    if mode == "dies-before-reply":
        sys.exit(7)
    elif mode == "dies-in-reply":
        say(b'{"ok":')
        sys.exit(7)
    elif mode == "dies-in-payload":
        say(b'{"ok":true}\n' + c[:-1])
        die()
    elif mode == "silent":
        sleep()
    elif mode == "silent-in-reply":
        say(b'{"ok":')
        sleep()
    elif mode == "short-payload":
        say(b'{"ok":true}\n' + c[:-1])
        sleep()
    elif mode == "long-payload":
        say(b'{"ok":true}\n' + c + b"\0")
    elif mode == "late-long-payload":
        # The rest of the payload comes when the next request is already under way.
        say((b"\0\0" if runs > 1 else b"") + b'{"ok":true}\n' + c)
    elif mode == "late-space":
        say((b" " if runs > 1 else b"") + b'{"ok":true}\n' + c)
    elif mode == "reply-no-json":
        say(b"Segmentation fault\n" + c)
    elif mode == "reply-no-utf8":
        say(b'{"ok":true,"note":"\xff"}\n' + c)
    elif mode == "reply-endless":
        while True:
            say(b"a" * 4096)
    elif mode == "reply-not-ok":
        say({"ok": False})
    elif mode == "reply-both":
        say({"ok": True, "error": "?"})
    elif mode == "reply-error":
        say({"error": "the array is\x1b[31m\non fire"})
    elif mode == "reply-error-object":
        say({"error": {"code": 12}})
    elif mode == "outside-format":
        say(b'{"ok":true}\n' + c[:-1] + b"\x1f")
    elif mode == "dribbles":
        # Slow, but never silent: legitimate.
        for byte in b'{"ok":true}\n' + c:
            time.sleep(0.1)
            say(bytes([byte]))
    elif mode == "orphan-holds-output":
        if os.fork() == 0:
            os.close(2)  # or whoever reads the tests' output waits, too
            time.sleep(30)
            os._exit(0)
        os._exit(5)
    elif mode == "counts":
        # Not deterministic: every run answers something else.
        say(b'{"ok":true}\n' + bytes([runs % 16]) * count)
    else:
        say(b'{"ok":true}\n' + c)
