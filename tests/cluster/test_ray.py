"""Ray with three nodes on loopback that share no folder: kills, hangs, restarts, large units."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from attnscope.errors import AttnscopeError, UsageError
from attnscope.runs.host import host
from attnscope.training.engine import ray_cluster
from attnscope.training.engine.ray_cluster import RayWorkers, base_units
from attnscope.training.imitation import Imitation
from attnscope.training.objective import Likelihood
from attnscope.training.unit import Training
from sweeping import LONG, Watching, grouped, singles

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # nodes listen on loopback alone
ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

STORE = 80 * 2**20  # the smallest that Ray accepts
KILLS = 20 if LONG else 4


@pytest.fixture(scope="module")
def cluster():
    """Start a head that trains nothing and two nodes of one CPU."""
    common = {"object_store_memory": STORE, "node_ip_address": "127.0.0.1"}
    made = cluster_utils.Cluster(
        initialize_head=True, head_node_args=common | {"num_cpus": 0, "include_dashboard": False}
    )
    made.common = common
    for _ in range(2):
        made.add_node(num_cpus=1, **common)
    ray.init(address=made.address, log_to_driver=False, namespace="attnscope")
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def trainer(cluster, tmp_path):
    with RayWorkers(tmp_path, hang_seconds=60) as trainer:
        yield trainer


class Recorded(RayWorkers):
    """Keeps the names of the units that are sent out."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.submitted = []

    def submit(self, group):
        self.submitted.append([unit.folder(self.workspace).name for unit in group])
        return super().submit(group)


def test_bytes_are_those_of_a_run_here_and_finished_units_are_not_sent_out_again(
    cluster, tmp_path, expect
):
    units = [*grouped(10), *singles(4)]
    progress = Watching()
    with Recorded(tmp_path) as trainer:
        trained = trainer.train(units, progress)
        expect(trained, units)
        assert sorted(map(len, trainer.submitted)) == [1, 1, 1, 1, 5, 5]
        assert sorted(progress.done) == sorted(unit.folder.name for unit in trained)
        trainer.train(units)
        assert len(trainer.submitted) == 6
    for unit in trained:
        assert unit.folder.finished() == (True, [])


def test_node_killed_at_moments_counted_by_reports_changes_no_byte(cluster, tmp_path, expect):
    """Each time so many reports have come, one of the nodes is killed and another one added."""
    units = [*grouped(10, steps=60), *singles(KILLS, steps=60)]
    kills = []

    def kill(count):
        if len(kills) < KILLS and count % 2 == 0:
            node = sorted(cluster.worker_nodes, key=lambda node: node.unique_id)[0]
            cluster.remove_node(node, allow_graceful=False)
            cluster.add_node(num_cpus=1, **cluster.common)
            kills.append(count)

    progress = Watching(kill)
    with RayWorkers(tmp_path, hang_seconds=60, mail_seconds=0.1) as trainer:
        expect(trainer.train(units, progress), units)
    assert kills


def test_hung_worker_is_given_up_and_what_it_says_later_changes_nothing(
    cluster, tmp_path, expect, monkeypatch
):
    """A process is stopped as it starts; given up, it wakes, and trains to its end."""
    units = singles(3, steps=60)
    stopped, woken = [], []
    take = ray_cluster._Sweep._take

    def stop_first(self, messages, flight, order, message):
        take(self, messages, flight, order, message)
        if message["kind"] == "started" and not stopped:
            stopped.extend((message["process"]["pid"], messages))
            os.kill(stopped[0], signal.SIGSTOP)

    def wake(messages, force):  # Ray would kill it.
        if stopped and messages is stopped[1]:
            woken.append(True)
            os.kill(stopped[0], signal.SIGCONT)

    monkeypatch.setattr(ray_cluster._Sweep, "_take", stop_first)
    monkeypatch.setattr(ray, "cancel", wake)
    progress = Watching()
    with RayWorkers(tmp_path, hang_seconds=15, mail_seconds=0.1) as trainer:
        trained = trainer.train(units, progress)
        expect(trained, units)
    assert woken == [True]
    lost = f"was lost with process {stopped[0]} on {host()} (not heard of for 15 s)"
    assert any(lost in note for note in progress.notes)
    assert sorted(progress.done) == sorted(unit.folder.name for unit in trained)
    for unit in trained:
        assert unit.folder.finished() == (True, [])


DRIVER = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from sweeping import Watching, singles
from attnscope.training.engine.ray_cluster import RayWorkers

