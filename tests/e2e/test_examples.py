"""The examples for clusters: they parse, their commands are ours, and each task finds its shard."""

import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from callmark.cli.run import build_parser, shard_of_this_process

EXAMPLES = Path(__file__).parents[2] / "examples"
SLURM = EXAMPLES / "slurm.sbatch"
JOB = yaml.safe_load((EXAMPLES / "k8s-job.yaml").read_text("utf-8"))


def slurm_words() -> list[str]:
    text = SLURM.read_text("utf-8").replace("\\\n", " ")
    return shlex.split(next(line for line in text.splitlines() if line.startswith("callmark run")))


def job_words() -> list[str]:
    return JOB["spec"]["template"]["spec"]["containers"][0]["command"]


def test_the_slurm_script_is_a_script():
    subprocess.run(["bash", "-n", str(SLURM)], check=True)
    assert "#SBATCH --array=0-7" in SLURM.read_text("utf-8")


@pytest.mark.parametrize("words", [slurm_words(), job_words()], ids=["slurm", "k8s"])
def test_the_commands_of_the_examples_are_ours(words):
    assert words[:2] == ["callmark", "run"]
    assert build_parser().parse_args(words[2:]).num_shards == "auto"


def test_every_task_of_an_array_is_one_shard():
    """Also where the array does not begin at 0 or goes in steps."""
    for tasks in (range(8), range(3, 11), range(10, 26, 2)):
        given = {
            "SLURM_ARRAY_TASK_COUNT": str(len(tasks)),
            "SLURM_ARRAY_TASK_MIN": str(tasks[0]),
            "SLURM_ARRAY_TASK_STEP": str(tasks.step),
        }
        found = [shard_of_this_process({**given, "SLURM_ARRAY_TASK_ID": str(at)}) for at in tasks]
        assert found == [(len(tasks), shard) for shard in range(len(tasks))]


def test_every_pod_of_the_job_is_one_shard():
    spec = JOB["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    given = {entry["name"]: entry["value"] for entry in container["env"]}
    assert int(given["JOB_COMPLETIONS"]) == spec["completions"]
    assert spec["completionMode"] == "Indexed"
    found = [
        shard_of_this_process({**given, "JOB_COMPLETION_INDEX": str(pod)})
        for pod in range(spec["completions"])
    ]
    assert found == [(8, shard) for shard in range(8)]
