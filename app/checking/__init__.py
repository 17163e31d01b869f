"""Checking a custom operator: is its gradient right, does it keep to the rules, does it run natively?

`operators` finds the operators that the user named, `examples` finds inputs that they run on, each file in `checks` has
one kind of checks, and `command` is `opsmith check`.
"""