class Dying(Watching):
    def finished(self, unit):
        super().finished(unit)
        if len(self.done) == 3:
            os.kill(os.getpid(), 9)

RayWorkers(Path(sys.argv[1]), address=sys.argv[2]).train(singles(8), Dying())
"""


def test_killed_driver_started_again_trains_nothing_finished_again(cluster, tmp_path, expect):
    helpers = os.path.dirname(sys.modules["sweeping"].__file__)
    command = [sys.executable, "-c", DRIVER, str(tmp_path), cluster.address, helpers]
    killed = subprocess.run(command, check=False)
    assert killed.returncode == -signal.SIGKILL
    done = {path.parent.name for path in tmp_path.glob("units/*/done.json")}
    assert len(done) == 3
    units = singles(8)
    with Recorded(tmp_path) as trainer:
        expect(trainer.train(units), units)
        sent = {name for names in trainer.submitted for name in names}
    assert len(sent) == 5
    assert not sent & done


def test_unit_larger_than_the_object_store_comes_back_whole(trainer, tmp_path, expect):
    [small] = singles(1)
    # Two LSTMs of some 12 million numbers, as last and as best weights.
    model = small.model.model_copy(update={"embedding": 1200, "hidden": 1200})
    unit = small.model_copy(
        update={
            "model": model,
            "training": Training(steps=1, batch_size=2, evaluate_at=(), examples=2, stored=1),
        }
    )
    [trained] = trainer.train([unit])
    size = sum(path.stat().st_size for path in trained.folder.path.rglob("*.safetensors"))
    assert size > STORE
    expect([trained], [unit])


def test_base_unit_travels_with_the_unit_that_needs_it(trainer, expect, tmp_path):
    [base] = singles(1)
    terms = (Likelihood(), Imitation(base=base, which="last"))
    training = base.training.model_copy(update={"objective": terms})
    adversary = base.model_copy(update={"training": training})
    assert base_units(adversary) == [base]
    name = base.folder(tmp_path).name
    with pytest.raises(AttnscopeError, match=rf"{host()}: The base unit {name} has not been"):
        trainer.train([adversary])
    trainer.train([base])
    [trained] = trainer.train([adversary])
    assert trained.folder.finished() == (True, [])


def test_nodes_of_other_versions_are_refused(cluster, tmp_path):
    with RayWorkers(tmp_path) as trainer:
        trainer.train(singles(1))
        path = next(tmp_path.glob("units/*/environment.json"))
        changed = json.loads(path.read_text()) | {"torch": "2.12.0"}
        path.write_text(json.dumps(changed))
        singles(1)[0].folder(tmp_path).finish()
        with pytest.raises(UsageError, match=r"torch 2\.12\.0 and .*--mixed"):
            trainer.train(singles(2))


def test_no_cluster_at_an_address_is_one_sentence(tmp_path, monkeypatch):
    def init(**options):
        raise ConnectionError("Could not find any running Ray instance.")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(UsageError, match=r"--on ray: no cluster was found at 10\.0\.0\.1:6379"):
        RayWorkers(tmp_path, address="10.0.0.1:6379")


def test_ray_that_cannot_be_started_here_is_one_sentence(tmp_path, monkeypatch):
    def init(**options):
        raise RuntimeError("No port is free.")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(UsageError, match=r"could not be started on this host: No port is free\."):
        RayWorkers(tmp_path)


def test_notes_of_a_node_are_shown(trainer, tmp_path):
    [unit] = singles(1)
    folder = unit.folder(tmp_path)
    trainer.train([unit])
    for path in folder.path.rglob("*.safetensors"):
        path.unlink()
    (folder.path / "done.json").unlink()
    known = json.loads((folder.path / "environment.json").read_text())
    (folder.path / "environment.json").write_text(json.dumps(known | {"torch": "2.12.0"}))
    (folder.path / "checkpoint-00000001.safetensors").write_bytes(b"")
    progress = Watching()
    trainer.train([unit], progress)
    assert any("begun under other versions (torch 2.12.0 and" in note for note in progress.notes)


def test_head_is_started_on_loopback_alone(tmp_path, monkeypatch):
    given, ended = {}, []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **options: given.update(options))
    monkeypatch.setattr(ray, "shutdown", lambda: ended.append(True))
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "10.0.0.1")
    with pytest.raises(UsageError, match="more than this host"):
        RayWorkers(tmp_path)
    assert ended == [True]
    assert given["_node_ip_address"] == "127.0.0.1"


def test_absence_of_ray_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(AttnscopeError, match=r"pip install 'attnscope\[ray\]'"):
        RayWorkers(tmp_path)
