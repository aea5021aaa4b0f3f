"""A module that never finishes its import."""

import time

time.sleep(1000)
