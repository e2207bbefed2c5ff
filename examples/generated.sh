#!/usr/bin/env bash
# For every sheet in reports/, this CPU's own, and all published ones together: generates the crate, builds,
# tests, documents and lints it offline, and holds its binary against sim: or cpu on random matrix sets.
# On stdout comes a line for each crate.
#
#     examples/generated.sh [SETS] [SHEET…]      100000 sets for each instruction unless said otherwise
#
# `cpu` stands for this CPU's sheet, and `all` for those in reports/ in one crate, whose instructions are
# those of the others and get a hundredth of the sets. Without sheets it is these two and each in reports/:
# about an hour on two cores, half of it for Blackwell.
set -euo pipefail
cd "$(dirname "$0")/.."
sets=${1:-100000}
sheets=("${@:2}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --release --locked
# A copy: what is built here meanwhile does not matter.
mmaprobe=$work/mmaprobe
cp target/release/mmaprobe "$mmaprobe"

# generated CRATE GENERATE-ARGUMENTS…: a crate that has to pass everything.
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
    ) >&2
}

# held CRATE DEVICE SETS [SHEET]: the crate's binary against a device.
held() {
    "$mmaprobe" validate --device "$2" --against "exec:$work/target/release/$1${4:+ $4}" --sets "$3" \
        >"$work/table"
    awk -F '│' -v crate="$1" -v device="$2" -v sets="$3" '
        $5 ~ / equal/ { instructions++; dot_adds += $4 }
        END {
            printf "%s holds against %s: %d instructions, %d sets each, %d dot-adds, 0 mismatches\n",
                crate, device, instructions, sets, dot_adds
        }' "$work/table"
}

own() {
    "$mmaprobe" characterize --device cpu --record "$work/cpu.rec" >"$work/cpu.yaml"
    generated cpu-model "$work/cpu.yaml" --evidence "$work/cpu.rec"
    held cpu-model cpu "$sets"
}

together() {
    generated mma-models reports/*.yaml
    local sheet name
    for sheet in reports/*.yaml; do
        name=$(basename "$sheet" .yaml)
        held mma-models "sim:$name" $(((sets + 99) / 100)) "$name"
    done
}

if [ "${#sheets[@]}" -eq 0 ]; then
    sheets=(all cpu reports/*.yaml)
fi
for sheet in "${sheets[@]}"; do
    name=$(basename "$sheet" .yaml)
    case $name in
    all) together ;;
    cpu) own ;;
    *)
        generated "${name//_/-}-model" "$sheet"
        held "${name//_/-}-model" "sim:$name" "$sets"
        ;;
    esac
done
echo "all generated crates hold"
