"""One process in which scripts of strangers run: `Sandbox` starts it, this file run as a program is it.

QuickJS runs the scripts, as it keeps the memory limit that it is given; V8, tried with PyMiniRacer 0.14, let typed
arrays grow to thirty times the limit. But QuickJS does not look at its time limit inside of `new Array(1e9).join()` or
of a regular expression that backtracks. So it has a process of its own, which the operating system limits and ends. The
process has no environment variables and can open neither files nor sockets, and every run has a new context with
nothing in it but the language.
"""

import json
import math
import resource
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

import quickjs

# Of the processor's time, so that a busy machine is no script's fault: for the engine, and for the operating system,
# which ends the process.
TIME_LIMIT_S = 0.25
PROCESS_TIME_LIMIT_S = 1
# Of any time: whatever happens, nobody waits longer.
KILL_AFTER_S = 20.0
MEMORY_LIMIT = 16 * 1024 * 1024
# Of the process, with Python in it.
PROCESS_LIMIT = 256 * 1024 * 1024
STACK_LIMIT = 256 * 1024
MAX_RESULT = 1024 * 1024
MAX_DEPTH = 200
TIMED_OUT = ("script_timed_out", f"the script took longer than {TIME_LIMIT_S:g} s")
CALL = "(script, args) => JSON.stringify(script(...JSON.parse(args)) ?? null)"


class ScriptError(Exception):
    """Why a script has no result: `code` is for machines."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Sandbox:
    """Runs one script after another, never two at once. For one thread at a time."""

    def __init__(self) -> None:
        self._start()

    def compile(self, source: str) -> None:
        """ScriptError `script_failed` for what is no JavaScript function."""
        self._ask(source, None)

    def run(self, source: str, args: str) -> str:
        """Call the function with the arguments, a JSON array; the result as JSON. ScriptError `script_timed_out`,
        `script_out_of_memory` or `script_failed`; the next script runs all the same."""
        return self._ask(source, args)

    @property
    def process_id(self) -> int:
        return self._process.pid

    def close(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()

    def _start(self) -> None:
        self._connection, theirs = Pipe()
        with theirs:
            program = [sys.executable, "-I", str(Path(__file__)), str(theirs.fileno())]
            self._process = subprocess.Popen(program, cwd="/", env={}, pass_fds=[theirs.fileno()])
        self._connection.recv_bytes()  # it is ready: from here on only scripts take time

    def _ask(self, source: str, args: str | None) -> str:
        try:
            self._connection.send_bytes(json.dumps([source, args]).encode())
            if not self._connection.poll(KILL_AFTER_S):
                self._process.kill()
            code, text = json.loads(self._connection.recv_bytes(8 * MAX_RESULT))
        except (OSError, EOFError):
            raise self._ended() from None
        if code:
            raise ScriptError(code, text)
        return str(text)

    def _ended(self) -> ScriptError:
        """Start another process; what this one ended of."""
        self.close()
        how = self._process.returncode
        self._start()
        if how in {-signal.SIGXCPU, -signal.SIGKILL}:
            return ScriptError(*TIMED_OUT)
        return ScriptError("script_failed", f"the script ended the process that it ran in, with {how}")


def run_once(source: str, args: str | None) -> str:
    """In a context of its own. Without arguments it is compiled only."""
    context = quickjs.Context()
    context.set_memory_limit(MEMORY_LIMIT)
    context.set_max_stack_size(STACK_LIMIT)
    context.set_time_limit(TIME_LIMIT_S)
    try:
        call = context.eval(CALL)
        script = context.eval(f"({source}\n)")
        if args is None:
            return "null"
        result = call(script, args)
    except quickjs.JSException as error:
        raise ScriptError(*told(str(error))) from None
    return checked(result)


def checked(result: object) -> str:
    """Scripts may have changed what makes JSON: whoever asked must be able to read the result."""
    if not isinstance(result, str) or len(result) > MAX_RESULT:
        raise ScriptError("script_failed", f"the result is no JSON, or longer than {MAX_RESULT} characters")
    try:
        json.loads(result)
    except (ValueError, RecursionError) as error:
        raise ScriptError("script_failed", f"the result is no JSON, or nested too deeply: {error}") from None
    return result


def told(error: str) -> tuple[str, str]:
    """Code and message. Where there is no memory left for an error, QuickJS throws null."""
    message = error.partition("\n")[0]
    if message in {"null", "InternalError: out of memory"}:
        return "script_out_of_memory", f"the script needs more than {MEMORY_LIMIT} bytes"
    if message == "InternalError: interrupted":
        return TIMED_OUT
    return "script_failed", message[:500]


def limit_process() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (PROCESS_LIMIT, PROCESS_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    sys.setrecursionlimit(MAX_DEPTH)


def limit_next_run() -> None:
    """It ends even if whoever started the process is gone."""
    until_s = math.ceil(time.process_time()) + PROCESS_TIME_LIMIT_S
    resource.setrlimit(resource.RLIMIT_CPU, (until_s, resource.RLIM_INFINITY))


def serve(connection: Connection) -> None:
    """Until the other end is closed."""
    connection.send_bytes(b"ready")
    while True:
        try:
            source, args = json.loads(connection.recv_bytes())
        except EOFError:
            return
        limit_next_run()
        try:
            answer = ["", run_once(source, args)]
        except ScriptError as error:
            answer = [error.code, str(error)]
        except MemoryError:
            answer = ["script_out_of_memory", f"the script needs more than {PROCESS_LIMIT} bytes"]
        connection.send_bytes(json.dumps(answer).encode())


if __name__ == "__main__":
    limit_process()
    serve(Connection(int(sys.argv[1])))
