"""The Flower runtime: the same methods over a network. The only place that imports flwr.

letters     what crosses the wire, as plain values
roster      which node hosts which clients, in the server's order
inspection  whether an upload has the shape it must have
federation  the server's side of a round: a Runtime for the round loop
serve       a run on the server: folder, roster, loop, result
share       a node's data: its clients, what they learn from and are judged on
store       a node's own files: private state, answers already given
node        the node's side of a round
grid        letters       what crosses the wire, as plain values; envelope, records: how they become bytes
    roster        which node hosts which clients, in the server's order
    inspection    whether an upload has the shape it must have
    federation    the server's side of a round: a Runtime for the round loop
    job, rules, serve, outcome   a run on the server: folder, roster, loop, result
    share, store, node           a node's data, its own files, its side of a round
    worker, resident             a process that stays on a node, so that imports are paid once
    grid          letters over Flower's grid
    server_app, client_app, bundle   what Flower starts and ships
    processes, flower            Flower's processes: start, watch, stop
    loopback      ``fedrec run --runtime flower``: a whole federation on one machine
    credentials, catalogue, steps, recommending   ``fedrec deploy``: separate machines
"""
