"""Resumable uploads with the tus protocol 1.0.0. Uploads survive a restart of the server."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from email.utils import formatdate
from typing import Final, TypeVar
from weakref import WeakValueDictionary

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tertulia.domain import permissions, quotas
from tertulia.domain.accounts import access_keys
from tertulia.domain.accounts.access_keys import NO_KEYS, KeyCapability
from tertulia.domain.messages import attachments
from tertulia.model.errors import Refused, Unavailable, UploadQuotaReached
from tertulia.model.users import BotKind, User
from tertulia.service.files.uploads import require_disk_space, reserved_bytes, store_upload
from tertulia.store.files import IMPORTS
from tertulia.store.partial_uploads import PartialUpload, UploadInUse, UploadPieces, new_key
from tertulia.wire.api.attachments import uploaded_file
from tertulia.wire.files.tus_requests import (
    ALGORITHMS,
    NUMBER,
    Checksum,
    content_type,
    gathered,
    metadata_in,
    number_in,
)
from tertulia.wire.http.authentication import access_key_in, authenticate
from tertulia.wire.http.errors import TusRefused, error_response
from tertulia.wire.http.forms import MIB, drained
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import POSITION, PREFIX
from tertulia.wire.http.responses import EXPOSED, JsonResponse, body_of, failure, success
from tertulia.wire.http.routing import ApiResponse

logger = logging.getLogger("tertulia.http")

T = TypeVar("T")

PATH: Final = f"{PREFIX}/tus"
VERSION: Final = "1.0.0"
EXTENSIONS: Final = "creation,creation-with-upload,termination,checksum,expiration"
EXPIRY_SECONDS: Final = 86400
PIECE: Final = "application/offset+octet-stream"
IMPORT: Final = "import"
"""The `purpose` in the metadata of an export that an owner is going to import."""
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""All methods are routed here, so that errors have tus headers."""
_TOO_LONG: Final = "This chunk extends past the end of the file."
_NEEDS: Final = frozenset({KeyCapability.WRITE})
_HEADERS: Final = {
    "Tus-Resumable": VERSION,
    "Access-Control-Allow-Methods": "POST, HEAD, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Tus-Resumable, Upload-Length,"
    " Upload-Metadata, Upload-Offset, Upload-Checksum, X-HTTP-Method-Override, X-Requested-With,"
    f" {POSITION}",
    "Access-Control-Expose-Headers": "Location, Tus-Checksum-Algorithm, Tus-Extension,"
    " Tus-Max-Size, Tus-Resumable, Tus-Version, Upload-Expires, Upload-Length, Upload-Metadata,"
    f" Upload-Offset, {EXPOSED}",
}


def tus_pages(node: HttpNode) -> tuple[BaseRoute, ...]:
    """The routes for resumable uploads."""
    endpoint = _Tus(node)
    return (
        Route(PATH, endpoint.respond, methods=_METHODS),
        Route(f"{PATH}/", endpoint.respond, methods=_METHODS),
        Route(f"{PATH}/{{key}}", endpoint.respond, methods=_METHODS),
    )


class UploadedExport(ApiResponse, kw_only=True):
    """A complete upload of another server's export. Import it with `POST /imports`."""

    upload: str


