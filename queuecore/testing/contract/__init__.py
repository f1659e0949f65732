"""What every provider promises, as a suite that a provider runs by subclassing it.

    class TestMine(ProviderContract):
        @pytest.fixture
        def open_provider(self, tmp_path: Path) -> Iterator[OpenProvider]:
            with opened(lambda producing, consuming: MyProvider(tmp_path, producing, consuming)) as open_provider:
                yield open_provider

    class TestMineInternalPartitions(TestMine):
        use_internal_partition = True

Have pytest rewrite the suite's assertions, for failures that show values: in a conftest.py,
`pytest.register_assert_rewrite("queuecore.testing.contract")`.
"""

from queuecore.testing.contract.administering import AdministeringContract
from queuecore.testing.contract.changing import ChangingContract
from queuecore.testing.contract.consuming import ConsumingContract
from queuecore.testing.contract.displacing import DisplacingContract
from queuecore.testing.contract.fencing import FencingContract
from queuecore.testing.contract.kit import OpenProvider, opened
from queuecore.testing.contract.looking import LookingContract
from queuecore.testing.contract.sending import SendingContract
from queuecore.testing.contract.sharing import SharingContract
from queuecore.testing.contract.transactions import TransactionsContract

__all__ = ["OpenProvider", "ProviderContract", "opened"]


class ProviderContract(
    SendingContract,
    ConsumingContract,
    SharingContract,
    DisplacingContract,
    ChangingContract,
    FencingContract,
    TransactionsContract,
    LookingContract,
    AdministeringContract,
):
    """The whole contract. Subclasses give the fixture `open_provider`."""
