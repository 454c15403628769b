"""Files of messages, with links that the importer creates."""

from hashlib import blake2b

from tertulia.domain.messages.attachments import display_name, name_in_path
from tertulia.imports.markdown import in_link
from tertulia.imports.records import Key, SourceAttachment, SourceFile
from tertulia.model.attachments import ADDRESS


def attachment_of(
    file: SourceFile, *, owner: Key, created_at: int, secret: str
) -> tuple[SourceAttachment, str]:
    """Return a file that messages link, and its link. The same `secret` always gives the same link,
    and makes its URL unguessable."""
    name = display_name(file.name)
    digest = blake2b(f"{secret}\0{file.place}".encode(), digest_size=16).hexdigest()
    path = f"1/{digest[:2]}/{digest}/{name_in_path(name)}"
    attachment = SourceAttachment(
        key=digest, owner=owner, path=path, file=file, created_at=created_at
    )
    return attachment, f"[{in_link(name)}]({ADDRESS}{path})"
