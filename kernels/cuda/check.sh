#!/usr/bin/env bash
# Assembles every kernel for every NVIDIA target and looks at what it became; compares the findings
# with reports/kernels.md and the catalogue, or with --write writes the report anew. Needs no GPU.
#
# NVIDIA's assembler and disassemblers come from PyPI, about 260 MiB, kept in target/cuda-tools. The
# assembler is of CUDA 12.9, the last one that knows Volta; no disassembler of that version is
# published by itself, so a newer one reads all but Volta's machine code, and Volta's an older one
# that comes with Triton.
#
# Exit codes: 0 it holds; 1 it does not; 69 the tools cannot be had, nothing was checked.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=target/cuda-tools
# package version, and what is taken from it
packages=(
    "nvidia-cuda-nvcc-cu12 12.9.86 nvidia/cuda_nvcc/bin/ptxas"
    "nvidia-cuda-nvdisasm 13.5.37 nvidia/cu13/bin/nvdisasm"
    "triton 3.0.0 triton/backends/nvidia/bin/nvdisasm"
)
for package in "${packages[@]}"; do
    read -r name version member <<<"$package"
    folder=$tools/$name-$version
    if [ ! -x "$folder/$member" ]; then
        rm -rf "$folder" && mkdir -p "$folder"
        if ! timeout 600 python3 -m pip download --quiet --disable-pip-version-check --no-deps \
            --only-binary=:all: --python-version 3.11 --implementation cp \
            --platform manylinux2014_x86_64 --platform manylinux_2_17_x86_64 \
            --platform manylinux2010_x86_64 --platform manylinux_2_12_x86_64 \
            -d "$folder" "$name==$version"; then
            echo "NOT RUN: $name $version cannot be had from PyPI, so no kernel was assembled" >&2
            exit 69
        fi
        python3 - "$folder" "$member" <<'PYTHON'
import glob, os, sys, zipfile
folder, member = sys.argv[1:]
wheel, = glob.glob(folder + "/*.whl")
zipfile.ZipFile(wheel).extract(member, folder)
os.chmod(os.path.join(folder, member), 0o755)
os.remove(wheel)
PYTHON
    fi
done

export PTXAS=$PWD/$tools/nvidia-cuda-nvcc-cu12-12.9.86/nvidia/cuda_nvcc/bin/ptxas
export NVDISASM=$PWD/$tools/nvidia-cuda-nvdisasm-13.5.37/nvidia/cu13/bin/nvdisasm
export NVDISASM_OLD=$PWD/$tools/triton-3.0.0/triton/backends/nvidia/bin/nvdisasm
check=--check
[ "${1:-}" = --write ] && check=
# With --workspace, as the tests are built: alone, the example needs fewer features of some dependencies, and
# everything would be compiled once more.
cargo build --quiet --locked --workspace --example kernels
"${CARGO_TARGET_DIR:-target}/debug/examples/kernels" $check
