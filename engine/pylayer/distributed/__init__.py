"""Ranks that exchange Tensors: `paddle.distributed` in one process.

A `World` runs a function once for each of its ranks, in turns: a rank runs until it has to wait for
others. So nothing depends on timing, and a deadlock is detected at once. What the ranks send each
other is part of the graph where everything is recorded (`pylayer.watch`): a collective is one
operation with an input and an output per rank.
"""
