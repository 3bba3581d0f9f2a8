"""Identity of a process among many machines: host, batch job, number and a random token.

A process number alone does not name a process where several hosts share a folder.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Mapping
from typing import Any

_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "SUBMITIT_LOCAL_JOB_ID")
_SHORT = 24


def host() -> str:
    """Return the host's name; ``ATTNSCOPE_HOST`` replaces it where containers share one."""
    return os.environ.get("ATTNSCOPE_HOST") or socket.gethostname()


def job() -> str:
    """Return the batch job of this process, as ``1234`` or ``1234_5``; empty without one."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID")
    if array:
        return f"{array}_{os.environ.get('SLURM_ARRAY_TASK_ID', '0')}"
    found = [os.environ[name] for name in _JOBS if os.environ.get(name)]
    return found[0] if found else ""


def this_process() -> dict[str, Any]:
    """Return host, job and process number, and a token that no other holder has."""
    return {"host": host(), "job": job(), "pid": os.getpid(), "token": secrets.token_hex(8)}


def unique_prefix() -> str:
    """Return host, process number and a random token as the start of a file's name."""
    name = re.sub(r"[^A-Za-z0-9.]", "", host())[:_SHORT]
    return f"{name}-{os.getpid()}-{secrets.token_hex(4)}"


def describe(process: Mapping[str, Any] | None) -> str:
    """Return a process in words: "process 12 on node-3 (job 1234_5)"."""
    if process is None:
        return "process unknown"
    where = f" on {process['host']}" if process.get("host") else ""
    batch = f" (job {process['job']})" if process.get("job") else ""
    return f"process {process.get('pid', 'unknown')}{where}{batch}"
