"""Search for inputs at which a gradient is wrong: sizes, values, dtypes and layouts are drawn, and
a failure is shrunk.
"""
