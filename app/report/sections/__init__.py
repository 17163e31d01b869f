"""The sections of the report, one per file. Each makes a part of the page from a run's record."""
