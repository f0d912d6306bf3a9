"""The report in a real browser: it fits the screen, loads nothing and breaks no rule of its own."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typing_extensions import override

from command_line import FEBRUARY, JANUARY
from given_work import open_work
from lumos.core.controllers.import_controller import ImportController
from lumos.core.controllers.report_controller import ReportController
from lumos.core.controllers.snapshot_controller import SnapshotController
from lumos.core.runtime.project import Project
from lumos.core.runtime.unit_of_work import UnitOfWork
from lumos.feature.migration.page import Line, Listed, migration_page

pytestmark = pytest.mark.service

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
HOSTILE = "<script>document.title='owned'</script><img src=/pixel onerror=alert(1)>"
WIDTHS = (400, 768, 1280)
# The frame has the policy of its own document; the probe around it reads how it was laid out.
PROBE = """<!doctype html><title>probe</title><body style="margin:0"><script>
const found = [];
const widths = {widths};
function look(frame, width) {{
  const page = frame.contentDocument;
  const tile = page.querySelector('.tile');
  found.push({{
    width,
    overflow: page.documentElement.scrollWidth - width,
    title: page.title,
    scripts: page.scripts.length,
    images: page.images.length,
    styled: frame.contentWindow.getComputedStyle(tile).borderRadius,
    headings: page.querySelectorAll('h1, h2').length,
  }});
  if (found.length === widths.length)
    document.body.dataset.found = JSON.stringify(found);
}}
for (const width of widths) {{
  const frame = document.createElement('iframe');
  frame.style = `border:0;width:${{width}}px;height:3000px`;
  frame.onload = () => look(frame, width);
  frame.src = '/report.html';
  document.body.append(frame);
}}
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on the example shop, with one dataset whose name is an attack."""
    folder = tmp_path_factory.mktemp("report")
    state = folder / "state"
    attack = json.loads(Path(FEBRUARY).read_text("utf-8"))
    attack["datasets"][0] |= {"name": HOSTILE, "documentation": {"description": HOSTILE}}
    (folder / "attack.json").write_text(json.dumps(attack))
    with open_work(state_dir=state, environment={}) as work:
        ImportController(work).run(JANUARY)
        SnapshotController(work).create()
        ImportController(work).run(str(folder / "attack.json"))
        SnapshotController(work).create()
    with UnitOfWork(Project(given_state_dir=state, environment={}, clock=lambda: NOW)) as work:
        ReportController(work).write(folder / "report.html")
    return folder / "report.html"


class Served(ThreadingHTTPServer):
    """Serves some pages and remembers what was asked for."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        self.pages = pages
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Served)
        self.server.asked.append(self.path)
        content = self.server.pages.get(self.path)
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(content or b"")

    @override
    def log_message(self, format: str, *args: object) -> None:
        pass


def chromium(*arguments: str, folder: Path) -> str:
    """Run a new Chromium that talks to nobody but the page, and return what it prints."""
    return _ran(*arguments, folder=folder).stdout


def console_of(page: Path, *, folder: Path) -> list[str]:
    """Open a page and return what the browser says about it."""
    logging = ("--enable-logging=stderr", "--v=0", "--dump-dom")
    said = _ran(*logging, page.as_uri(), folder=folder).stderr
    return [line for line in said.splitlines() if "CONSOLE" in line]


def _ran(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program = shutil.which("chromium")
    assert program, "run: make services"
    profile = folder / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    command = [program, *QUIET, f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)


def test_the_report_fits_every_width_and_runs_and_loads_nothing(page: Path, tmp_path: Path) -> None:
    probe = PROBE.format(widths=json.dumps(WIDTHS)).encode()
    with Served({"/": probe, "/report.html": page.read_bytes()}) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        printed = chromium("--virtual-time-budget=20000", "--dump-dom", address, folder=tmp_path)
        server.shutdown()

    match = re.search(r'data-found="([^"]*)"', printed)
    assert match, printed[:2000]
    found = json.loads(match[1].replace("&quot;", '"'))
    assert sorted(each["width"] for each in found) == sorted(WIDTHS)
    for each in found:
        assert each["overflow"] <= 0, each
        assert each["title"] == "Catalog report, 1 March 2026"
        assert each["scripts"] == each["images"] == 0
        assert each["styled"] == "10px"
        assert each["headings"] > 8
    assert "&lt;script&gt;" in page.read_text("utf-8"), "the attack is on the page, as text"
    assert set(server.asked) <= {"/", "/report.html", "/favicon.ico"}


def test_the_report_can_be_printed_and_pictured_from_a_file(page: Path, tmp_path: Path) -> None:
    picture, paper = tmp_path / "report.png", tmp_path / "report.pdf"
    chromium(f"--screenshot={picture}", "--window-size=1280,900", page.as_uri(), folder=tmp_path)
    chromium(f"--print-to-pdf={paper}", page.as_uri(), folder=tmp_path)

    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">II", content[16:24]) == (1280, 900)
    assert len(content) > 20_000, "an empty page"
    assert paper.read_bytes().startswith(b"%PDF")


def test_no_page_breaks_its_own_policy(page: Path, tmp_path: Path) -> None:
    migration = tmp_path / "migration.html"
    line = Line("ok", HOSTILE, (HOSTILE,))
    migration.write_text(
        migration_page(
            HOSTILE,
            HOSTILE,
            when=HOSTILE,
            checks={HOSTILE: [line]},
            concepts=[(HOSTILE, 1, HOSTILE)],
            lists={HOSTILE: Listed((HOSTILE,), 1)},
        )
    )
    for each in (page, migration):
        assert console_of(each, folder=tmp_path) == []

    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text("utf-8").replace("</style>", " </style>", 1), "utf-8")
    assert any("Content Security Policy" in said for said in console_of(broken, folder=tmp_path))
