"""A sync that ends early says how far it came."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import JANUARY, Lumos
from doubles.datahub_server import DataHubDouble, Fault, datahub_double

SETTINGS = "platform_config:\n  datahub:\n    gms_server: {}\n"


def losing_its_token(server: DataHubDouble, *, after: int) -> None:
    """Let a server accept some requests, and then no token any more."""
    answer, left = server.answer, [after]

    def answer_a_few(*request: object) -> tuple[int, object]:
        left[0] -= 1
        if left[0] < 0:
            server.faults.append(Fault(401, times=1_000))
            return 401, {"message": "Unauthorized to perform this action."}
        return answer(*request)  # type: ignore[arg-type]

    server.answer = answer_a_few  # type: ignore[assignment, method-assign]


def test_the_error_line_says_how_much_arrived(lumos: Lumos) -> None:
    with datahub_double() as (url, server):
        Path("lumos.yaml").write_text(SETTINGS.format(url), "utf-8")
        lumos("import", JANUARY)
        losing_its_token(server, after=12)
        ended = lumos("sync", "--all", "--output", "datahub")

    assert ended.exit_code == 3
    assert "the token is not accepted" in ended.error_line or "without a login" in ended.error_line
    assert ": Unauthorized to perform this action" in ended.error_line
    assert "sent before it ended: 1 of 1 users, " in ended.error_line
    assert "0 of 5 datasets, 0 of 3 lineage edges; run again to go on" in ended.error_line


def test_the_json_says_it_too_and_that_nothing_was_sent(lumos: Lumos) -> None:
    with datahub_double() as (url, server):
        Path("lumos.yaml").write_text(SETTINGS.format(url), "utf-8")
        lumos("import", JANUARY)
        server.faults.append(Fault(403, times=1_000, body=b'{"error": "ann may not read"}'))
        ended = lumos("sync", "--all", "--output", "datahub", "--json")

    error = json.loads(ended.stdout)["error"]
    assert ended.exit_code == 3
    assert error["message"].endswith("(403): ann may not read")
    assert error["notes"] == ["nothing was sent; run again to go on"]
