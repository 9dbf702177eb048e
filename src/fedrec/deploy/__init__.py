"""The same methods over a network.

messages/     what crosses the wire, as plain values and as bytes, and whether it is what it must be
server/       who takes part, a Runtime for the round loop, the fold, a run's job and result
node/         a node's data, files and answers; recommendations made where the history is
flower/       Flower's side: the only place that imports flwr
admission     which key may use which name; credentials makes keys and certificates
processes     processes on this machine: start, watch, stop; watching waits for a run
loopback      ``fedrec run --runtime flower``: a whole federation on one machine
steps         ``fedrec deploy``: server, register, node, run on separate machines
"""
