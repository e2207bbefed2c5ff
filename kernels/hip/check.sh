#!/usr/bin/env bash
# Compiles the kernel for every Matrix Core instruction of AMD GPUs and looks at what it became: the one
# instruction that the catalogue names, once. Needs no GPU.
#
# Debian's clang 19 knows gfx908, gfx90a and gfx942. For gfx950 it is the clang in the package ziglang
# of PyPI (100 MiB), kept in target/hip-tools, and the disassembler that comes with Rust.
#
# Then ROCm's own run-time compiler, where its library is installed: what it makes of the same texts,
# through the code that uses it, is what `cargo test --features hip --test hip` looks at.
#
# Exit codes: 0 it holds, at least for what could be checked; 1 it does not; 69 there is no compiler,
# nothing was checked.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v clang-19 >/dev/null || ! command -v llvm-objdump-19 >/dev/null; then
    echo "NOT RUN: clang-19 and llvm-19 are not installed, so no HIP kernel was compiled" >&2
    exit 69
fi
# With --workspace for the reason that kernels/cuda/check.sh has.
cargo build --quiet --locked --workspace --example hip_kernels
check=("${CARGO_TARGET_DIR:-target}/debug/examples/hip_kernels")
CLANG=clang-19 OBJDUMP=llvm-objdump-19 "${check[@]}" gfx908 gfx90a gfx942

# What knows gfx950.
version=0.17.1
tools=target/hip-tools
zig=$tools/ziglang-$version/ziglang/zig
if [ ! -x "$zig" ]; then
    rm -rf "$tools" && mkdir -p "$tools"
    if ! timeout 600 python3 -m pip download --quiet --disable-pip-version-check --no-deps \
        --only-binary=:all: --platform manylinux_2_12_x86_64 -d "$tools" "ziglang==$version"; then
        echo "NOT RUN for gfx950: clang 19 does not know it, and ziglang $version cannot be had from PyPI" >&2
        exit 0
    fi
    python3 - "$tools" "$zig" <<'PYTHON'
import glob, os, sys, zipfile
tools, zig = sys.argv[1:]
wheel, = glob.glob(tools + "/*.whl")
zipfile.ZipFile(wheel).extract("ziglang/zig", os.path.dirname(os.path.dirname(zig)))
os.chmod(zig, 0o755)
os.remove(wheel)
PYTHON
fi
objdump=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/llvm-objdump
[ -x "$objdump" ] || rustup component add llvm-tools >/dev/null 2>&1 || true
if [ ! -x "$objdump" ]; then
    echo "NOT RUN for gfx950: Rust's llvm-tools cannot be had here" >&2
    exit 0
fi
CLANG="$zig clang" OBJDUMP=$objdump "${check[@]}" gfx950
