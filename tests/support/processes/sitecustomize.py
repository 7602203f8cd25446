"""Python imports this in each process that tests start: its end does not look for garbage, which takes .1 s of CPU."""

import atexit
import gc

atexit.register(gc.freeze)
