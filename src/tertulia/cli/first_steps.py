"""`tertulia first-steps`: what there is to do after an organization was created."""

from msgspec import Struct

from tertulia.cli.commands import Printed, runnable
from tertulia.cli.next_steps import Step, facts_of, lines_of, next_steps
from tertulia.service.caller import Caller
from tertulia.store import nodes

EXAMPLE = "Example: `tertulia first-steps --data-dir data`"


class FirstSteps(Struct, frozen=True, kw_only=True):
    """All of them, in the order in which they are best done."""

    steps: list[Step]


async def _look(caller: Caller) -> Printed:
    """Show what's left to set up in a new organization, from its address to backups."""
    config = caller.node.config
    listed = await caller.node.store.read(nodes.listed)
    serving = any(node.is_living for node in listed)
    facts = facts_of(caller.state, caller.user.address, serving=serving)
    steps = next_steps(config, facts)
    return Printed(FirstSteps(steps=steps), lines_of(config, steps))


first_steps = runnable(_look)
