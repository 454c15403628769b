"""English."""

from typing import Final

from tertulia.outbound.words.said import Letter, Said

SAID: Final = Said(
    hello="Hello {name}!",
    hello_there="Hello!",
    or_open="Or open this address: {link}",
    months=(
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ),
    day="{day} {month} {year}, {time} UTC",
    letters={
        "invitation": Letter(
            "{inviter} invites you to {organization}",
            "{inviter} would like to talk with you in {organization}, where a team writes to each other in channels and topics.",
            "The invitation is for you alone, and lasts until {until}. If you do not know why you got it, you can leave it alone.",
            "Join",
        ),
        "invitation_without_end": Letter(
            "{inviter} invites you to {organization}",
            "{inviter} would like to talk with you in {organization}, where a team writes to each other in channels and topics.",
            "The invitation is for you alone, and can be used once. If you do not know why you got it, you can leave it alone.",
            "Join",
        ),
        "confirm_sign_up": Letter(
            "Join {organization}",
            "Somebody, probably you, wants to join {organization} with this address.",
            "The link lasts until {until}. If it was not you, you can leave it alone: nothing happens.",
            "Join",
        ),
        "has_account": Letter(
            "You have an account in {organization}",
            "Somebody, probably you, wanted to join {organization} with this address. There is an account with it already: sign in at {site}, or with any client of Zulip.",
            "If it was not you, you can leave it alone.",
        ),
        "confirm_address": Letter(
            "Confirm your address for {organization}",
            "Your account in {organization} is to have this address instead of {before}.",
            "The link lasts until {until}. If you did not ask for it, you can leave it alone: the address stays as it is.",
            "Confirm",
        ),
        "forgotten": Letter(
            "A new password for {organization}",
            "Somebody, probably you, has forgotten the password of your account in {organization}.",
            "The link can be used once, and lasts until {until}. If it was not you, you can leave it alone: your password stays as it is.",
            "Choose a new password",
        ),
        "address_changed": Letter(
            "Your address for {organization} has changed",
            "Your account in {organization} has the address {address} now, and mails go there from now on.",
            "If this was not you, write to the people who run the organization at once.",
        ),
        "password_reset": Letter(
            "Your password for {organization} has changed",
            "Your account in {organization} has a new password. Every browser and every program that was signed in to it has to sign in again.",
            "If this was not you, write to the people who run the organization at once.",
        ),
        "password_changed": Letter(
            "Your password for {organization} has changed",
            "Somebody who knew the password of your account in {organization} has changed it. The other browsers are signed out; programs go on with the same API key.",
            "If this was not you, choose another one at {site}/reset, and write to the people who run the organization.",
        ),
        "key_changed": Letter(
            "Your API key for {organization} has changed",
            "Your account in {organization} has another API key. Programs that had the one before have to sign in again.",
            "If this was not you, choose another password at {site}/reset, and write to the people who run the organization.",
        ),
        "agent_key_made": Letter(
            "An agent has a key to your account in {organization}",
            "A key was made with which an agent can act for you in {organization}: {agent}. What it may do, and how to take the key away, is in your settings, under Agents.",
            "If this was not you, choose another password at {site}/reset, which ends all such keys, and write to the people who run the organization.",
        ),
        "new_sign_in": Letter(
            "A new sign-in to {organization}",
            "Somebody signed in to your account in {organization} from where it was not signed in to before: on {at}, from the address {address}, with: {agent}.",
            "If this was you, you can leave it alone. If not, choose another password at {site}/reset. These mails can be turned off in the settings, with the notifications.",
        ),
        "deactivated": Letter(
            "Your account in {organization} was deactivated",
            "Your account in {organization} ({site}) was deactivated. You cannot sign in to it any more.",
            "If you think that this is a mistake, write to the people who run the organization.",
        ),
        "deactivated_with_a_word": Letter(
            "Your account in {organization} was deactivated",
            "Your account in {organization} ({site}) was deactivated. You cannot sign in to it any more.",
            "The administrators add: {comment}",
        ),
        "welcome": Letter(
            "Welcome to {organization}",
            "You are one of {organization} now. Sign in at {site} with any browser, and install it from there on a phone; every client of Zulip works too. Talk is in channels, and in them by topics: follow those that matter to you, and mute the others.",
            "When you are not there, you are told by mail of what is written to you. How and of what is yours to choose, in the settings: {site}/#settings/notifications",
        ),
    },
    conversations={
        "unknown": "Unknown user",
        "opening_direct": "{name} wrote to you in {organization}.",
        "opening_group": "There is something new in a conversation of yours in {organization}.",
        "opening_mentioned": "You were mentioned in {organization}.",
        "opening_wildcard": "Everybody in a conversation of yours was mentioned in {organization}.",
        "opening_followed": "There is something new in a topic that you follow in {organization}.",
        "opening_channel": "There is something new in a channel that you want to be told of,"
        " in {organization}.",
        "direct": "Direct messages with {names}",
        "general": "general chat",
        "button": "Open the conversation",
        "more": "… and {count} more.",
        "hidden_subject": "New messages",
        "hidden": "There are {count} new messages for you in {organization}.",
        "hidden_one": "There is a new message for you in {organization}.",
        "hidden_button": "Open {organization}",
        "hidden_by_realm": "The organization keeps what messages say out of mails.",
        "hidden_by_self": "You have chosen that mails do not show what messages say.",
        "no_reply": "Answer in {organization}: an answer to this mail is read by nobody.",
        "reply": "Answer this mail to answer there.",
        "why": "You got this mail because you were not there. How you are told is in the settings:"
        " {settings}",
        "unsubscribe": "No more such mails",
        "digest_subject": "What went on in {organization}",
        "digest_opening": "Hello {name}! Here is some of what was written in {organization} since"
        " you were last there.",
        "digest_messages": "{count} messages, by {people}",
        "digest_message": "one message, by {people}",
        "digest_and_others": "{people} and others",
        "digest_why": "You get a digest because you were away for a while. It can be turned off in"
        " the settings: {settings}",
    },
    pushes={
        "reply": "Reply",
        "read": "Mark as read",
        "placeholder": "Your answer",
        "failed": "This could not be sent: ",
        "unknown": "Somebody",
        "general": "general chat",
        "group": "{name} to {others}",
        "hidden_one": "A new message",
        "hidden": "{count} new messages",
        "more": "and {count} before",
        "test": "It works: this is how you are told.",
    },
)
