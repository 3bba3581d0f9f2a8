"""Importing this is pressing Ctrl-C: every process of the group is interrupted."""

import os
import signal

os.killpg(0, signal.SIGINT)
