"""What the models of DataHub say that each kind of entity may have."""

from __future__ import annotations

ASPECTS: dict[str, set[str]] = {
    "corpuser": {
        "corpUserKey", "corpUserInfo", "corpUserEditableInfo", "corpUserStatus",
        "groupMembership", "globalTags", "status", "corpUserCredentials", "nativeGroupMembership",
        "corpUserSettings", "origin", "roleMembership", "structuredProperties", "forms",
        "testResults", "subTypes", "slackUserInfo",
    },
    "dataset": {
        "datasetKey", "viewProperties", "semanticModelProperties", "subTypes", "datasetProfile",
        "datasetUsageStatistics", "usageFeatures", "storageFeatures", "operation", "domains",
        "dataProducts", "applications", "schemaMetadata", "status", "container", "deprecation",
        "testResults", "siblings", "embed", "incidentsSummary", "datasetProperties",
        "editableDatasetProperties", "datasetDeprecation", "datasetUpstreamLineage",
        "upstreamLineage", "upstreamMetrics", "institutionalMemory", "ownership",
        "editableSchemaMetadata", "globalTags", "glossaryTerms", "browsePaths",
        "dataPlatformInstance", "browsePathsV2", "access", "structuredProperties", "forms",
        "partitionsSummary", "versionProperties", "icebergCatalogInfo", "logicalParent",
        "assetSettings", "documentation", "aliases",
    },
    "glossarynode": {
        "glossaryNodeKey", "glossaryNodeInfo", "institutionalMemory", "ownership", "status",
        "structuredProperties", "forms", "testResults", "subTypes", "displayProperties",
        "assetSettings", "domains", "applications", "globalTags",
    },
    "domain": {
        "domainKey", "domainProperties", "institutionalMemory", "ownership", "deprecation",
        "structuredProperties", "forms", "testResults", "displayProperties", "assetSettings",
    },
    "container": {
        "containerKey", "containerProperties", "editableContainerProperties",
        "dataPlatformInstance", "subTypes", "ownership", "deprecation", "container", "globalTags",
        "glossaryTerms", "institutionalMemory", "browsePaths", "status", "domains",
        "dataProducts", "applications", "browsePathsV2", "structuredProperties", "forms",
        "testResults", "access", "documentation",
    },
    "tag": {
        "tagKey", "tagProperties", "ownership", "deprecation", "status", "testResults",
    },
    "glossaryterm": {
        "glossaryTermKey", "glossaryTermInfo", "glossaryRelatedTerms", "institutionalMemory",
        "schemaMetadata", "ownership", "deprecation", "domains", "applications", "status",
        "browsePaths", "structuredProperties", "forms", "testResults", "subTypes",
        "displayProperties", "assetSettings", "globalTags",
    },
    "corpgroup": {
        "corpGroupKey", "corpGroupInfo", "corpGroupEditableInfo", "globalTags", "ownership",
        "status", "origin", "roleMembership", "structuredProperties", "forms", "testResults",
        "subTypes",
    },
    "dataflow": {
        "dataFlowKey", "domains", "dataProducts", "applications", "deprecation", "versionInfo",
        "dataFlowInfo", "editableDataFlowProperties", "ownership", "status", "globalTags",
        "browsePaths", "glossaryTerms", "institutionalMemory", "dataPlatformInstance",
        "container", "browsePathsV2", "structuredProperties", "incidentsSummary", "forms",
        "subTypes", "testResults", "documentation",
    },
    "ownershiptype": {
        "ownershipTypeKey", "ownershipTypeInfo", "status",
    },
    "datajob": {
        "dataJobKey", "datahubIngestionRunSummary", "datahubIngestionCheckpoint", "domains",
        "dataProducts", "applications", "deprecation", "versionInfo", "dataJobInfo",
        "dataJobInputOutput", "editableDataJobProperties", "ownership", "status", "globalTags",
        "browsePaths", "glossaryTerms", "institutionalMemory", "dataPlatformInstance",
        "container", "browsePathsV2", "structuredProperties", "forms", "subTypes",
        "incidentsSummary", "testResults", "dataTransformLogic", "documentation",
    },
    "assertion": {
        "assertionKey", "assertionInfo", "assertionNote", "dataPlatformInstance",
        "assertionRunEvent", "assertionRunSummary", "assertionActions", "status", "globalTags",
        "ownership",
    },
    "structuredproperty": {
        "structuredPropertyKey", "propertyDefinition", "structuredPropertySettings",
        "institutionalMemory", "status",
    },
}  # fmt: skip
"""The aspects of each kind of entity, the key first, as the models of DataHub 1.7 have them."""
