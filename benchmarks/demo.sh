#!/bin/sh
# A first comparison, within minutes: the five papers' methods (fedca, fedcia, fed3cr, fediar, feddae) beside federated
# baselines and centralised references, on real MovieLens-100K where a source answers, else on the embedded demo world.
# One seed and few rounds; fed3cr and feddae are made small, because the papers' sizes need hours on a laptop.
set -eu
data=ml-100k rounds=10
if ! fedrec data get ml-100k; then
    echo "NOTICE: no source of MovieLens-100K answered; the synthetic world 'demo' is compared instead." >&2
    data=demo
fi
out="runs/demo-$data"
fedrec compare ease gfcf fedspectral fedease fedmf fedavg fedca fedcia fed3cr fediar feddae --data "$data" --seeds 0 \
    --rounds "$rounds" --evaluate-every 2 --set fed3cr.dim=16 --set fed3cr.epochs=2 --set feddae.dim=32 \
    --set feddae.epochs=4 --out "$out" "$@"
echo
echo "A page that recommends in your own browser, with what the clients of fedspectral learnt together:"
fedrec export "$out/fedspectral-seed0" --page "$out/private"