class _Hold:
    """This node's lock on an upload."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.stop = asyncio.Event()
        """Set when a later request wants the lock."""
        self.waiting = 0
        """Requests that hold the lock or wait for it."""


class _Tus:
    """Handles all routes and methods."""

    def __init__(self, node: HttpNode) -> None:
        self._node = node
        self._partials = node.partials
        self._holds: dict[str, _Hold] = {}
        self._creating = WeakValueDictionary[int, asyncio.Lock]()
        """Locks by person, held while they or one of their bots create an upload."""

    async def respond(self, request: Request) -> Response:
        method = request.method
        if method == "POST":
            method = request.headers.get("x-http-method-override", method).upper()
        if method == "OPTIONS":
            return Response(status_code=204, headers=self._about())
        try:
            if request.headers.get("tus-resumable") != VERSION:
                raise TusRefused(412, "This server supports tus 1.0.0.")
            user = self._node.request_limits.admitted(request, lambda: self._who(request))
            handlers: dict[str, Callable[[Request, User], Awaitable[Response]]] = (
                {"HEAD": self._head, "PATCH": self._patch, "DELETE": self._delete}
                if "key" in request.path_params
                else {"POST": self._post}
            )
            if method not in handlers:
                raise TusRefused(405, "This URL doesn't support this method.")
            response = await handlers[method](request, user)
        except (Refused, Unavailable) as error:
            with contextlib.suppress(ClientDisconnect):
                await drained(request)
            response = failure(error)
            if response.status_code == 412:
                response.headers["Tus-Version"] = VERSION
        except ClientDisconnect:
            response = Response(status_code=499)
        except Exception as error:
            logger.exception("%s %s failed", method, request.url.path)
            response = failure(error)
        response.headers.update(_HEADERS)
        if method == "HEAD":
            response.body = b""
        return response

    def _about(self) -> dict[str, str]:
        return {
            **_HEADERS,
            "Tus-Version": VERSION,
            "Tus-Extension": EXTENSIONS,
            "Tus-Max-Size": str(self._limit(is_import=False)),
            "Tus-Checksum-Algorithm": ",".join(ALGORITHMS),
        }

    def _limit(self, *, is_import: bool) -> int:
        config = self._node.config
        return (config.max_import_size_mib if is_import else config.max_file_upload_size_mib) * MIB

    def _who(self, request: Request) -> User:
        user = authenticate(self._node, request, _NEEDS)
        if user.bot is not None and user.bot.kind is BotKind.INCOMING_WEBHOOK:
            raise Refused("Incoming webhook bots can only send messages.")
        return user

    async def _post(self, request: Request, user: User) -> Response:
        """Create an upload, optionally with its first bytes."""
        if "upload-defer-length" in request.headers:
            raise Refused("The file's length must be given when the upload is created.")
        length = number_in(request, "upload-length")
        checksum = Checksum.of(request)
        metadata = request.headers.get("upload-metadata", "")
        fields = metadata_in(metadata)
        is_import = fields.get("purpose") == IMPORT
        limit = self._limit(is_import=is_import)
        if length > limit:
            raise TusRefused(
                413,
                f"The file is larger than the {limit // MIB} MiB limit. Upload a smaller file.",
            )
        node = self._node
        partial = PartialUpload(
            user_id=user.id,
            key=new_key(),
            length=length,
            metadata=metadata,
            name=fields.get("filename") or fields.get("name") or "",
            media_type=fields.get("filetype") or fields.get("type") or "",
            expires=int(node.clock()) + EXPIRY_SECONDS,
            is_import=is_import,
        )
        self._require_right(request, user, partial)
        # One at a time, so that later uploads count the space that this one reserves.
        person = node.state.users.person_of(user)
        async with self._creating.setdefault(person.id, asyncio.Lock()):
            await self._require_room(user, partial)
            await _written(self._partials.begin(partial))
            try:
                await self._require_few_unfinished(user)
            except Refused:
                await self._partials.delete(partial)
                raise
        headers = {"Location": f"{PATH}/{partial.key}", **_expiry(partial)}
        if content_type(request) != PIECE and length:
            await drained(request)
            return Response(status_code=201, headers=headers)
        return await self._append(request, partial, 0, checksum, 201, headers)

    def _require_right(self, request: Request, user: User, partial: PartialUpload) -> None:
        if not partial.is_import:
            return
        if (key := access_key_in(request.scope)) is not None:
            access_keys.require(key, NO_KEYS)  # As for all other import endpoints.
        permissions.require_owner(self._node.state, user)

    async def _require_room(self, user: User, partial: PartialUpload) -> None:
        node, quota = self._node, self._node.config.upload_quota
        others = await reserved_bytes(node, user)
        with _storage_errors():
            await require_disk_space(node, partial.length)
            if not partial.is_import:  # The file is deleted after the import.
                attachments.check_upload_quota(node.state, user, partial.length, quota, others)

    async def _require_few_unfinished(self, user: User) -> None:
        """Refuse if the person now has more unfinished uploads than the quota.

        This is checked after the upload was created, so uploads created on other nodes at the same
        time can't be missed. At worst, both are refused.
        """
        state = self._node.state
        accounts = [*state.users.accounts_of(state.users.person_of(user))]
        unfinished = await self._partials.unfinished(accounts)
        quotas.check(state, user, quotas.UNFINISHED_UPLOADS, used=unfinished - 1)

    async def _head(self, request: Request, user: User) -> Response:
        """Get the number of bytes received so far."""
        partial = await self._load(request, user)
        if partial.path is None:
            async with self._lock(partial) as (partial, pieces, _):
                offset = pieces.size if pieces is not None else partial.length
            if offset == partial.length and partial.path is None:
                # The server stopped after the last byte, before it created the attachment.
                partial = await self._finish(partial)
        else:
            offset = partial.length
        headers = {
            "Upload-Offset": str(offset),
            "Upload-Length": str(partial.length),
            **_expiry(partial),
        }
        if partial.metadata:
            headers["Upload-Metadata"] = partial.metadata
        return Response(status_code=200, headers=headers)

    async def _patch(self, request: Request, user: User) -> Response:
        """Append a chunk to the upload."""
        if content_type(request) != PIECE:
            raise TusRefused(415, f"File chunks must have the content type {PIECE}.")
        offset = number_in(request, "upload-offset")
        checksum = Checksum.of(request)
        partial = await self._load(request, user)
        return await self._append(request, partial, offset, checksum, 204, _expiry(partial))

    async def _delete(self, request: Request, user: User) -> Response:
        """Cancel the upload."""
        partial = await self._load(request, user)
        async with self._lock(partial) as (partial, pieces, _):
            if pieces is None or partial.path is not None:
                raise TusRefused(
                    403,
                    "This upload is already complete. To delete the file, delete its attachment.",
                )
            await self._partials.delete(partial)
        return Response(status_code=204)

    async def _load(self, request: Request, user: User) -> PartialUpload:
        key = request.path_params["key"]
        partial = await self._partials.load(user.id, key)
        if partial is None:
            raise TusRefused(404, "This upload doesn't exist.")
        if partial.expires <= self._node.clock():
            raise TusRefused(410, "This upload has expired. Upload the file again.")
        self._require_right(request, user, partial)
        return partial

    async def _reload(self, partial: PartialUpload) -> PartialUpload:
        current = await self._partials.load(partial.user_id, partial.key)
        if current is None:
            raise TusRefused(404, "This upload doesn't exist.")
        return current

    @contextlib.asynccontextmanager
    async def _lock(
        self, partial: PartialUpload
    ) -> AsyncIterator[tuple[PartialUpload, UploadPieces | None, asyncio.Event]]:
        """Lock the upload. Yields its current record, its file (None if it's complete), and an
        event that is set when another request wants the lock.

        The later request wins, because the connection of the earlier one may be dead.
        """
        hold = self._holds.setdefault(partial.key, _Hold())
        hold.waiting += 1
        hold.stop.set()
        try:
            async with hold.lock:
                hold.stop = stop = asyncio.Event()
                if hold.waiting > 1:
                    stop.set()  # Another request arrived in the meantime.
                current = await self._reload(partial)
                async with contextlib.AsyncExitStack() as stack:
                    try:
                        opening = stack.enter_async_context(self._partials.opened(current))
                        pieces = await _written(opening)
                    except UploadInUse:
                        raise TusRefused(
                            423, "Another request is writing to this upload."
                        ) from None
                    if pieces is None:
                        current = await self._reload(partial)
                    yield current, pieces, stop
        finally:
            hold.waiting -= 1
            if not hold.waiting:
                del self._holds[partial.key]

    async def _append(
        self,
        request: Request,
        partial: PartialUpload,
        offset: int,
        checksum: Checksum | None,
        status: int,
        headers: dict[str, str],
    ) -> Response:
        """Append the request's body, and create the attachment when the upload is complete."""
        async with self._lock(partial) as (partial, pieces, stop):
            present = pieces.size if pieces is not None else partial.length
            if offset != present:
                raise TusRefused(409, f"The upload continues at offset {present}, not at {offset}.")
            if pieces is not None:
                with _storage_errors():
                    await require_disk_space(self._node, partial.length - present)
                await self._take(request, partial, pieces, stop, checksum)
                self._node.log.store.hear_gathered()
                # Rights may have been revoked since.
                self._require_right(request, self._who(request), partial)
                present = pieces.size
        headers = {**headers, "Upload-Offset": str(present)}
        if present < partial.length:
            return Response(status_code=status, headers=headers)
        partial = await self._finish(partial)
        if partial.is_import:
            body, _ = body_of(success(UploadedExport(upload=partial.key), []), None)
            return JsonResponse(body, 200 if status == 204 else status, headers)
        attachment = self._node.state.uploads.at_path(partial.path or "")
        if attachment is None:
            raise TusRefused(410, "This file has been deleted.")
        body, _ = body_of(success(uploaded_file(attachment), []), None)
        return JsonResponse(body, 200 if status == 204 else status, headers)

    async def _take(
        self,
        request: Request,
        partial: PartialUpload,
        pieces: UploadPieces,
        stop: asyncio.Event,
        checksum: Checksum | None,
    ) -> None:
        remaining = partial.length - pieces.size
        declared = request.headers.get("content-length", "")
        if NUMBER.fullmatch(declared) and int(declared) > remaining:
            raise TusRefused(413, _TOO_LONG)
        await _written(pieces.begin(checked=checksum is not None))
        try:
            async with contextlib.aclosing(gathered(request, stop, pieces)) as body:
                async for piece in body:
                    remaining -= len(piece)
                    if remaining < 0:
                        raise TusRefused(413, _TOO_LONG)
                    if checksum is not None:
                        checksum.update(piece)
                    await _written(pieces.append(piece))
            if checksum is not None:
                checksum.verify()
        except BaseException:
            # Without a checksum, received bytes are kept even if the request fails.
            if checksum is not None or remaining < 0:
                pieces.drop()
            raise
        finally:
            await _written(pieces.end())

    async def _finish(self, partial: PartialUpload) -> PartialUpload:
        """Create the attachment of a complete upload, unless it exists."""
        if partial.path is not None:
            return partial
        path = await _written(self._stored(partial))
        finished = msgspec.structs.replace(partial, path=path, doubtful=None)
        await _written(self._partials.finish(finished))
        return finished

    async def _stored(self, partial: PartialUpload) -> str:
        async with self._partials.whole(partial) as file:
            if partial.is_import:
                path = f"{IMPORTS}/{partial.key}"
                await self._node.uploads.keep(file.arriving, path)
                return path
            return (await store_upload(self._node, partial.user_id, file)).path


@contextlib.contextmanager
def _storage_errors() -> Iterator[None]:
    """Turn exceeded storage limits into status 413 of the tus protocol."""
    try:
        yield
    except UploadQuotaReached as error:
        _, body, _ = error_response(error)
        raise TusRefused(413, str(error), body["code"]) from None


async def _written(writing: Awaitable[T]) -> T:
    """Await a write. Raises Unavailable if it fails, for example because the disk is full."""
    try:
        return await writing
    except OSError as error:
        logger.exception("could not write a chunk of an upload")
        raise Unavailable("The server couldn't save the file. Try again later.") from error


def _expiry(partial: PartialUpload) -> dict[str, str]:
    return {"Upload-Expires": formatdate(partial.expires, usegmt=True)}
