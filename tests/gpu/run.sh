#!/bin/bash
# Tests that need a GPU, then measurements. Without a GPU it ends with 3. `cargo xtask cuda pack` puts
# this script next to its programs; it needs no network and no cargo, and for some steps Python.
#
#   bash run.sh [RESULTS [STEP...]]     steps: tests lost profile torch fig04 demo; all by default
#
# RESULTS is a folder for logs and numbers, by default $OUT or ./gpu-results. Each step has a time
# limit. After a failed step the others still run; the exit code is then 1.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
results=${1:-${OUT:-$PWD/gpu-results}}
shift
steps=${*:-tests lost profile torch fig04 demo}
mkdir -p "$results" && results=$(cd "$results" && pwd) || exit 2
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
say() { echo "== $*" | tee -a "$results/summary.txt"; }
: > "$results/summary.txt"

# === CUDA's libraries: from $GPU_LIB, from Python's packages, from the system ===
folders=()
[ -n "${GPU_LIB:-}" ] && folders+=("$GPU_LIB")
while read -r folder; do folders+=("$folder"); done < <(python3 - 2>/dev/null <<'PY'
import glob, sys
for path in sys.path:
    for folder in glob.glob(path + "/nvidia/*/lib"):
        print(folder)
PY
)
folders+=(/usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib /usr/lib/x86_64-linux-gnu)
folders+=(/usr/local/nvidia/lib64 /usr/local/nvidia/lib)
path=
for name in libcublas.so.13 libcublasLt.so.13 libcurand.so.10 libcudart.so.13 libnvrtc.so.13; do
    found=
    for folder in "${folders[@]}"; do
        [ -e "$folder/$name" ] && found=$folder && break
    done
    if [ -n "$found" ]; then
        case ":$path:" in *":$found:"*) ;; *) path=${path:+$path:}$found ;; esac
    elif ! ldconfig -p 2>/dev/null | grep -q "$name"; then
        say "$name is missing; GPU_LIB names its folder"
        exit 2
    fi
done
# The driver's library, if the loader does not find it.
for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/lib/wsl/lib; do
    [ -e "$folder/libcuda.so.1" ] && path=${path:+$path:}$folder && break
done
export LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# Without xz tar cannot read it, but Python can.
tar -xJf "$here/programs.tar.xz" -C "$work" 2>/dev/null ||
    python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' \
        "$here/programs.tar.xz" "$work" || exit 2

# === the GPU ===
{ date -u +%FT%TZ; nvidia-smi; nproc; grep -m1 'model name' /proc/cpuinfo; } > "$results/machine.txt" 2>&1
if ! nvidia-smi -L > /dev/null 2>&1; then
    say "this machine has no GPU (nvidia-smi finds none): nothing was run"
    exit 3
fi
say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader | head -1)"

failed=0
# step NAME SECONDS COMMAND...: runs it with a time limit, its output into NAME.log.
step() {
    local name=$1 limit=$2 begin=$SECONDS code
    shift 2
    case " $steps " in *" $name "*) ;; *) return ;; esac
    timeout --kill-after=10 "$limit" "$@" > "$results/$name.log" 2>&1
    code=$?
    say "$name: exit $code after $((SECONDS - begin)) s"
    [ $code -eq 0 ] || { failed=1; tail -n 15 "$results/$name.log"; }
}

export SWITCHYARD_GPU=required SWITCHYARD_ZOO=$here/zoo
gpu="$work/gpu --nocapture --test-threads=1"
step tests 180 $gpu
# Ends the use of GPUs by its process, so it runs in its own.
step lost 60 $gpu --ignored

case " $steps " in *" profile "* | *" torch "* | *" fig04 "*)
    python3 "$here/zoo.py" --out "$work/resnets" > "$results/zoo.log" 2>&1 ||
        { say "zoo.py failed"; tail -n 5 "$results/zoo.log"; failed=1; } ;;
esac
# Batches 1 to 10 and 32 of ResNet-50, 101 and 152 with exits, in f32 and in half precision.
step profile 240 "$work/switchyard" profile --config "$work/resnets/profile.toml" \
    --batches 1,2,3,4,5,6,7,8,9,10,32 --seconds 150 --accuracy 0 --out "$results/profile.json"
step torch 200 python3 "$here/torch_resnets.py" --zoo "$work/resnets" --out "$results/torch.json"
step fig04 300 python3 "$here/fig04.py" --switchyard "$work/switchyard" --zoo "$work/resnets" \
    --policies "$here/policies" --profile "$results/profile.json" --out "$results/fig04.json"
step demo 120 "$work/switchyard" demo --device cuda:0 --policies "$here/policies" --zoo "$here/zoo" \
    --profiles "$work/profiles" --seconds 4
cat "$results/summary.txt"
exit $failed
