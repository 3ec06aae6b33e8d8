#!/usr/bin/env python3
"""Tests the examples of a README that show what a pass does: readme.py AMPCC README.md

A block that begins with `// ampcc ARGS` is a module; the block after it is what ampcc makes of it.
UPDATE=1 in the environment rewrites the second blocks.
"""
import os, pathlib, re, subprocess, sys

PAIR = re.compile(r"(```amp\n// ampcc ([^\n]*)\n(.*?)```\n.*?```amp\n)(.*?)(```\n)", re.S)


def main(exe, path):
    failed = 0

    def check(pair):
        nonlocal failed
        head, args, module, want, tail = pair.groups()
        run = subprocess.run([exe, "--emit=ir", *args.split(), "-"], input=module,
                             capture_output=True, text=True)
        if run.returncode != 0 or (run.stdout != want and "UPDATE" not in os.environ):
            failed += 1
            print(f"FAIL {path}: ampcc {args} writes\n{run.stdout}{run.stderr}")
        return head + (want if run.returncode else run.stdout) + tail

    text = pathlib.Path(path).read_text()
    new, count = PAIR.subn(check, text)
    if "UPDATE" in os.environ and new != text:
        pathlib.Path(path).write_text(new)
    print(f"{count} examples, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
