"""The contract on a DataHub that others use changes nothing but what it made itself."""

from __future__ import annotations

import copy

import pytest

from doubles.datahub_server import DataHubDouble
from lumos.core.models import Tag, User
from lumos.core.platform.batch import Batch
from lumos.testing.platform_samples import dataset, edge, rich_dataset
from named_datahub import SystemEntityError, prefixed_datahub

HERE = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/customers,PROD)"


def fill(server: DataHubDouble) -> None:
    """Put what a server in use holds, under the very names that tests use."""
    server.put(HERE, datasetProperties={"name": "customers", "description": "in use"})
    server.put("urn:li:tag:gold", tagProperties={"name": "gold", "colorHex": "#ffd700"})
    server.put("urn:li:corpuser:admin", corpUserInfo={"active": True, "system": True})
    server.put("urn:li:ownershipType:__system__technical_owner", ownershipTypeInfo={"name": "T"})


def test_a_server_in_use_is_left_as_it_was(
    running: tuple[str, DataHubDouble], server: DataHubDouble
) -> None:
    fill(server)
    before = copy.deepcopy(server.stored)
    datasets = [rich_dataset(), dataset("orders")]

    with prefixed_datahub({"gms_server": running[0]}) as platform:
        platform.apply(
            Batch(entities=[Tag(name="gold", sensitive=True), User(username="admin", title="x")])
        )
        platform.apply(Batch(datasets=datasets, edges=[edge(datasets[0], datasets[1])]))

        assert [each.urn for each in platform.list()] == [each.urn for each in datasets]
        assert platform.find_datasets([datasets[0].urn])[datasets[0].urn].dataset == datasets[0]
        assert [*platform.list_entities("tag")] == [Tag(name="gold", sensitive=True)]
        assert [hit.urn for hit in platform.search("customers").hits] == [datasets[0].urn]
        platform.delete(datasets[1].urn)
        made = [urn for urn in server.stored if urn not in before]
        assert made
        assert [urn for urn in made if ":lt" not in urn and ",lt" not in urn] == []

    assert server.stored == before


def test_what_the_test_did_not_make_cannot_be_written(
    running: tuple[str, DataHubDouble], server: DataHubDouble
) -> None:
    fill(server)
    before = copy.deepcopy(server.stored)

    with (
        prefixed_datahub({"gms_server": running[0]}) as platform,
        pytest.raises(SystemEntityError),
    ):
        platform._client.delete("corpuser", "urn:li:corpuser:__datahub_system")

    assert server.stored == before
