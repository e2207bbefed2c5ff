#!/usr/bin/env bash
# For every sheet in reports/, this CPU's own, and all published ones together: generates the crate, builds,
# tests, documents and lints it offline, and holds its binary against sim: or cpu on random matrix sets.
#
#     examples/generated.sh [SETS] [SHEET…]      100000 sets for each instruction unless said otherwise
set -euo pipefail
cd "$(dirname "$0")/.."
sets=${1:-100000}
sheets=("${@:2}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --locked
mmaprobe=$PWD/target/release/mmaprobe

# generated NAME GENERATE-ARGUMENTS…: a crate that has to pass everything.
generated() {
    local crate=$work/$1
    "$mmaprobe" generate "${@:2}" -o "$crate"
    (
        cd "$crate"
        export CARGO_NET_OFFLINE=true CARGO_TARGET_DIR=$work/target
        cargo fmt --all --check
        cargo build --release --locked
        cargo test --release --locked
        RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked
        cargo clippy --release --all-targets --locked -- -D warnings
    )
}

# held CRATE DEVICE [SHEET]: the crate's binary against a device.
held() {
    "$mmaprobe" validate --device "$2" --against "exec:$work/target/release/$1${3:+ $3}" --sets "$sets"
}

if [ "${#sheets[@]}" -eq 0 ]; then
    sheets=(reports/*.yaml)
    "$mmaprobe" characterize --device cpu --record "$work/cpu.rec" >"$work/cpu.yaml"
    generated cpu-model "$work/cpu.yaml" --evidence "$work/cpu.rec"
    held cpu-model cpu
    generated mma-models "${sheets[@]}"
    for sheet in "${sheets[@]}"; do
        name=$(basename "$sheet" .yaml)
        held mma-models "sim:$name" "$name"
    done
fi
for sheet in "${sheets[@]}"; do
    name=$(basename "$sheet" .yaml)
    generated "${name//_/-}-model" "$sheet"
    held "${name//_/-}-model" "sim:$name"
done
echo "all generated crates hold"
