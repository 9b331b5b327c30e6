"""What an owner declares of the tools of AgentDojo's four suites.

Written from what each tool does, as its documentation says it, and from no task and no attack:

* effect: what reaches others is ``external``; a page that is fetched learns the address, so that is
  too; what changes only the user's own things is ``write``;
* trusted: what the user or the service itself keeps, and what merely acknowledges a call;
* targets: who is written to or paid, which page, file, event or place it is about;
* lookups: an address from the user's own contacts, an id from a search by the name that the user
  gave; none for what deletes or cancels: that a name was looked up is not yet a wish to lose it.
"""

from __future__ import annotations

from typing import Any

ACK: dict[str, Any] = {"trusted": True}  # it returns what it was given, or nothing
OWN: dict[str, Any] = {"trusted": True}  # nobody else can write what it returns


def external(*targets: str, **more: Any) -> dict[str, Any]:
    return {"effect": "external", "targets": targets, **more}


def write(*targets: str, **more: Any) -> dict[str, Any]:
    return {"effect": "write", "targets": targets or None, **more}


SEND_EMAIL = external("recipients", "cc", "bcc", **ACK)
# An event is sent to those who are invited.
CREATE_EVENT = external("participants", **ACK)

# Tools that are not named are of effect `read`, and what they return is untrusted.
TOOLS: dict[str, dict[str, dict[str, Any]]] = {
    "workspace": {
        "get_current_day": OWN,
        "search_contacts_by_name": OWN,
        "search_contacts_by_email": OWN,
        "send_email": SEND_EMAIL,
        "delete_email": write("email_id", **ACK),
        "create_calendar_event": CREATE_EVENT,
        "cancel_calendar_event": external("event_id", **ACK),
        "reschedule_calendar_event": external("event_id"),
        "add_calendar_event_participants": external("event_id", "participants"),
        "append_to_file": write("file_id"),
        "create_file": write("filename", **ACK),
        "delete_file": write("file_id"),
        "share_file": external("file_id", "email"),
    },
    "travel": {
        "get_user_information": {**OWN, "secret": True},
        "send_email": SEND_EMAIL,
        "create_calendar_event": CREATE_EVENT,
        "cancel_calendar_event": external("event_id", **ACK),
        "reserve_hotel": external("hotel", **ACK),
        "reserve_restaurant": external("restaurant", **ACK),
        "reserve_car_rental": external("company", **ACK),
    },
    "banking": {
        "get_iban": OWN,
        "get_balance": OWN,
        "get_scheduled_transactions": OWN,
        "get_user_info": {**OWN, "secret": True},
        "send_money": external("recipient", **ACK),
        "schedule_transaction": external("recipient", **ACK),
        "update_scheduled_transaction": external("recipient", **ACK),
        "update_password": write(**ACK),
        "update_user_info": write(**ACK),
    },
    "slack": {
        "get_webpage": external("url"),
        "post_webpage": external("url", **ACK),
        "send_direct_message": external("recipient", **ACK),
        "send_channel_message": external("channel", **ACK),
        "add_user_to_channel": external("user", "channel", **ACK),
        "invite_user_to_slack": external("user", "user_email", **ACK),
        "remove_user_from_slack": external("user", **ACK),
    },
}

_CONTACTS = ["search_contacts_by_name.email", "search_contacts_by_email.email"]
_NAMED_FILE = ["search_files_by_filename.id_"]
_NAMED_EVENT = ["search_calendar_events.id_"]

LOOKUPS: dict[str, dict[str, list[str]]] = {
    "workspace": {
        "send_email.recipients": _CONTACTS,
        "send_email.cc": _CONTACTS,
        "send_email.bcc": _CONTACTS,
        "create_calendar_event.participants": _CONTACTS,
        "add_calendar_event_participants.participants": _CONTACTS,
        "share_file.email": _CONTACTS,
        "append_to_file.file_id": [*_NAMED_FILE, "create_file.id_"],
        "share_file.file_id": [*_NAMED_FILE, "create_file.id_"],
        "reschedule_calendar_event.event_id": _NAMED_EVENT,
        "add_calendar_event_participants.event_id": _NAMED_EVENT,
    },
    "travel": {},
    "banking": {},
    "slack": {},
}

# The owner's schemas: colleagues, the workspace's members and channels, the company's own sites.
_COLLEAGUE = {"type": "string", "pattern": r"^[A-Za-z0-9._-]+@bluesparrowtech\.com$"}
_MEMBER = {"enum": ["Alice", "Bob", "Charlie", "Eve"]}
_CHANNEL = {"enum": ["general", "random", "private"]}
_OWN_SITE = {"type": "string", "pattern": r"^www\.(our-company|company-todo-list)\.com(/[a-z]*)?$"}

ENDORSED: dict[str, dict[str, dict[str, Any]]] = {
    "workspace": {
        "send_email": {"recipients": _COLLEAGUE, "cc": _COLLEAGUE, "bcc": _COLLEAGUE},
        "create_calendar_event": {"participants": _COLLEAGUE},
        "add_calendar_event_participants": {"participants": _COLLEAGUE},
        "share_file": {"email": _COLLEAGUE},
    },
    "travel": {},
    "banking": {},
    "slack": {
        "send_direct_message": {"recipient": _MEMBER},
        "send_channel_message": {"channel": _CHANNEL},
        "add_user_to_channel": {"user": _MEMBER, "channel": _CHANNEL},
        "get_webpage": {"url": _OWN_SITE},
        "post_webpage": {"url": _OWN_SITE},
    },
}
