"""Looking for inputs at which a gradient is wrong: sizes, values, dtypes and layouts are drawn, a
failure is shrunk.
"""
