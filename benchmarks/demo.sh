#!/bin/sh
# A first comparison: on real MovieLens-100K where a source answers, else on the embedded demo world.
set -eu
data=ml-100k rounds=20
if ! fedrec data get ml-100k; then
    echo "NOTICE: no source of MovieLens-100K answered; the synthetic world 'demo' is compared instead." >&2
    data=demo
fi
out="runs/demo-$data"
fedrec compare ease gfcf fedspectral fedease fedmf fedavg fcf --data "$data" --rounds "$rounds" --evaluate-every 2 \
    --out "$out" "$@"
echo
echo "A page that recommends in your own browser, with what the clients of fedspectral learnt together:"
fedrec export "$out/fedspectral-seed0" --page "$out/private"
