"""Examining a custom operator: is its gradient right, does it keep to the rules, does it run natively?

`finding` gets from what the user named to operators, `examples` finds inputs that they take, each file in `checks`
holds them to one kind of promise, and `command` is `python -m app check`.
"""
