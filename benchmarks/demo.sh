#!/bin/sh
# A first comparison: on real MovieLens-100K where a source answers, else on the embedded demo world.
set -eu
data=ml-100k rounds=20
if ! fedrec data get ml-100k; then
    echo "NOTICE: no source of MovieLens-100K answered; the synthetic world 'demo' is compared instead." >&2
    data=demo
fi
exec fedrec compare ease gfcf fedspectral fedease fedmf fedavg fcf --data "$data" --rounds "$rounds" --evaluate-every 2 \
    --out "runs/demo-$data" "$@"
