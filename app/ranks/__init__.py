"""Ranks: processes that mpiexec started, which train one network and share each batch.

`world` has the collective operations of mpi4py; a single process imports nothing of MPI. `data_parallel` rewrites a
Program for one rank, with collectives as operators, and `shares` runs it on the rank's rows. `ending` ends all ranks
when one of them fails.
"""
