"""The commands of ``python -m scikitplot.agent``, one function each.

`console` is what they print with, `demo` the demo, `trails` what reads a trail (``verify``,
``replay``), `runs` what is done with the runs of a store.
"""
