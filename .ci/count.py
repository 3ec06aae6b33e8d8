#!/usr/bin/env python3
"""count.py BUILD...: adds up the test logs of these builds; names what failed; exits 1 if any did."""
import json
import os
import sys

KIND = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}
total = {"passed": 0, "failed": 0, "skipped": 0}
for build in sys.argv[1:]:
    path = os.path.join(build, "meson-logs", "testlog.json")
    if not os.path.exists(path):
        print("%s: no test ran" % build)
        total["failed"] += 1
        continue
    for line in open(path):
        test = json.loads(line)
        kind = KIND.get(test["result"], "failed")
        total[kind] += 1
        if kind == "failed":
            print("FAILED: %s: %s" % (build, test["name"]))
print("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % total)
sys.exit(1 if total["failed"] or not total["passed"] else 0)
