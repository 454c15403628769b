"""Where a sign-in continues after the user is identified: in the browser, or in an app."""

import re
from typing import Final
from urllib.parse import quote, urlencode

from msgspec import Struct
from starlette.responses import Response

from tertulia.model.errors import Refused
from tertulia.wire.pages.form_flow import LOGOUT, PageRequest, organization_page

HOME: Final = "/"
MAX_INVITATION: Final = 100
"""Longest token of an invitation, in characters."""
SECOND_STEP: Final = "/login/second-factor"
SET_UP: Final = "/login/set-up"
DESKTOP_SCRIPT: Final = "/static/desktop.js"
_APP: Final = "ZulipElectron/"
"""The part of the desktop app's user agent that identifies it."""
_OTP: Final = re.compile(r"[0-9a-fA-F]{64}")
_OWN_PATH: Final = re.compile(r"/(?![/\\])[^\\\x00-\x1f\x7f]{0,2000}")


class SignInFlow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a sign-in continues after the user is identified."""

    next: str = HOME
    """The path on this server to open in the browser afterwards."""
    mobile_flow_otp: str = ""
    """A mobile app's one-time pad: 64 hexadecimal digits, or empty."""
    desktop_flow_otp: str = ""
    """The desktop app's AES key: 64 hexadecimal digits, or empty."""
    invitation: str = ""
    """The token of a reusable invitation that the person has opened; may be empty."""
    provider_session: str = ""
    """The identity provider's ID of its session, once the person comes back; may be empty."""

    @property
    def is_for_app(self) -> bool:
        """Whether an app waits for the result instead of this browser."""
        return bool(self.mobile_flow_otp or self.desktop_flow_otp)

    def with_path(self, path: str) -> str:
        """Return the path with a query that continues this flow there."""
        values = {
            "next": self.next if self.next != HOME else "",
            "mobile_flow_otp": self.mobile_flow_otp,
            "desktop_flow_otp": self.desktop_flow_otp,
            "invitation": self.invitation,
        }
        query = {name: value for name, value in values.items() if value}
        return f"{path}?{urlencode(query, safe='/', quote_via=quote)}" if query else path


def requested_flow(page: PageRequest) -> SignInFlow:
    """Return the flow in the request's parameters. A `next` outside this site is ignored. Raises
    Refused for malformed one-time pads."""
    mobile, desktop = page.value("mobile_flow_otp"), page.value("desktop_flow_otp")
    if any(otp and not _OTP.fullmatch(otp) for otp in (mobile, desktop)) or (mobile and desktop):
        raise Refused("The app's sign-in request isn't valid. Start again in the app.")
    return SignInFlow(
        next=own_path(page.value("next")),
        mobile_flow_otp=mobile,
        desktop_flow_otp=desktop,
        invitation=page.value("invitation")[:MAX_INVITATION],
    )


def own_path(text: str) -> str:
    """Return `text` if it's a safe path on this server, else the home page."""
    return text if _OWN_PATH.fullmatch(text) and not text.startswith(LOGOUT) else HOME


def needs_browser(page: PageRequest, flow: SignInFlow) -> bool:
    """Whether the request comes from inside the desktop app, which can't show other sites, so that
    the sign-in must continue in the user's browser."""
    return not flow.is_for_app and _APP in page.request.headers.get("user-agent", "")


def to_browser(page: PageRequest) -> Response:
    """Return the page, shown inside the desktop app, that opens the browser and waits for the
    code."""
    return organization_page(
        page.node,
        page.say,
        "desktop_start.html",
        script=DESKTOP_SCRIPT,
        title=page.say("desktop_start"),
    )
