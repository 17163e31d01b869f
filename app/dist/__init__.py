"""Many processes that train one network: a world of ranks, and the pass that rewrites a Program for it.

`world` knows the other ranks and how messages reach them (MPI); alone, it is a world of one that does nothing.
`parallel` puts collective operators into a Program written for one process; engines run them as any others. By rows
the Program stays as it is, and the compiled engine is told which of its threads are a rank's (`running`).
`pieces` does so, too, such that the number of ranks changes no bit of what comes of it.

Nothing is imported here: what asks for the rank alone, as samplers do, need not wait for the rest.
"""
