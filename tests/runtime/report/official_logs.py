"""Tests the logs that a run writes in the forms of the official ResNet programs and of MLPerf: official_logs.py TOY

The functions are those tests of the official programs (specs/resnet.md 5.2) that have a meaning here."""
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

toy = os.path.abspath(sys.argv[1])
BASE = ["--data-dir=data", "--model-dir="]
FILES = ["--benchmark-logger-type=BenchmarkFileLogger", "--benchmark-log-dir=logs/deep"]


def run(*flags, status=0, **env):
    done = subprocess.run([toy, *BASE, *flags], capture_output=True, text=True, env={**os.environ, **env})
    assert done.returncode == status, (flags, done)
    return done


def refused(says, *flags):
    done = run(*flags, status=2)
    assert says in done.stderr, done.stderr


def metrics():
    with open("logs/deep/metric.log", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def run_info():
    with open("logs/deep/benchmark_run.log", encoding="utf-8") as file:
        text = file.read()
    assert text.count("\n") == 1 and text.endswith("\n")
    return json.loads(text)


def unknown_logger_type():
    refused("takes BaseBenchmarkLogger, BenchmarkFileLogger or", "--benchmark_logger_type=foo")
    refused("nothing is uploaded", "--benchmark_logger_type=BenchmarkBigQueryLogger")
    refused("needs --benchmark-log-dir", "--benchmark_logger_type=BenchmarkFileLogger")
    assert "alone" in run("--max-train-steps=1", "--benchmark-log-dir=unused").stderr
    assert not os.path.exists("unused")


def unknown_hook():
    refused("takes LoggingTensorHook, ProfilerHook", "--hooks=LoggingTensorHook,foo")
    refused("writes to the model folder", "--hooks=ProfilerHook")


def evaluation_result_is_accuracy_then_loss():
    """The file logger makes its folder and appends a line with all fields for each metric."""
    before = datetime.datetime.now(datetime.timezone.utc)
    run("--train-epochs=2", *FILES)
    lines = metrics()
    assert [(m["name"], m["global_step"]) for m in lines] == [("accuracy", 26), ("loss", 26), ("accuracy", 51),
                                                              ("loss", 51)], lines
    for m in lines:
        assert list(m) == ["name", "value", "unit", "global_step", "timestamp", "extras"]
        assert isinstance(m["value"], (int, float)) and m["unit"] is None and m["extras"] == []
        at = datetime.datetime.strptime(m["timestamp"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=datetime.timezone.utc)
        assert before <= at <= datetime.datetime.now(datetime.timezone.utc)
    run("--train-epochs=1", *FILES)
    assert len(metrics()) == 6


def not_a_number_is_not_logged():
    done = run("--train-epochs=1", "--hooks=LoggingMetricHook", "--inject=nan@0:image", *FILES)
    assert "metric cross_entropy at step 0 is nan, which is not logged" in done.stderr, done.stderr
    assert [m["name"] for m in metrics()][:2] == ["learning_rate", "train_accuracy"]


def run_info_file():
    run("--max-train-steps=3", "--train-epochs=1.5", "--benchmark-test-id=a \"test\"", *FILES, TF_B="2", TF_A="1=1",
        NOT_TF="x")
    info = run_info()
    assert info["model_name"] == "toy" and info["dataset"] == {"name": "fashion_mnist"}
    assert info["test_id"] == "a \"test\"" and info["test_environment"] == "local"
    names = [v["name"] for v in info["tensorflow_environment_variables"]]
    assert names == sorted({n for n in os.environ if n.startswith("TF_")} | {"TF_A", "TF_B"}), names
    assert {"name": "TF_A", "value": "1=1"} in info["tensorflow_environment_variables"]
    machine = info["machine_config"]
    assert machine["cpu_info"]["num_cores"] == os.cpu_count() and machine["cpu_info"]["mhz_per_cpu"] >= 0
    assert machine["gpu_info"] == {"count": 0}
    with open("/proc/meminfo", encoding="ascii") as file:
        assert machine["memory_total"] == 1024 * int(file.readline().split()[1])
    assert 0 < machine["memory_available"] <= machine["memory_total"]
    assert set(info["tensorflow_version"]) == {"version", "git_hash"}
    datetime.datetime.strptime(info["run_date"], "%Y-%m-%dT%H:%M:%S.%fZ")
    assert info["run_parameters"] == [
        {"name": "batch_size", "long_value": 8}, {"name": "dtype", "string_value": "fp16"},
        {"name": "num_workers", "long_value": 1}, {"name": "synthetic_data", "bool_value": "False"},
        {"name": "train_epochs", "float_value": 1.5}], info["run_parameters"]
    run("--max-train-steps=3", "--train-epochs=2", "--use-synthetic-data", *FILES)
    info = run_info()
    assert info["dataset"] == {"name": "fashion_mnist-synthetic"} and info["test_id"] is None
    assert {"name": "synthetic_data", "bool_value": "True"} in info["run_parameters"]
    assert {"name": "train_epochs", "long_value": 2} in info["run_parameters"]


def status_success_and_failure():
    run("--max-train-steps=3", *FILES)
    assert run_info()["run_status"] == "success"
    assert "Benchmark run status: success" in run("--max-train-steps=3", "--benchmark-test-id=x").stdout
    run("--train-epochs=20", "--inject=inf@3:image[0]", "--trap=first-nonfinite", status=1, *FILES)
    assert run_info()["run_status"] == "failure"
    child = subprocess.Popen([toy, *BASE, "--train-epochs=1000000", "--epochs-between-evals=1000000", "--log-steps=1", *FILES],
                             stdout=subprocess.PIPE, text=True)
    while not child.stdout.readline().startswith("BenchmarkMetric"):
        pass
    assert run_info()["run_status"] == "running"
    child.send_signal(signal.SIGTERM)
    child.communicate()
    assert child.returncode == 128 + signal.SIGTERM
    assert run_info()["run_status"] == "failure"


def examples_per_second():
    """The timer is armed after 5 global steps; then every 100 steps come the average and the
    current rate."""
    run("--train-epochs=13", "--epochs-between-evals=13", "--hooks=examplespersecondhook", *FILES)
    rates = [m for m in metrics() if "examples" in m["name"]]
    assert [(m["name"], m["global_step"]) for m in rates] == [
        (name, step) for step in (106, 206, 306) for name in ("average_examples_per_sec", "current_examples_per_sec")]
    assert rates[0]["value"] == rates[1]["value"] > 0


def logging_metric_hook():
    run("--train-epochs=1", "--hooks=LoggingMetricHook", *FILES)
    assert [(m["name"], m["global_step"]) for m in metrics()][:3] == [
        ("cross_entropy", 1), ("learning_rate", 1), ("train_accuracy", 1)]
    assert len(metrics()) == 5


def base_logger_prints():
    out = run("--train-epochs=1", "--benchmark_logger_type=BaseBenchmarkLogger").stdout
    (info,) = re.findall("^Benchmark run: (.*)$", out, re.M)
    assert json.loads(info)["run_status"] == "running"
    assert [json.loads(m)["name"] for m in re.findall("^Benchmark metric: (.*)$", out, re.M)] == ["accuracy", "loss"]
    assert "Benchmark" not in run("--train-epochs=1").stdout


def logging_tensor_hook():
    out = run("--train-epochs=10", "--epochs-between-evals=10", "--hooks=LoggingTensorHook").stdout
    lines = re.findall(r"^cross_entropy = \S+, learning_rate = \S+, train_accuracy = \S+( \(\d+\.\d{3} sec\))?$", out,
                       re.M)
    assert [bool(line) for line in lines] == [False, True, True], out


def profiler_hook():
    subprocess.run([toy, "--data-dir=data", "--model-dir=m", "--train-epochs=41", "--epochs-between-evals=41",
                    "--hooks=ProfilerHook", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    assert sorted(n for n in os.listdir("m") if "timeline" in n) == ["timeline-1002.json", "timeline-2.json"], os.listdir("m")
    with open("m/timeline-2.json", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    assert [e["name"] for e in events if e["ph"] == "X"] == ["k0_forward", "k1_backward", "k2_update", "k3_interrupt"]
    end = 0
    for e in events[1:]:
        assert e["dur"] >= 0 and abs(e["ts"] - end) < .01, events
        end = e["ts"] + e["dur"]


def time_history():
    """7 batches with a line every 3 give three time stamps (the start and two windows); also checks
    the keys of the statistics."""
    out = run("--train-epochs=1", "--max-train-steps=7", "--log-steps=3").stdout
    lines = re.findall(r"^BenchmarkMetric: \{'global step':(\d+), 'time_taken': (\d+\.\d{6}),'examples_per_second': "
                       r"(\d+\.\d{6})\}$", out, re.M)
    assert [int(step) for step, _, _ in lines] == [3, 6], out
    stats = json.loads(out[out.index("Run stats:\n") + 11:].splitlines()[0])
    assert list(stats) == ["eval_loss", "eval_acc", "train_loss", "train_acc", "step_timestamp_log",
                           "train_finish_time", "avg_exp_per_second"]
    stamps = [re.fullmatch(r"BatchTimestamp<batch_index: (\d+), timestamp: (\d+\.\d+)>", s).groups()
              for s in stats["step_timestamp_log"]]
    assert [int(step) for step, _ in stamps] == [1, 3, 6]
    rate = 8 * 3 * 2 / (float(stamps[2][1]) - float(stamps[0][1]))
    assert abs(stats["avg_exp_per_second"] / rate - 1) < .05 and stats["train_finish_time"] >= float(stamps[2][1])
    assert 0 <= stats["train_acc"] <= 1
    out = run("--train-epochs=1", "--max-train-steps=7", "--log-steps=3", "--skip-eval").stdout
    assert "eval_loss" not in out and "Run stats:\n{\"step_timestamp_log\"" in out
    refused("must not be negative", "--log-steps=-1")


def mlperf():
    run("--train-epochs=4", "--epochs-between-evals=2", "--stop-threshold=2", "--mlperf-log=ml")
    run("--train-epochs=4", "--epochs-between-evals=2", "--stop-threshold=.3", "--mlperf-log=ml")
    with open("ml", encoding="utf-8") as file:
        text = file.read().splitlines()
    assert all(line.startswith(":::MLLOG {") for line in text)
    lines = [json.loads(line[9:]) for line in text]
    for line in lines:
        assert list(line) == ["namespace", "time_ms", "event_type", "key", "value", "metadata"]
        assert {"file", "lineno"} <= set(line["metadata"]) and isinstance(line["time_ms"], int)
    assert all(a["time_ms"] <= b["time_ms"] for a, b in zip(lines, lines[1:]))
    start = ["init_start", "submission_benchmark", "seed", "global_batch_size", "train_samples", "eval_samples", "opt_name",
             "sgd_opt_base_learning_rate", "sgd_opt_learning_rate_warmup_epochs", "sgd_opt_weight_decay", "init_stop",
             "run_start"]
    cycle = ["block_start", "block_stop", "tracked_stats", "eval_start", "eval_accuracy", "eval_stop"]
    keys = [line["key"] for line in lines]
    first = len(start + cycle + cycle) + 1
    assert keys[:first] == start + cycle + cycle + ["run_stop"], keys
    assert keys[first:] == start + cycle + ["run_stop"]
    value = {line["key"]: line["value"] for line in lines}
    assert (value["global_batch_size"], value["train_samples"], value["eval_samples"]) == (8, 203, 50)
    assert value["opt_name"] == "sgd" and value["tracked_stats"]["throughput"] > 0
    stops = [line for line in lines if line["key"] == "run_stop"]
    assert [s["metadata"]["status"] for s in stops] == ["aborted", "success"]
    types = {line["key"]: line["event_type"] for line in lines}
    for key, kind in types.items():
        assert kind == {"start": "INTERVAL_START", "stop": "INTERVAL_END"}.get(key.split("_")[-1], "POINT_IN_TIME")
    blocks = [line["metadata"]["first_epoch_num"] for line in lines if line["key"] == "block_start"]
    assert blocks[0] == 1 and 2.9 < blocks[1] < 3.1
    assert ":::MLLOG" in run("--max-train-steps=1", "--mlperf-log=-", "-q").stdout
    run("--max-train-steps=1", "--mlperf-log=none/ml", status=3)


for test in (unknown_logger_type, unknown_hook, evaluation_result_is_accuracy_then_loss, not_a_number_is_not_logged,
             run_info_file, status_success_and_failure, examples_per_second, logging_metric_hook, base_logger_prints,
             logging_tensor_hook, profiler_hook, time_history, mlperf):
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.mkdir("data")
        subprocess.run([toy, "--write-data", "data"], check=True)
        test()
        print("ok", test.__name__)
