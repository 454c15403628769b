"""Second factors: authenticator apps and passkeys, and the recovery codes that replace them."""

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class Totp(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="totp"):
    """An authenticator app, which shows a new code every 30 seconds (RFC 6238)."""

    sealed: str
    """Its secret, encrypted with the server's secret."""
    used_step: int = 0
    """The time step of the newest code that was used. Codes up to it no longer work."""


class Passkey(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="passkey"):
    """A key of a device, a password manager, or a security key (WebAuthn)."""

    credential_id: str
    """The credential ID that browsers use, in base64url."""
    public_key: str
    """The public key in COSE format, in base64url."""
    sign_count: int = 0
    """The passkey's own count of its uses; 0 for passkeys that don't count."""
    transports: tuple[str, ...] = ()
    """The transports that browsers reported for it."""
    used_challenges: tuple[tuple[str, int], ...] = ()
    """The challenges that it answered, with the UNIX time when they expire."""


class SecondFactor(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A second factor that a person signs in with besides their password."""

    id: int
    user_id: int
    name: str
    """Given by the person; may be empty."""
    created_at: UnixSeconds
    proof: Totp | Passkey
    is_pending: bool = False
    """Whether setting it up isn't finished. Until then, it doesn't count."""
    used_at: int = 0
    """UNIX seconds of its last use; 0 for never."""

    @property
    def kind(self) -> str:
        """The name of its kind in requests and on the command line: `totp` or `passkey`."""
        return str(self.proof.__struct_config__.tag)


class RecoveryCodes(Struct, frozen=True, kw_only=True):
    """An account's unused recovery codes, each of which replaces a second factor once."""

    user_id: int
    digests: tuple[str, ...]
    """Keyed digests of the codes."""
    created_at: UnixSeconds


class SecondFactorPrepared(Change, frozen=True, tag="second_factor_prepared"):
    """A person began setting up a second factor. `replaced_ids` are the unfinished ones that it
    replaces."""

    factor: SecondFactor
    replaced_ids: tuple[int, ...] = ()


class SecondFactorAdded(Change, frozen=True, tag="second_factor_added"):
    """A second factor was added to an account."""

    factor: SecondFactor


class SecondFactorUsed(Change, frozen=True, tag="second_factor_used"):
    """Someone signed in with a second factor. `at` is in UNIX seconds; `proof` has the new state of
    the factor, after its code or challenge was used."""

    user_id: int
    factor_id: int
    at: int
    proof: Totp | Passkey


class SecondFactorsRemoved(Change, frozen=True, tag="second_factors_removed"):
    """Second factors of an account no longer work."""

    user_id: int
    factor_ids: tuple[int, ...]


class RecoveryCodesChanged(Change, frozen=True, tag="recovery_codes_changed"):
    """An account has new recovery codes, which replace all earlier ones; empty for none."""

    codes: RecoveryCodes


class RecoveryCodeUsed(Change, frozen=True, tag="recovery_code_used"):
    """Someone signed in with a recovery code, which no longer works. `at` is in UNIX seconds."""

    user_id: int
    digest: str
    at: int
