"""What a tenant's people get at the addresses of the console. What is not here is not for them.

Views of their own where those who run the system see more than a tenant may; the same where a view asks for what
whoever looks may know of."""

from collections.abc import Mapping
from typing import Final

from console.access import View
from console.views import (
    audit,
    isolation_asking,
    isolation_decisions,
    isolation_requests,
    letter_decisions,
    operations,
    own_alerts,
    own_home,
    own_letters,
    own_password,
    own_queues,
    queue_editing,
    queue_partitions,
    searching,
    tokens,
    usage,
)

OWN: Final[Mapping[str, View]] = {
    "overview": own_home.show_home,
    "own_password": own_password.change,
    "search": searching.show_search,
    "queues": own_queues.OwnQueueList.as_view(),
    "queue": own_queues.show_queue,
    "queue_partitions": queue_partitions.OwnPartitionList.as_view(),
    "queue_charts": own_queues.show_charts,
    "explain_strategies": queue_editing.explain,
    "pause_queue": own_queues.pause,
    "resume_queue": own_queues.resume,
    "dead_letters": own_letters.OwnLetterList.as_view(),
    "dead_letter": own_letters.show_letter,
    "note_letter": own_letters.write_note,
    "letter_payload": own_letters.download_payload,
    "replay_letters": letter_decisions.replay_selected,
    "discard_letters": letter_decisions.discard_selected,
    "restore_letters": letter_decisions.restore_selected,
    "release_letters": letter_decisions.release_selected,
    "alerts": own_alerts.OwnAlertList.as_view(),
    "alert": own_alerts.show_alert,
    "acknowledge_alert": own_alerts.acknowledge,
    "isolation_requests": isolation_requests.IsolationList.as_view(),
    "isolation_request": isolation_requests.show_request,
    "comment_isolation": isolation_requests.comment,
    "isolation_decision": isolation_decisions.show_decision,
    "withdraw_isolation": isolation_decisions.withdraw,
    "change_isolation": isolation_asking.change,
    "request_isolation": isolation_asking.ask,
    "preview_isolation": isolation_asking.preview,
    "usage": usage.show_own,
    "operations": operations.OperationList.as_view(),
    "operation": operations.show_operation,
    "cancel_operation": operations.cancel,
    "pause_operation": operations.pause,
    "resume_operation": operations.resume,
    "audit": audit.AuditList.as_view(),
    "tokens": tokens.TokenList.as_view(),
    "create_token": tokens.create,
    "revoke_token": tokens.revoke,
}
