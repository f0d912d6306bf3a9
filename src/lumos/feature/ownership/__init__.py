"""People, groups, and who owns which dataset."""

from lumos.feature.ownership.ownership_service import OwnershipService as OwnershipService
