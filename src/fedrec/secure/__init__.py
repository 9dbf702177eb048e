"""Sums that nobody can look into: ring, masks, shares, neighbour graphs, the protocol as pure steps.

The parts fit together like this::

    layout = Layout((Field("items", (1682, 16), bound=clip, noise=sigma),), summands=1000)
    rules = neighbourhood(1000, dropout=0.1, colluding=0.05).rules
    plan = Plan.of(run, round, names, layout, rules)          # server; members check it against their Policy

    part = Member(name, key, directory, policy).join(plan)    # each member, once per attempt (participant.py)
    server = Aggregator(plan, directory)                      # part.advertise() -> server.receive(...); server.close()
    ...                                                       # -> part.share, part.mask, part.confirm, part.unmask
    server.total().fields                                     # or TooFew, WrongSum: repeat as attempt + 1
"""
