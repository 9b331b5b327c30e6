"""The state of a run, and its saved form.

A saved run is a head (JSON text of a bounded size) and the texts of its finished steps. A
`RunState` is a view over these texts: they are parsed where they are touched and only there, so
handing one out costs the same at step 10,000 as at step 10, and whatever its holder does to it
changes nothing that was saved.

The modules import in this order: `fields`, `marks`, `status`, `step`, `steps`, `head`,
`timeline`, `run`.
"""

from .run import InFlight, RunState
from .status import RunStatus, RunUsage
from .step import Step, StepOutcome
from .steps import Steps

__all__ = ["InFlight", "RunState", "RunStatus", "RunUsage", "Step", "StepOutcome", "Steps"]
