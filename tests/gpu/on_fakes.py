"""Tests plans.c without a GPU: on_fakes.py PLANS FAKES

On the fakes of tests/cuda, whose plans are the very loops that it compares with: every form is run, repeats and is exact. A key that is
none is refused."""
import json, os, subprocess, sys

PLANS, FAKES = map(os.path.abspath, sys.argv[1:3])
SHAPE = "f16 n2 h8 w8 c16 k24 r3 s3 u1,1 p1,1,1,1"
FORMS = ["fprop", "dgrad", "wgrad", "fprop_stats", "relu_fprop_stats", "relu_wgrad", "dgrad_bn", "dgrad_bn_add", "dgrad_bn_short", "add_fprop_stats",
         "dual_fprop_stats"]


def run(keys, part, parts):
    done = subprocess.run([PLANS, "3", str(part), str(parts)], input="\n".join(keys) + "\n", capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": FAKES, "FAKE_CUDA_KERNELS": "/dev/null"})
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


keys = [f"{form} {SHAPE}" for form in FORMS] + ["wgrad bf16 n3 h7 w5 c8 k8 r3 s1 u2,2 p1,1,0,0 g4"]
seen = []
for part in range(2):
    status, results, err = run(keys, part, 2)
    assert status == 0, err
    for result in results:
        assert result["results"] and all(r["equal"] and r["apart"] == 0 for r in result["results"]), result
    seen += [result["key"] for result in results]
assert set(seen) == set(keys) and len(results) > 0, seen
status, results, err = run(["fprop f16 n0"], 0, 1)
assert status == 3 and not results and "no key" in err, (status, results, err)
