"""Flower's side of a deployment: the only place that imports flwr.

door            what the public port answers, and to whom
superlink       Flower's server behind that door: its other interfaces on the loopback alone
tasks           one piece of work from Flower; only the application installed here is ever run
server_process  a run on the server
node_process    a node: Flower's part of it, and the work on messages
grid, records   letters over Flower's grid
bundle          the application's name tag, whose hash server and nodes compare
commands        Flower's processes as fedrec starts them
"""

from fedrec.extras import needs

needs("flwr", "a federation over a network")
