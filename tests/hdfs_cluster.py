"""A real HDFS of one namenode and one datanode, for tests of the service tier.

The servers come from Hadoop's own jar of Maven Central; what they need besides is in the wheel of
PySpark, whose Hadoop has the same version.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from fetching import CACHE, fetched, kept_folder
from ports import free_port

_MAIN = "org.apache.hadoop.test.MiniDFSClusterManager"
_JUNIT = "org.junit.jupiter:junit-jupiter-api:5.11.4"
_MOCKITO = "org.mockito:mockito-core:4.11.0"
_WANTED_JARS = (
    "hadoop-client-minicluster", "junit", "opentest4j", "apiguardian", "mockito", "byte-buddy",
    "objenesis",
)  # fmt: skip
_START_SECONDS = 400
USER = "lumos"


class HdfsCluster(NamedTuple):
    namenode: str

    def put(self, path: str, content: bytes) -> None:
        self._put(path, "CREATE", content)

    def put_folder(self, root: str, folder: Path) -> None:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{root}/{path.relative_to(folder).as_posix()}", path.read_bytes())

    def forbid(self, path: str) -> None:
        """Let nobody but its owner look into a folder."""
        self._put(path, "SETPERMISSION", b"", permission="700")

    def _put(self, path: str, operation: str, content: bytes, **more: str) -> None:
        import httpx2

        query = {"op": operation, "user.name": USER, **more}
        where = f"{self.namenode}/webhdfs/v1/{quote(path)}"
        answer = httpx2.put(where, params=query, content=content, follow_redirects=True, timeout=60)
        answer.raise_for_status()


@contextmanager
def running_hdfs() -> Iterator[HdfsCluster]:
    """Run a namenode and a datanode on this machine."""
    maven, java = shutil.which("mvn"), shutil.which("java")
    if maven is None or java is None:
        pytest.fail("Maven or Java is not installed; run: make services")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            java, "-Xmx512m", "-cp", _class_path(maven), _MAIN, "-datanodes", "1",
            "-format", "-httpport", str(port), "-nnport", str(free_port()),
            "-D", f"hadoop.proxyuser.{USER}.hosts=*",
        ]  # fmt: skip
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"HADOOP_USER_NAME": USER, "PATH": "/usr/bin:/bin"},
        )
        cluster = HdfsCluster(f"http://127.0.0.1:{port}")
        try:
            _wait(cluster, process)
            yield cluster
        finally:
            process.kill()
            process.wait()


def _class_path(maven: str) -> str:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    (client,) = jars.glob("hadoop-client-api-*.jar")
    version = re.sub(r"hadoop-client-api-|\.jar", "", client.name)
    folder = kept_folder(f"hdfs-{version}", lambda place: _fetch_jars(maven, version, place))
    return ":".join([*map(str, sorted(folder.glob("*.jar"))), f"{jars}/*"])


def _fetch_jars(maven: str, version: str, place: Path) -> None:
    """Put the jars of the servers into a folder; asking Maven each time takes half a minute."""
    repository = CACHE / "maven"
    cluster = f"org.apache.hadoop:hadoop-client-minicluster:{version}"
    for artifact in (cluster, _JUNIT, _MOCKITO):
        transitive = "false" if artifact == cluster else "true"
        get = [maven, "-q", "-B", "dependency:get", f"-Dartifact={artifact}"]
        fetched(
            [*get, f"-Dtransitive={transitive}", f"-Dmaven.repo.local={repository}"],
            timeout=900,
        )
    for jar in repository.rglob("*.jar"):
        if jar.name.startswith(_WANTED_JARS):
            shutil.copy(jar, place)


def _wait(cluster: HdfsCluster, process: subprocess.Popen[bytes]) -> None:
    """Wait until the datanode takes a file."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            where = f"{cluster.namenode}/webhdfs/v1/?op=LISTSTATUS"
            urllib.request.urlopen(where, timeout=30).close()  # noqa: S310
            cluster.put("ready/ready", b"")
        except (OSError, ValueError, RuntimeError):
            time.sleep(0.5)
        except Exception as error:
            if type(error).__module__.startswith("httpx2"):
                time.sleep(0.5)
                continue
            raise
        else:
            return
    raise RuntimeError("HDFS did not start")
