"""The worlds: the only room where hidden vectors, noise and regret exist."""

from sidestep.environments.genie import Genie
from sidestep.environments.instance import Instance
from sidestep.environments.sources import FreshArms, Menus
from sidestep.environments.synthetic import synthetic

__all__ = ["FreshArms", "Genie", "Instance", "Menus", "synthetic"]
