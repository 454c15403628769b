"""What is done with files: uploads and who may open them, and pictures of accounts, emoji and the
organization."""
