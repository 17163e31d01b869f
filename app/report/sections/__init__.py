"""The sections of the report, a file for each: from what is known of a run to a piece of the page, if it is known."""
