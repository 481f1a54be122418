"""Launch: a portable job request, profiles of platforms, and one command that starts workers where they fit.

Command lines and a store's URL, no study: whatever a worker is, the platform runs the same command again. dibs is a guest
there and schedules nothing.
"""

from ._fit import fit, outlived
from ._kinds import KINDS, Kind
from ._looking import look_at
from ._measure import here, local_profile
from ._plan import Call, Ended, Here, Plan, Platform, Started, worst
from ._platforms import platform_of
from ._profile import Profile
from ._request import Request
from ._resources import Gpu, Resources

__all__ = [
    "KINDS", "Call", "Ended", "Gpu", "Here", "Kind", "Plan", "Platform", "Profile", "Request", "Resources", "Started",
    "fit", "here", "local_profile", "look_at", "outlived", "platform_of", "worst",
]  # fmt: skip
