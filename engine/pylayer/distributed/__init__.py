"""Ranks that exchange Tensors: `paddle.distributed` in one process.

A `World` runs a function once for each of its ranks, in turns: a rank runs until it has to wait for
others. So nothing depends on timing, and a deadlock is detected immediately. Under an observer that
records everything (`pylayer.watch`), the exchange between ranks is part of the graph: a collective
is one operation with an input and an output per rank.
"""
