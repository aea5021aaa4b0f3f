"""From a problem to a verdict: backward's gradient is compared with the tape's and with
differences.
"""
