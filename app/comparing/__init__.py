"""Operators held against each other: trained alike from many seeds, with chance told from what is not."""
