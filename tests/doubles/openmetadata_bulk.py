"""Several entities in one request to the stand-in for an OpenMetadata server.

As in the server's sources: the answer is 200 whatever becomes of the rows. A row that passed is
named by its fully qualified name; one that is refused before it is stored by its whole request,
and one that cannot be stored by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doubles.openmetadata_tests import RefusedError

if TYPE_CHECKING:
    from doubles.openmetadata_store import OpenMetadataStore

Json = dict[str, Any]
_SINCE = (1, 11)


def put_all(store: OpenMetadataStore, collection: str, bodies: list[Json]) -> Json:
    """Create or fill up entities, each for itself."""
    if tuple(map(int, store.version.split(".")[:2])) < _SINCE:
        raise RefusedError(405)
    passed: list[Json] = []
    failed: list[Json] = []
    for body in bodies:
        if body["name"] in store.unstorable:
            name = f"{body['databaseSchema']}.{body['name']}"
            failed.append({"request": name, "message": "cannot be stored", "status": 400})
            continue
        try:
            entity, _ = store.put(collection, body)
        except RefusedError as error:
            failed.append({"request": body, "message": str(error), "status": 400})
        else:
            passed.append({"request": entity["fullyQualifiedName"], "status": 200})
    status = "success" if not failed else "partialSuccess" if passed else "failure"
    return {
        "status": status,
        "numberOfRowsProcessed": len(bodies),
        "numberOfRowsPassed": len(passed),
        "numberOfRowsFailed": len(failed),
        "successRequest": passed,
        "failedRequest": failed,
    }
