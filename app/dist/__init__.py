"""Many processes that train one network: a world of ranks, and the pass that rewrites a Program for it.

`world` knows the other ranks and how messages reach them (MPI); alone, it is a world of one that does nothing.
`parallel` puts collective operators into a Program written for one process; engines run them as any others.

Nothing is imported here: what asks for the rank alone, as samplers do, need not wait for the rest.
"""
