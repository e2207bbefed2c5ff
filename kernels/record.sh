#!/usr/bin/env bash
# On a machine with a GPU: characterises it, keeps the evidence, and settles what is disputed.
#
#     kernels/record.sh STEP…      with MMAPROBE=target/release/mmaprobe, DEVICE=cuda:0, OUT=reports/measured
#
# DEVICE=hip:0 is the first GPU of AMD's, for a binary that was built with --features hip.
#
#   devices    what is attached, and what of the catalogue it accepts
#   sheet      every instruction characterised and validated on 1,000,000 dot-adds; OUT/NAME.yaml
#   evidence   the same questions recorded, with few random ones so that the recording stays small;
#              OUT/NAME.rec, which CI holds against OUT/NAME.yaml
#   validate   the sheet against the GPU on SETS (1,000,000) fresh random matrix sets an instruction
#   disputes   the published models and each disputed alternative against the GPU: who is right, and
#              the smallest input that shows it; OUT/NAME.disputes.txt
#              (the sheet answers them too, as evidence: zeros by the probe zeros/exponents, floor by
#              subnormals/floor, fp4-* by precision/pairs, NaN payloads by nans/*)
#   sanitize   compute-sanitizer over one short characterisation, of NVIDIA's GPUs
#
# It needs the driver alone (for AMD's GPUs, ROCm's HIP runtime): `mmaprobe` is built elsewhere and
# brought along. NAME is the GPU's. Steps can be run one by one, and INSTRUCTION='wgmma*' narrows them,
# where time is short.
set -uo pipefail
mmaprobe=${MMAPROBE:-target/release/mmaprobe}
device=${DEVICE:-cuda:0}
out=${OUT:-reports/measured}
sets=${SETS:-1000000}
only=()
[ -n "${INSTRUCTION:-}" ] && only=(--instruction "$INSTRUCTION")
mkdir -p "$out"

# The GPU's name and architecture, from the table that `devices` prints.
line=$("$mmaprobe" devices | tr -d '│' | tr -s ' \n' ' ' | grep -o "$device .*" | head -1)
case "$line" in
    "$device NVIDIA"* | "$device AMD"*) ;;
    *) echo "record.sh: $device is not attached: $("$mmaprobe" devices | tail -8)" >&2; exit 3 ;;
esac
name=$(sed -E "s/^$device (NVIDIA |AMD )?([^(]*) \(.*/\2/; s/[^A-Za-z0-9]+/-/g" <<<"$line" | tr '[:upper:]' '[:lower:]')
target=$(grep -oE 'target (sm_[0-9]+a?|gfx[0-9a-f]+)' <<<"$line" | head -1 | cut -d' ' -f2)
echo "$device is $name ($target)" >&2

status=0
run() {
    echo "== $*" >&2
    local started=$SECONDS
    "$@"
    local code=$?
    echo "== exit code $code after $((SECONDS - started)) s" >&2
    [ $code -eq 0 ] || status=$code
    return 0
}

for step in "${@:-devices}"; do
    case "$step" in
        devices)
            run "$mmaprobe" devices
            run "$mmaprobe" instructions --device "$device"
            ;;
        sheet)
            run "$mmaprobe" characterize --device "$device" "${only[@]}" --date "$(date -u +%F)" >"$out/$name.yaml"
            ;;
        evidence)
            run "$mmaprobe" characterize --device "$device" "${only[@]}" --validate 1000 \
                --record "$out/$name.rec" --force >"$out/$name.evidence.yaml"
            # The sheet of the step before stands; this one is to compare with.
            run diff <(grep -E '^- name|^  (status|algorithm)' "$out/$name.yaml") \
                <(grep -E '^- name|^  (status|algorithm)' "$out/$name.evidence.yaml")
            ;;
        validate)
            run "$mmaprobe" validate --device "$device" --against "sheet:$out/$name.yaml" "${only[@]}" \
                --sets "$sets" --seed 7
            ;;
        disputes)
            {
                run "$mmaprobe" validate --device "$device" --against "sim:$target" "${only[@]}" --sets "$sets"
                for dispute in zeros floor exact-sums fp4-34 fp4-36 fp4-37; do
                    run "$mmaprobe" validate --device "$device" --against "sim:$target+$dispute" "${only[@]}" \
                        --sets "$sets"
                done
            } 2>&1 | tee "$out/$name.disputes.txt"
            # At most one of them can hold.
            status=0
            ;;
        sanitize)
            for tool in memcheck initcheck racecheck synccheck; do
                run compute-sanitizer --tool $tool --error-exitcode 9 \
                    "$mmaprobe" characterize --device "$device" --instruction "${INSTRUCTION:-*k16*f16.f16*}" \
                    --validate 0 >/dev/null
            done
            ;;
        *)
            echo "record.sh: no step '$step': devices, sheet, evidence, validate, disputes, sanitize" >&2
            exit 2
            ;;
    esac
done
exit $status
