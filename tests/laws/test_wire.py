"""Law 6: wire encoding round-trips, and private values cannot be encoded."""

from __future__ import annotations

import numpy as np
import pytest
from small_runs import simulator

from fedrec.core import wire
from fedrec.core.method import Keys
from fedrec.core.state import flatten


@pytest.fixture
def one_round(method, tiny):
    sim = simulator(method, tiny)
    block = sim.people.block
    download = sim.method.download(sim.server, block.clients)
    update = sim.method.local_update(sim.private, download, block, Keys(3, 1))
    return sim, download, update


@pytest.mark.parametrize("rows", ["dense", "rows"])
def test_law_6_uploads_and_downloads_round_trip(one_round, rows):
    sim, download, update = one_round
    form = wire.Form(rows, "float64")
    for kind, message in ((sim.method.Download, download), (sim.method.Upload, update.upload)):
        data = wire.encode(message, form)
        back = wire.decode(kind, data)
        arrays, again = flatten(message)[0], flatten(back)[0]
        if rows == "rows":
            for name in arrays:
                np.testing.assert_allclose(again[name], arrays[name], rtol=1e-6, err_msg=name)
        assert wire.encode(back, form) == data
        header = int.from_bytes(data[:8], "little")
        bookkeeping = sum(a.nbytes for n, a in wire.message_arrays(message, form) if wire.is_bookkeeping(n))
        assert len(data) - 8 - header == wire.payload(message, form) + bookkeeping


def test_law_6_private_values_cannot_be_encoded(one_round):
    sim, _, update = one_round
    with pytest.raises(wire.WireError, match="does not leave"):
        wire.encode(update.private)
    with pytest.raises(wire.WireError, match="does not leave"):
        wire.encode(sim.server)


def test_law_6_a_message_of_another_type_is_refused(one_round):
    sim, download, _update = one_round
    data = wire.encode(download)
    with pytest.raises(wire.WireError, match="expected"):
        wire.decode(sim.method.Upload, data)
    with pytest.raises(wire.WireError, match="not a message"):
        wire.decode(sim.method.Upload, b"nonsense")
