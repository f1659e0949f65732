"""Creating and changing a queue's topics, where whoever asked for it did not come to the end."""

from queueapi.actions.operations import NoLongerOurs
from queueapi.actions.provisioning import provision
from workers.operations.run import LeaseLost, OperationRun
from workers.operations.waiting import trying_again


class ProvisionKind:
    """Each step can be done again; a runner may die anywhere."""

    def settle(self, run: OperationRun) -> None:
        """An earlier runner has left nothing behind."""

    def run(self, run: OperationRun) -> str:
        try:
            with trying_again():
                return provision(run.operation)
        except NoLongerOurs as error:
            raise LeaseLost from error

    def give_back(self, run: OperationRun) -> None:
        """The queue stays as it is: to be deleted, or changed and tried again."""
