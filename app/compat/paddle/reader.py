"""paddle.reader"""

from app.compat.missing import missing
from app.data.readers import buffered, cache, chain, compose, firstn, map_readers, shuffle

__all__ = ["buffered", "cache", "chain", "compose", "firstn", "map_readers", "shuffle"]

__getattr__ = missing(__name__)
