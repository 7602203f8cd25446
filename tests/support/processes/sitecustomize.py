"""Python imports this in each process that tests start. It replaces ``exec`` in ``dataclasses`` to save CPU time.

The end of the process does not look for garbage. ``dataclasses`` compiles up to six functions for each class,
1400 in a run of pytest. Later processes take the code that earlier ones have compiled from the same text.

Measured on two shared cores of an AMD EPYC with CPython 3.11, two runs each. The module ``plugin/test_run_file.py``
takes 11.2 s of CPU with this file and 13.5 s without it. A process without our plugin, such as
``pytest --version``, takes .04 s more with it.
"""

import atexit
import contextlib
import gc
import marshal
import os
import sys
from _blake2 import blake2b  # of the interpreter; hashlib loads OpenSSL

FILE = f"{os.path.dirname(__file__)}/__pycache__/dataclasses.{sys.implementation.cache_tag}"  # noqa: PTH120
MOST = 6000  # texts, from which on those of old classes are too many


class Compiled:
    """Runs text as ``exec`` does, and keeps its code."""

    def __init__(self):
        self.code, self.new = {}, False
        with contextlib.suppress(OSError, EOFError, ValueError, TypeError), open(FILE, "rb") as file:  # noqa: PTH123
            self.code = marshal.load(file)
        atexit.register(self.keep)

    def run(self, text, *scopes):
        """Run a text in these scopes."""
        name = blake2b(text.encode(), digest_size=16).digest()
        if name not in self.code:  # as bytes: a process reads the code of all classes, and runs that of a few
            self.code[name], self.new = marshal.dumps(compile(text, "<string>", "exec")), True
        exec(marshal.loads(self.code[name]), *scopes)

    def keep(self):
        """Write the code for later processes; several of them may do so at once."""
        if not self.new or len(self.code) > MOST:
            return
        with contextlib.suppress(OSError):
            with open(f"{FILE}.{os.getpid()}", "wb") as file:  # noqa: PTH123
                marshal.dump(self.code, file)
            os.replace(file.name, FILE)  # noqa: PTH105


class Finder:
    """Finds ``dataclasses``, whose texts are then run by ``Compiled``."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        """As every finder of modules; None for other modules."""
        if name != "dataclasses":
            return None
        sys.meta_path.remove(cls)
        spec = next(filter(None, (one.find_spec(name, path, target) for one in sys.meta_path)), None)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module.exec = Compiled().run

        spec.loader.exec_module = exec_module
        return spec


atexit.register(gc.freeze)
sys.meta_path.insert(0, Finder)
