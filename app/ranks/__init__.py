"""Ranks: processes that mpiexec started, which train one network and share each batch.

`world` knows the other ranks; without mpiexec it is a world of one, and nothing of MPI is imported. `data_parallel`
rewrites a Program for one rank, with collectives as operators, and `executor` runs it. `ending` ends all ranks when
one of them fails.
"""
